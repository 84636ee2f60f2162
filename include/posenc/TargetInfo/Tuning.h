//===- Tuning.h - tuning parameters of a CPU --------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TARGETINFO_TUNING_H
#define POSENC_TARGETINFO_TUNING_H

#include "posenc/kernel/CpuFeatures.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>

namespace mlir::posenc {

/// The maximum of parameters that are sizes of tensors, in bytes.
constexpr uint64_t kMaxTensorBytes = uint64_t(1) << 47;

/// Parameters that change the speed of code on a machine and never its results.
/// Tuning.def documents the fields.
struct Tuning {
#define POSENC_TUNING(MEMBER, NAME, FLAG, INITIAL, ...)                        \
  uint64_t MEMBER = INITIAL;
#include "posenc/TargetInfo/Tuning.def"

  bool operator==(const Tuning &other) const;
  bool operator!=(const Tuning &other) const { return !(*this == other); }
};

/// Copies all fields of Tuning between types that have fields or options of
/// their names.
template <typename From, typename To>
void copyTuning(const From &from, To &to) {
#define POSENC_TUNING(MEMBER, ...) to.MEMBER = from.MEMBER;
#include "posenc/TargetInfo/Tuning.def"
}

/// A parameter: its name in tuning files, the range of its values, and the
/// candidates that posenc-tune tries.
struct TuningChoice {
  llvm::StringRef name;
  uint64_t Tuning::*value;
  uint64_t min, max, multiple;
  llvm::ArrayRef<uint64_t> candidates;
};

/// Returns all parameters, in descending order of their effect.
llvm::ArrayRef<TuningChoice> getTuningChoices();

/// Returns the measured defaults for a CPU, by its LLVM name.
Tuning getDefaultTuning(llvm::StringRef triple, llvm::StringRef cpu);

/// The CPU families that have a row of their own. A library with several
/// variants picks one by the family that findCpuFamily (runtime/kernel/Cpu.h)
/// detects.
enum class CpuFamily : uint64_t {
  Other = kCpuFamilyOther,
  Zen3 = kCpuFamilyZen3,
  Zen4 = kCpuFamilyZen4,
  Zen5 = kCpuFamilyZen5
};

/// The family of a CPU as LLVM calls it; `Other` for levels such as x86-64-v3.
CpuFamily getCpuFamily(llvm::StringRef triple, llvm::StringRef cpu);

/// A row of the table of CPU families.
struct TuningPreset {
  /// The CPU that the row was measured on, or whose row it is.
  llvm::StringRef name;
  Tuning tuning;
};

/// The different rows of the table for an architecture: where posenc-tune
/// starts from.
llvm::ArrayRef<TuningPreset> getTuningPresets(llvm::StringRef triple);

} // namespace mlir::posenc

#endif // POSENC_TARGETINFO_TUNING_H

//===- Tuning.h - choices that depend on the machine ------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TARGET_TUNING_H
#define POSENC_TARGET_TUNING_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>

namespace mlir::posenc {

/// What makes code faster or slower on a machine, and never changes a result.
/// Distances and limits are bytes.
struct Tuning {
  /// How far ahead of a load its line is asked for; 0: not at all.
  uint64_t prefetchDistance = 8192;
  /// Tensors of this size or more are prefetched.
  uint64_t prefetchFrom = 4 << 20;
  /// Tensors of this size or more are written past the cache where they are
  /// not read before; 0: none. Tables of cos and sin have a limit of their own.
  uint64_t streamFrom = 16 << 20, streamTablesFrom = 16 << 20;
  /// For how many positions in a row cos and sin are computed before the first
  /// row is rotated, where all rows of a position are at most `blockBelow`.
  /// Rows of blocks of 64 KiB or more are taken from four places in turn, and
  /// none is prefetched.
  uint64_t blockPositions = 8;
  uint64_t blockBelow = 4096;

  bool operator==(const Tuning &other) const;
  bool operator!=(const Tuning &other) const { return !(*this == other); }
};

/// One of them: its name in files, and which values make sense. Candidates are
/// what posenc-tune tries.
struct TuningChoice {
  llvm::StringRef name;
  uint64_t Tuning::*value;
  uint64_t least, most, multiple;
  llvm::ArrayRef<uint64_t> candidates;
};

/// All choices, those that matter most first.
llvm::ArrayRef<TuningChoice> getTuningChoices();

/// What is known to be good for a CPU as LLVM calls it.
Tuning getDefaultTuning(llvm::StringRef triple, llvm::StringRef cpu);

} // namespace mlir::posenc

#endif // POSENC_TARGET_TUNING_H

//===- TargetSpec.h - features of a CPU target ------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TARGETINFO_TARGETSPEC_H
#define POSENC_TARGETINFO_TARGETSPEC_H

#include "posenc/TargetInfo/Tuning.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/CodeGen.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <string>
#include <vector>

namespace llvm {
class TargetMachine;
} // namespace llvm

namespace mlir::posenc {

/// A target of `--target=`, with the facts about it that the lowering uses.
struct TargetSpec {
  /// The target as the user wrote it; `host` is resolved to `ARCH:CPU`, which
  /// gives the same code on every machine.
  std::string name;
  /// The code may use the instructions of `cpu` and `features`, and is
  /// scheduled for `tuneCpu`.
  std::string triple, cpu, features, tuneCpu;
  /// Bytes of the widest vector worth using.
  unsigned vectorBytes = 32;
  /// CpuFeature bits that an entry point checks before a kernel runs.
  uint64_t cpuFeatures = 0;
  /// The CPUs that a library prefers this version on.
  CpuFamily family = CpuFamily::Other;
  /// Whether conversion from f32 to bf16 is an instruction.
  bool hasBF16Conversion = false;
  /// Whether the target has bf16 dot products (VDPBF16PS).
  bool hasBF16Dots = false;
  /// Whether the target multiplies tiles of bf16 (AMX-BF16).
  bool hasAMXBF16 = false;
  /// Whether the target has dot products of bytes (AVX512-VNNI), and multiplies
  /// tiles of them (AMX-INT8).
  bool hasInt8Dots = false, hasAMXInt8 = false;
  /// The CPU's defaults, unless someone knows better.
  Tuning tuning = {};
  /// A file with a transform-dialect schedule that replaces the tiling passes;
  /// empty for none.
  std::string schedule;

  /// Parses `host` or `[x86-64:|aarch64:]CPU[+feature...]`. x86 below x86-64-v3
  /// (AVX2, FMA, F16C) is an error, and so is a feature that an entry point
  /// cannot check for. The pseudo-feature `prefer-256-bit` limits vectors to 32
  /// bytes.
  static llvm::Expected<TargetSpec> parse(llvm::StringRef text);

  /// Parses the targets of one library; an empty list means `host`. At load
  /// time a CPU gets the first version that is tuned for its family, else the
  /// first that it supports. A version that no CPU would get, because an
  /// earlier one needs the same features, is left out and added to `unused`.
  /// Different architectures are an error.
  static llvm::Expected<std::vector<TargetSpec>>
  parseAll(llvm::ArrayRef<std::string> texts, std::vector<TargetSpec> &unused);

  /// Creates the code generator of position-independent code for the
  /// architecture. The attributes of a function name its CPU; without them it
  /// runs on any CPU.
  std::unique_ptr<llvm::TargetMachine> createTargetMachine(
      llvm::CodeGenOptLevel level = llvm::CodeGenOptLevel::Aggressive) const;
};

} // namespace mlir::posenc

#endif // POSENC_TARGETINFO_TARGETSPEC_H

//===- CudaTarget.h - architecture of an NVIDIA GPU -------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TARGETINFO_CUDATARGET_H
#define POSENC_TARGETINFO_CUDATARGET_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace mlir::posenc {

/// A target `cuda:sm_NN` of `--target=`. LLVM derives other facts, such as the
/// PTX version, from the name.
struct CudaTarget {
  /// The target as the user wrote it, and without `cuda:`.
  std::string name, chip;
  /// Ten times the compute capability.
  int64_t arch = 0;
  /// Whether code for it runs on no newer one (`sm_90a`, `sm_100f`).
  bool isExact = false;

  /// Whether it has asynchronous copies and the tensor cores of attention.
  bool hasAttention() const { return arch >= 80; }
  /// Whether a multiprocessor has 100 KiB of shared memory, of which a block
  /// may have 99: GeForce and RTX GPUs, L4 and L40S, GB10. Others of sm_80 and
  /// newer have 164 KiB or more.
  bool hasSmallSharedMemory() const {
    return arch == 86 || arch == 89 || arch == 120 || arch == 121;
  }
  /// Whether it has products of warpgroups and bulk copies.
  bool hasWarpgroups() const { return arch == 90 && isExact; }
  /// Whether it executes code for a chip: for itself, or for one that is not
  /// newer, unless that code runs on no other chip (`sm_90a`).
  bool runs(llvm::StringRef code) const;
  /// Whether a target is meant for CUDA.
  static bool isName(llvm::StringRef text) { return text.starts_with("cuda:"); }
  /// Parses `cuda:sm_NN[a|f]`. An architecture that LLVM does not know, or one
  /// below sm_75, for which CUDA has no assembler any more, is an error.
  static llvm::Expected<CudaTarget> parse(llvm::StringRef text);
};

} // namespace mlir::posenc

#endif // POSENC_TARGETINFO_CUDATARGET_H

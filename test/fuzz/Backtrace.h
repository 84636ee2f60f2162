//===- Backtrace.h - attributes faults to a library -------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_FUZZ_BACKTRACE_H
#define POSENC_TEST_FUZZ_BACKTRACE_H

#include "llvm/ADT/ArrayRef.h"

#include <string>

namespace posenc::fuzz {

inline constexpr int maxFrames = 256;

/// Captures the frames of the caller, a signal handler, and of its callers.
/// Returns their number.
int captureFrames(void *(&frames)[maxFrames]);

struct Backtrace {
  /// Whether the fault is upstream's: no function of this project lies between
  /// the fault and the call of a pass manager, a parser or the like.
  bool isUpstream = false;
  /// Whether the fault is directly in LLVM, MLIR, malloc or free, even if this
  /// project called them.
  bool isInUpstreamOrAllocator = false;
  /// The innermost frames, one per line.
  std::string text;
  /// The innermost frames within LLVM, MLIR or this project, at most 4.
  std::string location;
};

/// Symbolizes the frames of a child in its parent, where the libraries are at
/// the same addresses.
Backtrace explainFrames(llvm::ArrayRef<void *> frames);

} // namespace posenc::fuzz

#endif // POSENC_TEST_FUZZ_BACKTRACE_H

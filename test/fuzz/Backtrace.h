//===- Backtrace.h - whose code a fault is in -------------------*- C++ -*-===//
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

/// Called by a signal handler: the frames from its own on.
int captureFrames(void *(&frames)[maxFrames]);

struct Backtrace {
  /// Nothing of this project is between the fault and the call of a pass
  /// manager, the parser or the like.
  bool isForeign = false;
  /// The fault is within LLVM or MLIR, malloc or free, whoever called them.
  bool isElsewhere = false;
  /// The innermost frames, one a line.
  std::string text;
  /// The first of them that say where it is.
  std::string place;
};

/// In the parent, which has everything at the same addresses.
Backtrace explainFrames(llvm::ArrayRef<void *> frames);

} // namespace posenc::fuzz

#endif // POSENC_TEST_FUZZ_BACKTRACE_H

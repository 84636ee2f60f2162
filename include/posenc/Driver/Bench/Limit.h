//===- Limit.h - how fast the machine moves and computes --------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_DRIVER_BENCH_LIMIT_H
#define POSENC_DRIVER_BENCH_LIMIT_H

#include "posenc/Driver/Bench/ByteRun.h"
#include "posenc/runtime/types.h"

#include <cstdint>
#include <string>
#include <vector>

namespace mlir::posenc {

/// Memory that is gone through: in each of `rows` rows, `stride` bytes apart,
/// the same runs of bytes. All is one run where nothing is left out.
struct ByteRows {
  char *data = nullptr;
  int64_t rows = 1;
  int64_t stride = 0;
  std::vector<ByteRun> runs;

  /// One run of `bytes` at `data`, which stays the caller's.
  static ByteRows create(void *data, int64_t bytes);
  /// Of all runs in all rows, without what is between them.
  int64_t bytes() const;
};

/// The least that a kernel has to do with one of its tensors, as plain loops
/// with the vectors of this CPU do it.
struct StreamStep {
  enum Kind {
    Scale, ///< x *= a, in place: what is read and written is the same
    Copy,  ///< every byte is read at one place and written at another
    Fill,  ///< memset: nothing is read
    Read,  ///< every byte is read, nothing is written
    Fma    ///< products and sums in registers: no memory at all
  };
  Kind kind = Scale;
  posenc_dtype dtype = POSENC_F32;
  /// Of those that write.
  ByteRows to;
  /// For Read and for Copy, there of the same form as `to`.
  ByteRows from;
  /// For Fma: how many, at least.
  double flops = 0;

  /// Bytes that move: read and written.
  int64_t bytes() const;
};

/// A way to do all steps, and its name.
struct Stream {
  std::string name;
  std::vector<StreamStep> steps;
  /// Whether copies go around the caches, and reads ask for bytes in advance.
  bool hasHints = false;

  int64_t bytes() const;
  /// 0 if it is limited by the bytes.
  double flops() const;
  /// Does the steps, each divided among `threads` threads.
  void run(int threads) const;
};

/// The ways to do these steps among which the fastest is the limit: with hints
/// to the caches and without, or just one where there is nothing to hint at.
std::vector<Stream> createStreams(std::vector<StreamStep> steps);

/// The cache lines that a window of each row touches, of `count` rows of
/// `rowBytes` that begin at `data`; all of it if the window is the row.
ByteRows getTouchedLines(void *data, int64_t count, int64_t rowBytes,
                         int64_t windowOffset, int64_t windowBytes);

/// Bytes of the largest cache; a guess where the system does not tell.
int64_t getLastLevelCacheBytes();

} // namespace mlir::posenc

#endif // POSENC_DRIVER_BENCH_LIMIT_H

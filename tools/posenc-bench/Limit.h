//===- Limit.h - memory bandwidth and FMA rate of the machine ---*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TOOLS_BENCH_LIMIT_H
#define POSENC_TOOLS_BENCH_LIMIT_H

#include "posenc-bench/ByteRun.h"
#include "posenc/runtime/types.h"

#include <cstdint>
#include <string>
#include <vector>

namespace mlir::posenc {

/// A strided region of memory that a step reads or writes: the same runs of
/// bytes in each of `rows` rows, which are `stride` bytes apart. The caller
/// owns the memory. A contiguous region is one row with one run.
struct ByteRows {
  char *data = nullptr;
  int64_t rows = 1;
  int64_t stride = 0;
  std::vector<ByteRun> runs;

  /// Creates a contiguous region of `bytes` bytes at `data`.
  static ByteRows create(void *data, int64_t bytes);
  /// Returns the bytes of all runs in all rows.
  int64_t bytes() const;
};

/// The minimum work of a kernel on one of its tensors, done by a plain loop
/// over the widest vectors of the CPU.
struct StreamStep {
  enum Kind {
    Scale, ///< x *= a: reads and writes `to` in place
    Copy,  ///< reads `from` and writes `to`
    Fill,  ///< memset: writes `to`
    Read,  ///< reads `from`
    Fma    ///< FMAs in registers, without memory
  };
  Kind kind = Scale;
  posenc_dtype dtype = POSENC_F32;
  /// Destination of Scale, Copy and Fill.
  ByteRows to;
  /// Source of Copy and Read. For Copy it has the same rows and runs as `to`.
  ByteRows from;
  /// For Fma: the number of floating-point operations, a product and a sum each
  /// counting as one.
  double flops = 0;

  /// Returns the bytes read plus the bytes written.
  int64_t bytes() const;
};

/// One implementation of a limit: steps that run one after another.
struct Stream {
  std::string name;
  std::vector<StreamStep> steps;
  /// Whether copies use streaming stores, and reads prefetch.
  bool hasHints = false;

  int64_t bytes() const;
  /// Returns 0 if the limit is in bytes.
  double flops() const;
  /// Runs the steps, each divided among `threads` threads.
  void run(int threads) const;
};

/// Returns the implementations of these steps, the fastest of which is the
/// limit: with and without streaming stores or prefetches, or a single one if
/// neither applies.
std::vector<Stream> createStreams(std::vector<StreamStep> steps);

/// Returns the cache lines that a window of each row touches, for `count`
/// contiguous rows of `rowBytes` bytes from `data` on, which is aligned to a
/// cache line. The region is contiguous if the window is the whole row.
ByteRows getTouchedLines(void *data, int64_t count, int64_t rowBytes,
                         int64_t windowOffset, int64_t windowBytes);

/// Returns the bytes of the largest cache of CPU 0, or 32 MiB if the system
/// does not report it.
int64_t getLastLevelCacheBytes();

} // namespace mlir::posenc

#endif // POSENC_TOOLS_BENCH_LIMIT_H

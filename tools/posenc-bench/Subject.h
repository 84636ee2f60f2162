//===- Subject.h - measurement of one benchmark -----------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TOOLS_BENCH_SUBJECT_H
#define POSENC_TOOLS_BENCH_SUBJECT_H

#include "posenc-bench/Limit.h"

#include "benchmark/benchmark.h"

#include <functional>

namespace mlir::posenc {

/// The number of calls of a sample, and the number of pairs of an iteration. A
/// pair is one sample of the kernel and one of each limit.
struct Sampling {
  int64_t calls = 0, pairs = 0;
};

/// A kernel or another implementation to measure, and what it is compared with.
struct Subject {
  /// Runs `calls` calls and returns their seconds; negative after an error.
  std::function<double(int64_t calls)> time;
  std::vector<Stream> limits;
  /// Work of a call: bytes read and written, and floating-point operations.
  double bytes = 0, flops = 0;
  /// Label of the benchmark; the name of the limit is appended.
  std::string label;
  /// Runs the plain attention that the time per tile is compared with, or null;
  /// the numbers of tiles of the two.
  std::function<double(int64_t calls)> plain;
  double tiles = 0, plainTiles = 0;
  /// Runs other code for the same function, to compare speeds, or null.
  std::function<double(int64_t calls)> baseline;
};

/// Measures the subject in turn with its limits, as the iterations of a
/// benchmark, and sets the benchmark's counters. Returns false after an error
/// of the subject. `sampling` is chosen on the first call, when it is 0, and
/// reused by repetitions, which must have equal numbers of iterations.
bool measureSubject(const Subject &subject, int threads, Sampling &sampling,
                    ::benchmark::State &state);

} // namespace mlir::posenc

#endif // POSENC_TOOLS_BENCH_SUBJECT_H

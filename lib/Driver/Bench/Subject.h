//===- Subject.h - what is measured against a limit -------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_DRIVER_BENCH_SUBJECT_H
#define POSENC_LIB_DRIVER_BENCH_SUBJECT_H

#include "posenc/Driver/Bench/Limit.h"

#include "benchmark/benchmark.h"

#include <functional>

namespace mlir::posenc {

/// How many calls a sample has, and how many pairs of one sample and one of
/// each limit a measurement has at least.
struct Sampling {
  int64_t calls = 0, pairs = 0;
};

/// Something that can be called, and what its time is compared with.
struct Subject {
  /// The seconds of this many calls; negative after an error.
  std::function<double(int64_t calls)> time;
  std::vector<Stream> limits;
  /// Of each call.
  double bytes = 0, flops = 0;
  std::string label;
  /// Something that the time of a part is compared with, if there is, and the
  /// parts that both have.
  std::function<double(int64_t calls)> plain;
  double parts = 0, plainParts = 0;
  /// Other code for the same that its speed is compared with, if there is.
  std::function<double(int64_t calls)> baseline;
};

/// Measures it in turn with its limits, as the iterations of a benchmark, and
/// sets the benchmark's counters. False after an error of the subject's.
/// The sampling is chosen if it is 0: repetitions must have as many iterations
/// each.
bool measureSubject(const Subject &subject, int threads, Sampling &sampling,
                    ::benchmark::State &state);

} // namespace mlir::posenc

#endif // POSENC_LIB_DRIVER_BENCH_SUBJECT_H

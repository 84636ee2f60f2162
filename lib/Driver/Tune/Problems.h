//===- Problems.h - what choices matter for ---------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_DRIVER_TUNE_PROBLEMS_H
#define POSENC_LIB_DRIVER_TUNE_PROBLEMS_H

#include "BenchKernel.h"
#include "Versions.h"

#include <chrono>

namespace mlir::posenc {

using TimePoint = std::chrono::steady_clock::time_point;

/// How many times as fast one version is as another: the median of pairs that
/// are measured in turn, and the ends of its confidence interval of 95 %.
struct Speed {
  double median = 1, low = 1, high = 1;

  static Speed get(std::vector<double> ratios);
  bool isFaster() const { return low > 1; }
  bool isSlower() const { return high < 1; }
};

/// A function and its arguments.
class Problem {
public:
  /// The function with this number, with about so many bytes of results unless
  /// it has arguments. Null after an error, which is printed.
  static std::unique_ptr<Problem> create(const TuneRequest &request,
                                         const Version &version,
                                         size_t function, int64_t bytes,
                                         bool inPlace);

  /// Whether the two versions do anything differently here.
  bool isAffected(const Version &from, const Version &to) const;
  /// The speed of `to` where that of `from` is 1, by as many pairs as make it
  /// clear, but at most so many. Nothing if there is no time.
  std::optional<Speed> compare(const Version &from, const Version &to,
                               int mostPairs, TimePoint deadline) const;

  /// Whether another is the same function on as much memory.
  bool isTwin(const Problem &other) const {
    return function == other.function && bytes == other.bytes &&
           kernel->isInPlace() == other.kernel->isInPlace();
  }

private:
  Problem() = default;

  size_t function = 0;
  std::unique_ptr<BenchKernel> kernel;
  int64_t bytes = 0;
};

std::vector<std::unique_ptr<Problem>> createProblems(const TuneRequest &request,
                                                     const Version &version);

} // namespace mlir::posenc

#endif // POSENC_LIB_DRIVER_TUNE_PROBLEMS_H

//===- Problems.h - the functions and sizes to tune for ---------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TOOLS_TUNE_PROBLEMS_H
#define POSENC_TOOLS_TUNE_PROBLEMS_H

#include "BenchKernel.h"
#include "Versions.h"

#include <chrono>

namespace mlir::posenc {

using TimePoint = std::chrono::steady_clock::time_point;

/// The speed of one version relative to another: the median ratio of pairs of
/// times that are measured in turn, and the bounds of its 95 % confidence
/// interval.
struct Speed {
  double median = 1, low = 1, high = 1;

  /// Computes the median and its confidence interval; there must be at least
  /// one ratio.
  static Speed get(std::vector<double> ratios);
  bool isFaster() const { return low > 1; }
  bool isSlower() const { return high < 1; }
};

/// A function and its inputs, on which versions are compared.
class Problem {
public:
  /// Creates inputs for a function of the request, given by its index, and
  /// calls it once. Functions that sweep sizes get inputs for about `bytes`
  /// bytes of results, in place or not. Returns null after an error, which is
  /// printed.
  static std::unique_ptr<Problem> create(const TuneRequest &request,
                                         const Version &version,
                                         size_t function, int64_t bytes,
                                         bool inPlace);

  /// Returns whether the two versions can behave differently on this problem.
  bool isAffected(const Version &from, const Version &to) const;
  /// Measures the speed of `to` relative to that of `from`. Takes pairs of
  /// samples until the confidence interval is clear, but at most `maxPairs`.
  /// Returns nullopt after the deadline or an interrupt.
  std::optional<Speed> compare(const Version &from, const Version &to,
                               int maxPairs, TimePoint deadline) const;

  /// Returns whether the other problem has the same function, size of results,
  /// and use of memory in place.
  bool isDuplicateOf(const Problem &other) const {
    return function == other.function && bytes == other.bytes &&
           kernel->isInPlace() == other.kernel->isInPlace();
  }

private:
  Problem() = default;

  size_t function = 0;
  std::unique_ptr<BenchKernel> kernel;
  /// Bytes of all results.
  int64_t bytes = 0;
};

/// Creates the problems of all functions of a request. Returns an empty list
/// after an error, which is printed, and after an interrupt.
std::vector<std::unique_ptr<Problem>> createProblems(const TuneRequest &request,
                                                     const Version &version);

} // namespace mlir::posenc

#endif // POSENC_TOOLS_TUNE_PROBLEMS_H

//===- Problems.h - what the choices are measured on ------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_TUNE_PROBLEMS_H
#define POSENC_LIB_TUNE_PROBLEMS_H

#include "BenchKernel.h"
#include "Versions.h"

#include <chrono>

namespace mlir::posenc {

using TimePoint = std::chrono::steady_clock::time_point;

/// How many times as fast as another a version is.
struct Speed {
  /// The median of pairs measured in turn, and the lower quartile.
  double median = 1, low = 1;
};

/// One function on arguments of one size, which all versions share: they are
/// timed in the same memory.
class Problem {
public:
  /// About so many bytes of results, of code that is the function with this
  /// number. Null after an error, which is printed.
  static std::unique_ptr<Problem> create(const TuneRequest &request,
                                         const Version &version,
                                         size_t function, int64_t bytes,
                                         bool inPlace);

  /// Whether the two versions do anything differently here.
  bool isAffected(const Version &from, const Version &to) const;
  /// The speed of `to` where that of `from` is 1. Nothing if there is no time.
  std::optional<Speed> compare(const Version &from, const Version &to,
                               TimePoint deadline) const;

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

/// Functions in sizes from what a cache holds to what goes through memory, in
/// place and not. Empty after an error, which is printed, and after an
/// interrupt.
std::vector<std::unique_ptr<Problem>> createProblems(const TuneRequest &request,
                                                     const Version &version);

} // namespace mlir::posenc

#endif // POSENC_LIB_TUNE_PROBLEMS_H

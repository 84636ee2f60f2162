//===- Pairs.h - a kernel and its limits, timed in turn ---------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_DRIVER_BENCH_PAIRS_H
#define POSENC_DRIVER_BENCH_PAIRS_H

#include "posenc/Driver/Bench/Limit.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace mlir::posenc {

/// Seconds of one call of a kernel and of each of its limits, measured in turn:
/// a machine that is slow for a while is so for both, and their ratio stays.
class PairedTimes {
public:
  explicit PairedTimes(size_t numLimits) : limits(numLimits) {}

  /// Runs each once: `time` returns the seconds of a number of calls, which is
  /// how many the limits run, too.
  void measure(llvm::function_ref<double(int64_t calls)> time, int64_t calls,
               const std::vector<Stream> &streams, int threads);

  size_t count() const { return kernel.size(); }
  /// The sum of the kernel's, and all of them.
  double getTotal() const;
  /// A quantile of the kernel's, in [0, 1].
  double getKernel(double quantile) const;
  /// The limit with the lowest median, and that median.
  size_t getFastest() const;
  double getLimit() const;
  /// The median of the ratios of the fastest limit's time to the kernel's.
  double getFraction() const;

private:
  std::vector<double> kernel;
  std::vector<std::vector<double>> limits;
};

/// The seconds that the body takes.
double measureSeconds(llvm::function_ref<void()> body);

} // namespace mlir::posenc

#endif // POSENC_DRIVER_BENCH_PAIRS_H

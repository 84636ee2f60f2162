//===- Pairs.h - paired times of a kernel and its limits --------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TOOLS_BENCH_PAIRS_H
#define POSENC_TOOLS_BENCH_PAIRS_H

#include "posenc-bench/Limit.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace mlir::posenc {

/// Seconds per call of a kernel and of each of its limits, measured in turn.
/// When the machine is slow for a while, it slows down both, so their ratio is
/// stable.
class PairedTimes {
public:
  explicit PairedTimes(size_t numLimits) : limits(numLimits) {}

  /// Takes one sample of the kernel and one of each limit, of `calls` calls
  /// each. `time` runs the kernel and returns the seconds of all calls;
  /// `streams` are the limits, which run on `threads` threads.
  void measure(llvm::function_ref<double(int64_t calls)> time, int64_t calls,
               const std::vector<Stream> &streams, int threads);

  /// Returns the number of samples.
  size_t count() const { return kernel.size(); }
  /// Returns the sum of the kernel's samples.
  double getTotal() const;
  /// Returns a quantile of the kernel's samples; `quantile` is in [0, 1].
  double getKernel(double quantile) const;
  /// Returns the index of the limit with the lowest median.
  size_t getFastest() const;
  /// Returns the median of the fastest limit.
  double getLimit() const;
  /// Returns the median ratio of the fastest limit's time to the kernel's: the
  /// kernel's speed as a fraction of the limit.
  double getFraction() const;

private:
  std::vector<double> kernel;
  std::vector<std::vector<double>> limits;
};

/// Returns the seconds that `body` takes.
double measureSeconds(llvm::function_ref<void()> body);

} // namespace mlir::posenc

#endif // POSENC_TOOLS_BENCH_PAIRS_H

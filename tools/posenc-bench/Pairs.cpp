//===- Pairs.cpp - paired times of a kernel and its limits ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc-bench/Pairs.h"

#include <algorithm>
#include <chrono>
#include <numeric>

using namespace mlir::posenc;

double mlir::posenc::measureSeconds(llvm::function_ref<void()> body) {
  auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

static double getQuantile(std::vector<double> values, double quantile) {
  auto at = values.begin() +
            static_cast<size_t>(quantile * double(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

void PairedTimes::measure(llvm::function_ref<double(int64_t)> time,
                          int64_t calls, const std::vector<Stream> &streams,
                          int threads) {
  kernel.push_back(time(calls) / double(calls));
  for (size_t i = 0; i < streams.size(); ++i) {
    double seconds = measureSeconds([&] {
      for (int64_t call = 0; call < calls; ++call)
        streams[i].run(threads);
    });
    limits[i].push_back(seconds / double(calls));
  }
}

double PairedTimes::getTotal() const {
  return std::accumulate(kernel.begin(), kernel.end(), 0.0);
}

double PairedTimes::getKernel(double quantile) const {
  return getQuantile(kernel, quantile);
}

size_t PairedTimes::getFastest() const {
  return std::min_element(limits.begin(), limits.end(),
                          [](const auto &a, const auto &b) {
                            return getQuantile(a, 0.5) < getQuantile(b, 0.5);
                          }) -
         limits.begin();
}

double PairedTimes::getLimit() const {
  return getQuantile(limits[getFastest()], 0.5);
}

double PairedTimes::getFraction() const {
  std::vector<double> ratios = limits[getFastest()];
  for (size_t i = 0; i < ratios.size(); ++i)
    ratios[i] /= kernel[i];
  return getQuantile(std::move(ratios), 0.5);
}

//===- Subject.cpp - measurement of one benchmark -------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Subject.h"

#include "Report.h"
#include "Threads.h"
#include "posenc-bench/Pairs.h"

#include <algorithm>

using namespace mlir::posenc;

/// Number of pairs of a measurement: enough for the median to ignore a few that
/// other processes disturbed. The minimum is used if kPairs calls would take
/// kPairsSeconds or longer.
static constexpr int64_t kPairs = 11, kMinPairs = 3;
static constexpr double kPairsSeconds = 4;
/// Minimum duration of a sample, for the resolution of the clock.
static constexpr double kSampleSeconds = 200e-6;

bool mlir::posenc::measureSubject(const Subject &subject, int threads,
                                  Sampling &sampling,
                                  ::benchmark::State &state) {
  setKernelThreads(threads);
  // Warms up threads and caches, and estimates the number of calls of a sample.
  constexpr double isWarm = 0.5;
  double once = subject.time(1);
  if (once < isWarm)
    once = subject.time(1);
  if (sampling.calls == 0) {
    sampling.calls =
        static_cast<int64_t>(kSampleSeconds / std::max(once, 1e-9) + 1);
    sampling.pairs = once * kPairs < kPairsSeconds ? kPairs : kMinPairs;
  }
  auto [calls, pairs] = sampling;
  bool ok = once >= 0;
  double seconds = 0;
  std::vector<double> overPlain, overBaseline;
  auto time = [&](int64_t count) {
    // The order alternates, so neither profits from always running second.
    bool isBaselineFirst = overBaseline.size() % 2 == 1;
    double baseline = 0;
    if (subject.baseline && isBaselineFirst)
      baseline = subject.baseline(count);
    seconds = subject.time(count);
    if (subject.baseline && !isBaselineFirst)
      baseline = subject.baseline(count);
    if (subject.baseline)
      overBaseline.push_back(baseline / seconds);
    ok &= seconds >= 0;
    return seconds;
  };
  auto getMedian = [](std::vector<double> &values) {
    auto middle = values.begin() + int64_t(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
  };
  if (subject.baseline)
    subject.baseline(1);
  PairedTimes times(subject.limits.size());
  while (state.KeepRunningBatch(pairs * calls)) {
    double before = times.getTotal();
    for (int64_t pair = 0; ok && pair < pairs; ++pair) {
      times.measure(time, calls, subject.limits, threads);
      if (subject.plain)
        overPlain.push_back(seconds / subject.plain(calls));
    }
    if (!ok)
      return false;
    state.SetIterationTime((times.getTotal() - before) * double(calls));
  }

  // The unit of the limit, operations or bytes, is also that of the subject.
  const Stream &limit = subject.limits[times.getFastest()];
  bool countsFlops = limit.flops() > 0;
  double limitWork = countsFlops ? limit.flops() : double(limit.bytes());
  double work = countsFlops ? subject.flops : subject.bytes;
  seconds = times.getKernel(0.5);
  if (!countsFlops)
    state.counters[kBytesPerSecond] = subject.bytes / seconds;
  if (subject.flops > 0)
    state.counters[kFlopsPerSecond] = subject.flops / seconds;
  state.counters[kLimit] = limitWork / times.getLimit();
  state.counters[kFraction] = times.getFraction() * work / limitWork;
  if (!overPlain.empty()) {
    state.counters[kOverPlain] =
        getMedian(overPlain) * subject.plainTiles / subject.tiles;
  }
  if (!overBaseline.empty())
    state.counters[kOverBaseline] = getMedian(overBaseline);
  state.counters[kMedian] = seconds;
  state.counters[kSlowest] = times.getKernel(0.99);
  state.SetLabel((subject.label + (subject.label.empty() ? "" : ", ") +
                  "limit: " + subject.limits[times.getFastest()].name)
                     .c_str());
  return true;
}

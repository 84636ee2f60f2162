//===- Subject.cpp - what is measured against a limit -----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Subject.h"

#include "Report.h"
#include "Threads.h"
#include "posenc/Bench/Pairs.h"

#include <algorithm>

using namespace mlir::posenc;

/// Pairs of one sample and one of each limit that a measurement has at least:
/// so many that the median ignores some that something else disturbed.
static constexpr int64_t kPairs = 11;
/// Of a shorter sample the clock says little.
static constexpr double kSampleSeconds = 200e-6;

bool mlir::posenc::measureSubject(const Subject &subject, int threads,
                                  int64_t &callsPerSample,
                                  ::benchmark::State &state) {
  setKernelThreads(threads);
  // Warms up threads and caches, and tells how many calls a sample needs.
  subject.time(1);
  double once = subject.time(1);
  if (callsPerSample == 0)
    callsPerSample =
        static_cast<int64_t>(kSampleSeconds / std::max(once, 1e-9) + 1);
  int64_t calls = callsPerSample;
  bool ok = once >= 0;
  auto time = [&](int64_t count) {
    double seconds = subject.time(count);
    ok &= seconds >= 0;
    return seconds;
  };
  PairedTimes times(subject.limits.size());
  while (state.KeepRunningBatch(kPairs * calls)) {
    double before = times.getTotal();
    for (int64_t pair = 0; ok && pair < kPairs; ++pair)
      times.measure(time, calls, subject.limits, threads);
    if (!ok)
      return false;
    state.SetIterationTime((times.getTotal() - before) * double(calls));
  }

  double limitBytes = double(subject.limits[times.getFastest()].bytes());
  double seconds = times.getKernel(0.5);
  state.counters[kBytesPerSecond] = subject.bytes / seconds;
  if (subject.flops > 0)
    state.counters[kFlopsPerSecond] = subject.flops / seconds;
  state.counters[kLimit] = limitBytes / times.getLimit();
  state.counters[kFraction] = times.getFraction() * subject.bytes / limitBytes;
  state.counters[kMedian] = seconds;
  state.counters[kSlowest] = times.getKernel(0.99);
  state.SetLabel((subject.label + (subject.label.empty() ? "" : ", ") +
                  "limit: " + subject.limits[times.getFastest()].name)
                     .c_str());
  return true;
}

//===- PairsTest.cpp - quantiles of paired times --------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc-bench/Pairs.h"

#include "gtest/gtest.h"

using namespace mlir::posenc;

namespace {

TEST(PairedTimesTest, SamplesAreSecondsPerCall) {
  PairedTimes times(1);
  std::vector<char> memory(64);
  StreamStep step;
  step.to = ByteRows::create(memory.data(), 64);
  std::vector<Stream> streams = {Stream{"loop", {step}, false}};
  double seconds = 0;
  for (int i = 0; i < 11; ++i)
    times.measure(
        [&](int64_t calls) {
          EXPECT_EQ(calls, 4);
          return 4 * (seconds += 1);
        },
        4, streams, 1);
  EXPECT_EQ(times.count(), 11u);
  EXPECT_DOUBLE_EQ(times.getKernel(0), 1);
  EXPECT_DOUBLE_EQ(times.getKernel(0.5), 6);
  EXPECT_DOUBLE_EQ(times.getKernel(0.99), 11);
  EXPECT_DOUBLE_EQ(times.getTotal(), 66);
  // The kernel takes 1 to 11 seconds per call, the limit nanoseconds.
  EXPECT_GT(times.getLimit(), 0);
  EXPECT_LT(times.getFraction(), 0.01);
}

/// The limit with the lowest median is selected.
TEST(PairedTimesTest, SelectsFastestLimit) {
  std::vector<char> little(64), much(1 << 20);
  StreamStep small, large;
  small.to = ByteRows::create(little.data(), 64);
  large.to = ByteRows::create(much.data(), 1 << 20);
  std::vector<Stream> streams = {Stream{"large", {large}, false},
                                 Stream{"small", {small}, false}};
  PairedTimes times(2);
  for (int i = 0; i < 9; ++i)
    times.measure([](int64_t calls) { return 1e-3 * double(calls); }, 10,
                  streams, 1);
  EXPECT_EQ(times.getFastest(), 1u);
}

TEST(MeasureSecondsTest, IncludesNestedMeasurement) {
  double inner = 0;
  double outer = measureSeconds([&] { inner = measureSeconds([] {}); });
  EXPECT_GE(inner, 0);
  EXPECT_GE(outer, inner);
}

} // namespace

//===- PairsTest.cpp - quantiles of paired times ----------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Driver/Bench/Pairs.h"

#include "gtest/gtest.h"

using namespace mlir::posenc;

namespace {

TEST(PairedTimesTest, SamplesAreOfOneCall) {
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
  // Calls of a second and more, and a limit that takes nanoseconds.
  EXPECT_GT(times.getLimit(), 0);
  EXPECT_LT(times.getFraction(), 0.01);
}

/// Of two limits the fast one counts.
TEST(PairedTimesTest, FastestLimit) {
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

TEST(MeasureTest, SecondsOfABody) {
  double inner = 0;
  double outer = measureSeconds([&] { inner = measureSeconds([] {}); });
  EXPECT_GE(inner, 0);
  EXPECT_GE(outer, inner);
}

} // namespace

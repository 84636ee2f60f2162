//===- SpeedTest.cpp - confidence intervals of speeds ---------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Problems.h"

#include "gtest/gtest.h"

#include <random>

using namespace mlir::posenc;

namespace {

TEST(SpeedTest, EqualRatiosAreCertain) {
  Speed faster = Speed::get(std::vector<double>(8, 1.25));
  EXPECT_EQ(faster.median, 1.25);
  EXPECT_TRUE(faster.isFaster());
  EXPECT_FALSE(faster.isSlower());
  EXPECT_TRUE(Speed::get(std::vector<double>(8, 0.8)).isSlower());
  Speed same = Speed::get(std::vector<double>(8, 1.0));
  EXPECT_FALSE(same.isFaster() || same.isSlower());
}

TEST(SpeedTest, IgnoresOutliers) {
  std::vector<double> ratios(25, 1.1);
  for (int i = 0; i < 6; ++i)
    ratios[4 * i] = i % 2 ? 1e-3 : 1e3;
  Speed speed = Speed::get(ratios);
  EXPECT_EQ(speed.median, 1.1);
  EXPECT_EQ(speed.low, 1.1);
  EXPECT_EQ(speed.high, 1.1);
}

/// Returns how often the interval contains the median of the distribution that
/// the ratios are drawn from. The distribution is skewed: its upper half is ten
/// times as wide as its lower half.
double getCoverage(size_t count) {
  constexpr int trials = 4000;
  constexpr double median = 1.07;
  std::mt19937_64 generator(count);
  std::normal_distribution<double> normal;
  int numCovered = 0;
  for (int trial = 0; trial < trials; ++trial) {
    std::vector<double> ratios(count);
    for (double &ratio : ratios) {
      double x = normal(generator);
      ratio = median * std::exp(x * (x < 0 ? 0.03 : 0.3));
    }
    Speed speed = Speed::get(std::move(ratios));
    EXPECT_LE(speed.low, speed.median);
    EXPECT_LE(speed.median, speed.high);
    numCovered += speed.low <= median && median <= speed.high;
  }
  return double(numCovered) / trials;
}

TEST(SpeedTest, IntervalsContainMedianAt95Percent) {
  // With few ratios, no pair of order statistics has a coverage of exactly 95
  // %.
  EXPECT_NEAR(getCoverage(8), 0.95, 0.03);
  EXPECT_NEAR(getCoverage(25), 0.95, 0.02);
  EXPECT_NEAR(getCoverage(100), 0.95, 0.02);
  EXPECT_NEAR(getCoverage(1000), 0.95, 0.02);
}

} // namespace

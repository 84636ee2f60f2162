//===- AxesTest.cpp - axis and frequency of each pair ---------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestUtils.h"

#include "posenc/IR/PairFrequencies.h"

using namespace mlir;
using namespace mlir::posenc;

namespace {

struct AxesTest : AttrTest {
  SmallVector<int64_t> axesOfPairs(const std::string &fields, int64_t pairs) {
    auto axes = parse<AxesAttr>("#posenc.axes<" + fields + ">");
    SmallVector<int64_t> result;
    for (int64_t pair = 0; pair < pairs; ++pair)
      result.push_back(axes.getAxisOfPair(pair));
    return result;
  }
};

TEST_F(AxesTest, Sizes) {
  auto axes = parse<AxesAttr>("#posenc.axes<contiguous, [16, 24, 24]>");
  EXPECT_EQ(axes.getNumAxes(), 3);
  EXPECT_EQ(axes.getNumPairs(), 64);
}

TEST_F(AxesTest, Contiguous) {
  SmallVector<int64_t> expected{0, 1, 1, 1, 2, 2};
  EXPECT_EQ(axesOfPairs("contiguous, [1, 3, 2]", 6), expected);
  EXPECT_EQ(axesOfPairs("axial, [1, 3, 2]", 6), expected);
  // Qwen2-VL.
  SmallVector<int64_t> all = axesOfPairs("contiguous, [16, 24, 24]", 64);
  EXPECT_EQ(all[15], 0);
  EXPECT_EQ(all[16], 1);
  EXPECT_EQ(all[39], 1);
  EXPECT_EQ(all[40], 2);
  EXPECT_EQ(all[63], 2);
}

TEST_F(AxesTest, Interleaved) {
  // Qwen3-VL: pairs 1, 4, ... below 60 use axis 1, pairs 2, 5, ... below 60
  // axis 2, all others axis 0.
  SmallVector<int64_t> all = axesOfPairs("interleaved, [24, 20, 20]", 64);
  for (int64_t pair = 0; pair < 64; ++pair)
    EXPECT_EQ(all[pair], pair < 60 ? pair % 3 : 0) << "pair " << pair;
  for (int64_t axis = 0; axis < 3; ++axis)
    EXPECT_EQ(llvm::count(all, axis), axis ? 20 : 24);
  // Sections of different lengths: the shorter one ends first.
  EXPECT_EQ(axesOfPairs("interleaved, [5, 1, 2]", 8),
            (SmallVector<int64_t>{0, 1, 2, 0, 0, 2, 0, 0}));
}

TEST_F(AxesTest, FrequenciesWithoutAxes) {
  auto frequencies = parse<FrequenciesAttr>("#posenc.frequencies<dim = 8>");
  auto pairs = computePairFrequencies(frequencies, nullptr);
  ASSERT_EQ(pairs.size(), 4u);
  for (auto [i, pair] : llvm::enumerate(pairs)) {
    EXPECT_EQ(pair.axis, 0);
    EXPECT_DOUBLE_EQ(pair.frequency.toDouble(), std::pow(10.0, -double(i)));
  }
}

TEST_F(AxesTest, ExponentsContinueAcrossAxes) {
  auto frequencies = parse<FrequenciesAttr>("#posenc.frequencies<dim = 8>");
  for (const char *layout : {"contiguous", "interleaved"}) {
    auto axes =
        parse<AxesAttr>("#posenc.axes<" + std::string(layout) + ", [2, 2]>");
    auto pairs = computePairFrequencies(frequencies, axes);
    ASSERT_EQ(pairs.size(), 4u);
    for (auto [i, pair] : llvm::enumerate(pairs)) {
      EXPECT_EQ(pair.axis, axes.getAxisOfPair(i));
      EXPECT_DOUBLE_EQ(pair.frequency.toDouble(), std::pow(10.0, -double(i)));
    }
  }
}

TEST_F(AxesTest, ExponentsRestartOnAxialAxes) {
  auto frequencies = parse<FrequenciesAttr>("#posenc.frequencies<dim = 14>");
  auto axes = parse<AxesAttr>("#posenc.axes<axial, [1, 2, 4]>");
  auto pairs = computePairFrequencies(frequencies, axes);
  int64_t expectedAxes[] = {0, 1, 1, 2, 2, 2, 2};
  double expected[] = {1.0, 1.0, 0.01, 1.0, 0.1, 0.01, 0.001};
  ASSERT_EQ(pairs.size(), 7u);
  for (auto [i, pair] : llvm::enumerate(pairs)) {
    EXPECT_EQ(pair.axis, expectedAxes[i]) << "pair " << i;
    EXPECT_DOUBLE_EQ(pair.frequency.toDouble(), expected[i]) << "pair " << i;
  }
}

TEST_F(AxesTest, ScalingOnAnAxis) {
  auto frequencies = parse<FrequenciesAttr>(
      "#posenc.frequencies<dim = 8, scaling = #posenc.linear<factor = 2.0>>");
  auto axes = parse<AxesAttr>("#posenc.axes<axial, [2, 2]>");
  double expected[] = {0.5, 0.005, 0.5, 0.005};
  for (auto [i, pair] :
       llvm::enumerate(computePairFrequencies(frequencies, axes)))
    EXPECT_DOUBLE_EQ(pair.frequency.toDouble(), expected[i]) << "pair " << i;
}

/// A list of frequencies has one value per pair and does not depend on axes.
TEST_F(AxesTest, ExplicitFrequenciesIgnoreAxes) {
  auto frequencies = parse<FrequenciesAttr>(
      "#posenc.frequencies<dim = 8, scaling = #posenc.explicit<"
      "values = [4.0, 3.0, 2.0, 1.0]>>");
  auto axes = parse<AxesAttr>("#posenc.axes<axial, [1, 3]>");
  auto pairs = computePairFrequencies(frequencies, axes);
  ASSERT_EQ(pairs.size(), 4u);
  for (auto [i, pair] : llvm::enumerate(pairs)) {
    EXPECT_EQ(pair.axis, i ? 1 : 0);
    EXPECT_EQ(pair.frequency.toDouble(), 4.0 - i);
  }
}

} // namespace

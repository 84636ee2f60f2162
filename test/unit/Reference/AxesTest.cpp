//===- AxesTest.cpp - assignment of pairs to axes -------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestUtils.h"

using namespace posenc::reference;

static std::vector<int64_t> axesOf(const PairTable &table) {
  std::vector<int64_t> result;
  for (int64_t i = 0; i < table.size(); ++i)
    result.push_back(table.axis(i));
  return result;
}

TEST(Axes, SectionsKeepTheFrequencies) {
  PairTable table(plainSpec(16), {AxesKind::Sections, {2, 3, 3}});
  EXPECT_EQ(table.numAxes(), 3);
  EXPECT_EQ(axesOf(table), (std::vector<int64_t>{0, 0, 1, 1, 1, 2, 2, 2}));
  std::vector<Real> plain = computeFrequencies(16, 10000);
  for (int64_t i = 0; i < 8; ++i)
    EXPECT_TRUE(table.frequency(i) == plain[size_t(i)]);
}

TEST(Axes, InterleavedSections) {
  PairTable table(plainSpec(20), {AxesKind::InterleavedSections, {5, 3, 2}});
  EXPECT_EQ(axesOf(table),
            (std::vector<int64_t>{0, 1, 2, 0, 1, 2, 0, 1, 0, 0}));
  // The sections of Qwen3-VL: 24 pairs of time, 20 of height, 20 of width.
  PairTable qwen(plainSpec(128), {AxesKind::InterleavedSections, {24, 20, 20}});
  std::vector<int64_t> axes = axesOf(qwen);
  EXPECT_EQ(std::count(axes.begin(), axes.end(), 0), 24);
  EXPECT_EQ(std::count(axes.begin(), axes.end(), 1), 20);
  EXPECT_EQ(std::count(axes.begin(), axes.end(), 2), 20);
  EXPECT_EQ(axes[58], 1);
  EXPECT_EQ(axes[61], 0);
}

TEST(Axes, AxialRestartsTheFrequencies) {
  PairTable table(plainSpec(16), {AxesKind::Axial, {2, 3, 3}});
  EXPECT_EQ(axesOf(table), (std::vector<int64_t>{0, 0, 1, 1, 1, 2, 2, 2}));
  std::vector<Real> two = computeFrequencies(4, 10000);
  std::vector<Real> three = computeFrequencies(6, 10000);
  for (int64_t i = 0; i < 2; ++i)
    EXPECT_TRUE(table.frequency(i) == two[size_t(i)]);
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(table.frequency(2 + i) == three[size_t(i)]);
    EXPECT_TRUE(table.frequency(5 + i) == three[size_t(i)]);
  }
}

TEST(Axes, AxialListDoesNotRestart) {
  FrequencySpec spec = plainSpec(8);
  spec.list = {Real(4), Real(3), Real(2), Real(1)};
  PairTable table(spec, {AxesKind::Axial, {2, 2}});
  EXPECT_EQ(axesOf(table), (std::vector<int64_t>{0, 0, 1, 1}));
  for (int64_t i = 0; i < 4; ++i)
    EXPECT_TRUE(table.frequency(i) == spec.list[size_t(i)]);
}

TEST(Axes, EmptySectionsAreAllowed) {
  PairTable table(plainSpec(8), {AxesKind::Axial, {4, 0}});
  EXPECT_EQ(table.numAxes(), 2);
  EXPECT_EQ(axesOf(table), (std::vector<int64_t>{0, 0, 0, 0}));
}

TEST(Axes, RejectsSectionsThatDoNotAddUp) {
  for (auto kind :
       {AxesKind::Sections, AxesKind::InterleavedSections, AxesKind::Axial}) {
    EXPECT_NE(check(plainSpec(8), {kind, {}}), "");
    EXPECT_NE(check(plainSpec(8), {kind, {1, 2}}), "");
    EXPECT_NE(check(plainSpec(8), {kind, {5, -1}}), "");
    EXPECT_NE(check(plainSpec(8), {kind, {INT64_MAX, INT64_MAX}}), "");
    EXPECT_EQ(check(plainSpec(8), {kind, {1, 3}}), "");
  }
}

TEST(Axes, EveryPairReadsItsOwnAxis) {
  // Two rows on two axes: positions (1, 2) and (30, 40).
  AxesSpec axes{AxesKind::Sections, {1, 1}};
  FrequencySpec spec = plainSpec(4);
  CosSinTable table = sincos(spec, axes, {1, 2, 30, 40}, {2});
  CosSinTable first = sincos(spec, {}, {1, 2}, {2});
  CosSinTable second = sincos(spec, {}, {30, 40}, {2});
  for (size_t row = 0; row < 2; ++row) {
    EXPECT_EQ(table.cos.values[2 * row], first.cos.values[2 * row]);
    EXPECT_EQ(table.sin.values[2 * row + 1], second.sin.values[2 * row + 1]);
  }
}

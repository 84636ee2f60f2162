//===- DrawTest.cpp - what one run of the tests draws ---------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Draw.h"

#include <cmath>
#include <iterator>
#include <set>

using namespace posenc::test;

namespace {

std::vector<std::string> makeNames(size_t count) {
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i)
    names.push_back("Case" + std::to_string(i));
  return names;
}

/// test/Runner/draw.test expects the same of the function in Python.
TEST(DrawTest, IsThatOfPython) {
  EXPECT_EQ(rank("posenc", "Title/Case0"), 0x4ab314b2dd3fdb63u);
  EXPECT_EQ(rank("", ""), 0x23c49fa36281442fu);
  EXPECT_EQ(drawIndices("Title", makeNames(10), 3, "posenc"),
            (std::vector<size_t>{0, 4, 5, 8}));
}

TEST(DrawTest, WithoutSeedNothingIsLeftOut) {
  for (size_t count : {0, 1, 7}) {
    std::vector<size_t> drawn = drawIndices("T", makeNames(count), 3, nullptr);
    ASSERT_EQ(drawn.size(), count);
    for (size_t i = 0; i < count; ++i)
      EXPECT_EQ(drawn[i], i);
  }
}

TEST(DrawTest, AtLeastOneIsDrawn) {
  EXPECT_EQ(drawIndices("T", makeNames(2), 9, "1").size(), 1u);
  EXPECT_EQ(drawIndices("T", makeNames(1), 9, "1").size(), 1u);
  EXPECT_EQ(drawIndices("T", {}, 9, "1").size(), 0u);
}

/// The share of each run is exact, each case has the same share of the runs,
/// and two cases are drawn together as often as independent ones: of 1,000
/// runs, the numbers are within five standard deviations.
TEST(DrawTest, EachCaseHasItsShareOfTheRuns) {
  constexpr size_t kCases = 40, kShare = 4, kRuns = 1000;
  std::vector<std::string> names = makeNames(kCases);
  std::vector<size_t> runs(kCases), withNext(kCases);
  for (size_t run = 0; run < kRuns; ++run) {
    std::vector<size_t> drawn =
        drawIndices("T", names, kShare, std::to_string(run).c_str());
    ASSERT_EQ(drawn.size(), kCases / kShare);
    std::set<size_t> set(drawn.begin(), drawn.end());
    ASSERT_EQ(set.size(), drawn.size());
    for (size_t i : drawn) {
      ++runs[i];
      withNext[i] += set.count((i + 1) % kCases);
    }
  }
  auto expectNear = [&](size_t count, double probability) {
    EXPECT_NEAR(double(count), kRuns * probability,
                5 * std::sqrt(kRuns * probability * (1 - probability)));
  };
  for (size_t i = 0; i < kCases; ++i) {
    expectNear(runs[i], 1.0 / kShare);
    expectNear(withNext[i], 10. / 40 * 9 / 39);
  }
}

/// The cases of one title do not follow from those of another.
TEST(DrawTest, TitlesDrawOnTheirOwn) {
  EXPECT_NE(drawIndices("A", makeNames(40), 4, "1"),
            drawIndices("B", makeNames(40), 4, "1"));
}

} // namespace

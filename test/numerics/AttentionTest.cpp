//===- AttentionTest.cpp - compiled attention against the oracle *- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionCase.h"

#include <cmath>
#include <random>

using namespace posenc;
using namespace posenc::test;

namespace {

struct NamedCase {
  std::string name;
  AttentionCase c;
};

void PrintTo(const NamedCase &named, std::ostream *os) { *os << named.name; }

/// Sizes around those of tiles, more queries than keys, and nothing at all.
const AttentionSizes kSizes[] = {
    {2, 5, 7}, {1, 1, 1}, {3, 17, 33}, {1, 1, 70},  {2, 9, 4},   {2, 3, 0},
    {0, 3, 5}, {2, 0, 5}, {2, 7, 1},   {1, 37, 64}, {2, 19, 205}};

void check(const AttentionCase &c) {
  std::string module = getModule(c);
  Kernel kernel(module, c.route);
  uint64_t seed = 1;
  std::vector<AttentionSizes> all(std::begin(kSizes), std::end(kSizes));
  // Entries that begin and end anywhere in tiles of queries.
  if (c.form == Form::Packed || c.form == Form::PackedQueries)
    all.insert(all.end(), {{7, 150, 20}, {40, 7, 3}});
  for (AttentionSizes sizes : all) {
    if (c.staticQueries)
      sizes.queries = c.staticQueries;
    AttentionData data(c, sizes, seed += 100);
    auto call = [&](const char *what) {
      std::string error = data.check(kernel.call("f", data.getInputs()));
      EXPECT_EQ(error, "") << what << sizes.batch << " x " << sizes.queries
                           << " x " << sizes.keys << "\n"
                           << module;
    };
    call("");
    // What takes no part may be anything, and reaches nobody.
    if (data.spoilUnseen(seed) > 0)
      call("NaN beyond the masks, ");
    data.spoilSome(seed);
    call("NaN here and there, ");
  }
}

/// Each feature on its own, on every route that it has.
std::vector<NamedCase> getFeatures() {
  std::vector<NamedCase> cases;
  auto add = [&](std::string name, auto set) {
    AttentionCase c;
    set(c);
    for (Route route : {Route::Direct, Route::Linalg}) {
      c.route = route;
      cases.push_back({name + getName(route), c});
    }
    if (c.form == Form::Packed || c.form == Form::PackedQueries)
      return;
    c.route = Route::Direct;
    c.staticQueries = 1;
    cases.push_back({name + "OneQuery", c});
    const int64_t few[] = {2, 3, 5, 8};
    c.staticQueries = few[cases.size() / 4 % 4];
    cases.push_back({name + "FewQueries", c});
  };
  using Case = AttentionCase;
  add("Plain", [](Case &) {});
  add("F64", [](Case &c) { c.dtype = POSENC_F64, c.logSums = true; });
  add("F16", [](Case &c) { c.dtype = POSENC_F16, c.logSums = true; });
  add("BF16", [](Case &c) { c.dtype = POSENC_BF16, c.logSums = true; });
  add("QueryHeadMajor", [](Case &c) { c.queryHeadMajor = true; });
  add("KeyHeadMajor", [](Case &c) { c.keyHeadMajor = true; });
  add("OneHead", [](Case &c) { c.heads = c.keyHeads = 1; });
  add("ManyHeads", [](Case &c) { c.heads = 34, c.keyHeads = 2; });
  add("DynamicHeads", [](Case &c) { c.dynamicHeads = true; });
  add("OddDims", [](Case &c) { c.dim = 13, c.valueDim = 7; });
  add("Causal", [](Case &c) { c.causal = true; });
  add("Left", [](Case &c) { c.left = 3; });
  add("Right", [](Case &c) { c.right = 2; });
  add("Both", [](Case &c) { c.left = 0, c.right = 1; });
  add("Wide", [](Case &c) { c.left = c.right = INT64_MAX; });
  add("Scale", [](Case &c) { c.scale = 0.5; });
  add("SoftCap", [](Case &c) { c.softCap = true; });
  add("Alibi", [](Case &c) { c.alibi = true, c.heads = 6; });
  add("T5", [](Case &c) { c.t5 = true; });
  add("Where", [](Case &c) { c.where = true; });
  add("Document", [](Case &c) { c.document = true; });
  add("Sinks", [](Case &c) { c.sinks = c.logSums = true; });
  add("Norms", [](Case &c) { c.norms = true; });
  add("NormsPlusOne", [](Case &c) { c.norms = c.normsPlusOne = true; });
  add("NormsOfAllHeads", [](Case &c) {
    c.norms = c.normsOfAllHeads = true;
    c.queryAngles = c.keyAngles = Angles::Places;
  });
  add("NormsOfAllPages", [](Case &c) {
    c.form = Form::Paged, c.norms = c.normsOfAllHeads = true;
    c.keyHeadMajor = true;
  });
  add("NormsOfAllPacked", [](Case &c) {
    c.form = Form::Packed, c.norms = c.normsOfAllHeads = c.causal = true;
    c.queryHeadMajor = true;
  });
  add("Lengths", [](Case &c) { c.lengths = c.causal = c.logSums = true; });
  add("Packed", [](Case &c) { c.form = Form::Packed, c.causal = true; });
  add("PackedQueries", [](Case &c) { c.form = Form::PackedQueries; });
  add("PackedSinks", [](Case &c) {
    c.form = Form::Packed, c.sinks = c.logSums = true;
    c.queryHeadMajor = true;
  });
  add("PackedPositions", [](Case &c) {
    c.form = Form::Packed, c.keyHeadMajor = c.norms = true;
    c.queryAngles = Angles::Positions, c.keyAngles = Angles::Axes;
  });
  add("PackedPlaces", [](Case &c) {
    c.form = Form::Packed, c.causal = c.logSums = true, c.left = 9;
    c.queryAngles = c.keyAngles = Angles::Places;
  });
  add("Paged", [](Case &c) { c.form = Form::Paged, c.causal = true; });
  add("Places", [](Case &c) { c.queryAngles = c.keyAngles = Angles::Places; });
  add("Positions",
      [](Case &c) { c.queryAngles = c.keyAngles = Angles::Positions; });
  add("Axes", [](Case &c) { c.queryAngles = c.keyAngles = Angles::Axes; });
  add("Interleaved",
      [](Case &c) { c.queryAngles = Angles::Places, c.interleaved = true; });
  add("Added", [](Case &c) { c.mask = Mask::Added; });
  add("AddedToAll", [](Case &c) { c.mask = Mask::AddedToAll; });
  add("Boolean", [](Case &c) { c.mask = Mask::Boolean; });
  add("BooleanByKey", [](Case &c) { c.mask = Mask::BooleanByKey; });
  // What has tails, or a number of lanes in it, for other vectors, too.
  AttentionCase odd, packed;
  odd.dim = 21, odd.valueDim = 11, odd.causal = odd.norms = true;
  odd.queryAngles = odd.keyAngles = Angles::Places;
  packed.form = Form::Packed, packed.causal = packed.logSums = true;
  packed.dim = 9, packed.left = 50;
  for (Route route : {Route::Vectors128, Route::Vectors512}) {
    for (posenc_dtype dtype : {POSENC_F32, POSENC_BF16}) {
      odd.route = packed.route = route;
      odd.dtype = packed.dtype = dtype;
      std::string name = std::string(posenc_dtype_name(dtype)) + getName(route);
      cases.push_back({"Tails" + name, odd});
      cases.push_back({"PackedTails" + name, packed});
    }
  }
  // Products of pairs, by the arithmetic that stands in for the instruction.
  auto addDots = [&](std::string name, auto set) {
    AttentionCase c;
    c.dtype = POSENC_BF16;
    c.route = Route::Dots;
    set(c);
    cases.push_back({name + "Dots", c});
  };
  addDots("Plain", [](Case &) {});
  addDots("HeadMajor", [](Case &c) {
    c.queryHeadMajor = c.keyHeadMajor = c.lengths = c.causal = true;
  });
  addDots("Tails", [](Case &c) { c.dim = 22, c.valueDim = 7, c.left = 9; });
  addDots("Odd", [](Case &c) { c.dim = 13; });
  addDots("Rotated", [](Case &c) {
    c.norms = c.causal = c.interleaved = c.sinks = true;
    c.queryAngles = c.keyAngles = Angles::Positions;
  });
  addDots("Packed", [](Case &c) {
    c.form = Form::Packed, c.causal = true, c.left = 50;
    c.keyAngles = Angles::Places;
  });
  addDots("Paged", [](Case &c) {
    c.form = Form::Paged, c.causal = true, c.mask = Mask::Added;
  });
  addDots("Scores", [](Case &c) {
    c.softCap = c.alibi = c.t5 = c.where = c.document = true;
  });
  // Scores as large as the limits are for, of rows that are all rounded.
  addDots("Large", [](Case &c) {
    c.dim = c.valueDim = 128, c.scale = 4 / std::sqrt(128);
    c.queryAngles = c.keyAngles = Angles::Places;
  });
  return cases;
}

/// Features together, drawn by chance.
std::vector<NamedCase> getMixtures() {
  std::vector<NamedCase> cases;
  for (uint64_t seed = 0; seed < 80; ++seed) {
    std::mt19937_64 generator(seed);
    auto oneOf = [&](int64_t n) {
      return static_cast<int64_t>(generator() % n);
    };
    AttentionCase c;
    const posenc_dtype dtypes[] = {POSENC_F32, POSENC_F64, POSENC_F16,
                                   POSENC_BF16};
    c.dtype = dtypes[seed % 4];
    c.queryHeadMajor = oneOf(2);
    c.keyHeadMajor = oneOf(2);
    const std::pair<int64_t, int64_t> heads[] = {
        {1, 1}, {4, 2}, {3, 3}, {6, 1}, {20, 2}};
    std::tie(c.heads, c.keyHeads) = heads[oneOf(5)];
    c.dim = 12 + oneOf(10);
    c.valueDim = 1 + oneOf(20);
    c.form = static_cast<Form>(oneOf(4));
    c.lengths = c.form == Form::Padded && oneOf(2);
    c.causal = oneOf(2);
    if (oneOf(2))
      c.left = oneOf(12);
    if (oneOf(3) == 0)
      c.right = oneOf(12);
    if (oneOf(2))
      c.scale = 0.125;
    c.softCap = oneOf(2);
    c.alibi = oneOf(3) == 0;
    c.t5 = oneOf(3) == 0;
    c.where = oneOf(3) == 0;
    c.document = oneOf(3) == 0;
    c.sinks = oneOf(2);
    c.logSums = oneOf(2);
    c.norms = oneOf(2);
    c.normsPlusOne = oneOf(2);
    c.normsOfAllHeads = oneOf(2) && !c.dynamicHeads;
    c.queryAngles = static_cast<Angles>(oneOf(4));
    c.keyAngles = static_cast<Angles>(oneOf(4));
    c.interleaved = oneOf(2);
    bool isPacked = c.form == Form::Packed || c.form == Form::PackedQueries;
    if (!isPacked)
      c.mask = static_cast<Mask>(oneOf(5));
    // What has neither regions nor masks goes a way of its own for few queries.
    if (!isPacked && seed >= 40) {
      c.staticQueries = seed < 56 ? 1 : 2 + oneOf(7);
      c.dim = 16;
      c.valueDim = 8 * (1 + oneOf(3));
      c.softCap = c.alibi = c.t5 = c.where = c.document = false;
      c.mask = Mask::None;
    }
    c.route = oneOf(2) ? Route::Direct : Route::Linalg;
    cases.push_back({"Seed" + std::to_string(seed), c});
  }
  return cases;
}

class AttentionTest : public testing::TestWithParam<NamedCase> {};

TEST_P(AttentionTest, MatchesOracle) { check(GetParam().c); }

/// The checks above see NaNs that reach a query, and there are some to see.
TEST(AttentionTest, NaNsAreThere) {
  AttentionCase c;
  c.document = c.causal = c.logSums = true;
  std::string module = getModule(c);
  AttentionData data(c, {3, 6, 40}, 3), spoiled(c, {3, 6, 40}, 3);
  std::vector<runtime::Array> results =
      Kernel(module).call("f", data.getInputs());
  EXPECT_EQ(data.check(results), "");
  EXPECT_GT(data.spoilUnseen(1), 0u);
  EXPECT_EQ(data.check(results), "");
  spoiled.spoilSome(1);
  EXPECT_NE(spoiled.check(results), "");
  size_t numbers = 0, others = 0;
  for (long double value : spoiled.getExpected().output.values)
    ++(std::isfinite(value) ? numbers : others);
  EXPECT_GT(numbers, 0u);
  EXPECT_GT(others, 0u);
}

std::string getName(const testing::TestParamInfo<NamedCase> &info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(Features, AttentionTest,
                         testing::ValuesIn(getFeatures()), getName);
INSTANTIATE_TEST_SUITE_P(Mixtures, AttentionTest,
                         testing::ValuesIn(getMixtures()), getName);

} // namespace

//===- AttentionTest.cpp - compiled attention against the oracle ----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionCase.h"
#include "Draw.h"

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

/// Sizes around those of tiles, more queries than keys, and empty ones.
const AttentionSizes kSizes[] = {
    {2, 5, 7}, {1, 1, 1}, {3, 17, 33}, {1, 1, 70},  {2, 9, 4},   {2, 3, 0},
    {0, 3, 5}, {2, 0, 5}, {2, 7, 1},   {1, 37, 64}, {2, 19, 205}};

void check(const AttentionCase &c) {
  std::string module = getModule(c);
  Kernel kernel(module, c.route);
  uint64_t seed = 1;
  std::vector<AttentionSizes> all(std::begin(kSizes), std::end(kSizes));
  // Ragged sequences that begin and end anywhere in a query tile.
  if (c.form == Form::Ragged || c.form == Form::RaggedQueries)
    all.insert(all.end(), {{7, 150, 20}, {40, 7, 3}});
  for (AttentionSizes sizes : all) {
    if (c.staticQueries)
      sizes.queries = c.staticQueries;
    AttentionData data(c, sizes, seed += 100);
    auto expectRight = [&](const char *inputs) {
      std::string error = data.check(kernel.call("f", data.getInputs()));
      EXPECT_EQ(error, "") << inputs << sizes.batch << " x " << sizes.queries
                           << " x " << sizes.keys << "\n"
                           << module;
    };
    expectRight("");
    // Masked keys and values may be anything, and change no result.
    if (data.spoilUnseen(seed) > 0)
      expectRight("masked inputs are not finite, ");
    data.spoilSome(seed);
    expectRight("some inputs are not finite, ");
  }
}

/// Each feature on its own: on both lowerings, and in the decode kernel.
std::vector<NamedCase> getFeatures() {
  std::vector<NamedCase> cases;
  auto add = [&](std::string name, auto set) {
    AttentionCase c;
    set(c);
    for (Route route : {Route::Direct, Route::Linalg}) {
      c.route = route;
      cases.push_back({name + getName(route), c});
    }
    if (c.form == Form::Ragged || c.form == Form::RaggedQueries)
      return;
    c.route = Route::Direct;
    c.staticQueries = 1;
    cases.push_back({name + "OneQuery", c});
    const int64_t counts[] = {2, 3, 5, 8};
    c.staticQueries = counts[cases.size() / 4 % 4];
    cases.push_back({name + "MultiToken", c});
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
    c.queryAngles = c.keyAngles = Angles::TokenIndices;
  });
  add("NormsOfAllHeadsPaged", [](Case &c) {
    c.form = Form::Paged, c.norms = c.normsOfAllHeads = true;
    c.keyHeadMajor = true;
  });
  add("NormsOfAllHeadsRagged", [](Case &c) {
    c.form = Form::Ragged, c.norms = c.normsOfAllHeads = c.causal = true;
    c.queryHeadMajor = true;
  });
  add("Lengths", [](Case &c) { c.lengths = c.causal = c.logSums = true; });
  add("Ragged", [](Case &c) { c.form = Form::Ragged, c.causal = true; });
  add("RaggedQueries", [](Case &c) { c.form = Form::RaggedQueries; });
  add("RaggedSinks", [](Case &c) {
    c.form = Form::Ragged, c.sinks = c.logSums = true;
    c.queryHeadMajor = true;
  });
  add("RaggedPositions", [](Case &c) {
    c.form = Form::Ragged, c.keyHeadMajor = c.norms = true;
    c.queryAngles = Angles::Positions, c.keyAngles = Angles::Axes;
  });
  add("RaggedTokenIndices", [](Case &c) {
    c.form = Form::Ragged, c.causal = c.logSums = true, c.left = 9;
    c.queryAngles = c.keyAngles = Angles::TokenIndices;
  });
  add("Paged", [](Case &c) { c.form = Form::Paged, c.causal = true; });
  add("TokenIndices",
      [](Case &c) { c.queryAngles = c.keyAngles = Angles::TokenIndices; });
  add("Positions",
      [](Case &c) { c.queryAngles = c.keyAngles = Angles::Positions; });
  add("Axes", [](Case &c) { c.queryAngles = c.keyAngles = Angles::Axes; });
  add("Interleaved", [](Case &c) {
    c.queryAngles = Angles::TokenIndices, c.interleaved = true;
  });
  add("Added", [](Case &c) { c.mask = Mask::Added; });
  add("AddedToAll", [](Case &c) { c.mask = Mask::AddedToAll; });
  add("Boolean", [](Case &c) { c.mask = Mask::Boolean; });
  add("BooleanByKey", [](Case &c) { c.mask = Mask::BooleanByKey; });
  // Cases with remainders of vector loops, for other vector widths.
  AttentionCase odd, ragged;
  odd.dim = 21, odd.valueDim = 11, odd.causal = odd.norms = true;
  odd.queryAngles = odd.keyAngles = Angles::TokenIndices;
  ragged.form = Form::Ragged, ragged.causal = ragged.logSums = true;
  ragged.dim = 9, ragged.left = 50;
  for (Route route : {Route::Vectors128, Route::Vectors512}) {
    for (posenc_dtype dtype : {POSENC_F32, POSENC_BF16}) {
      odd.route = ragged.route = route;
      odd.dtype = ragged.dtype = dtype;
      std::string name = std::string(posenc_dtype_name(dtype)) + getName(route);
      cases.push_back({"Tails" + name, odd});
      cases.push_back({"RaggedTails" + name, ragged});
    }
  }
  // bf16 dot products and tiles. Where the CPU lacks VDPBF16PS or AMX, the
  // instruction is replaced by arithmetic with the same results.
  auto addBF16Dots = [&](std::string name, auto set) {
    AttentionCase c;
    c.dtype = POSENC_BF16;
    set(c);
    for (Route route : {Route::BF16Dots, Route::AMX}) {
      c.route = route;
      cases.push_back({name + getName(route), c});
    }
  };
  addBF16Dots("Plain", [](Case &) {});
  addBF16Dots("HeadMajor", [](Case &c) {
    c.queryHeadMajor = c.keyHeadMajor = c.lengths = c.causal = true;
  });
  addBF16Dots("Tails", [](Case &c) { c.dim = 22, c.valueDim = 7, c.left = 9; });
  addBF16Dots("PartsOfTiles",
              [](Case &c) { c.dim = 44, c.valueDim = 48, c.left = 9; });
  addBF16Dots("Odd", [](Case &c) { c.dim = 13; });
  // Blocks of several steps with AMX, of which windows see the middle, and
  // a number of columns that no block of four steps divides.
  addBF16Dots("Blocks", [](Case &c) {
    c.dim = c.valueDim = 128, c.causal = c.lengths = true;
    c.left = 70;
  });
  addBF16Dots("WideValues", [](Case &c) {
    c.dim = 32, c.valueDim = 160, c.causal = c.sinks = true;
  });
  addBF16Dots("Rotated", [](Case &c) {
    c.norms = c.causal = c.interleaved = c.sinks = true;
    c.queryAngles = c.keyAngles = Angles::Positions;
  });
  addBF16Dots("Ragged", [](Case &c) {
    c.form = Form::Ragged, c.causal = true, c.left = 50;
    c.keyAngles = Angles::TokenIndices;
  });
  addBF16Dots("Paged", [](Case &c) {
    c.form = Form::Paged, c.causal = true, c.mask = Mask::Added;
  });
  addBF16Dots("Scores", [](Case &c) {
    c.softCap = c.alibi = c.t5 = c.where = c.document = true;
  });
  addBF16Dots("Regions", [](Case &c) {
    c.softCap = c.alibi = c.where = c.causal = c.lengths = true;
  });
  // With AMX, elements for pairs are loaded before the steps.
  addBF16Dots("BooleanMask", [](Case &c) {
    c.mask = Mask::Boolean, c.causal = c.lengths = true;
    c.valueDim = 48;
  });
  addBF16Dots("AddedMask", [](Case &c) { c.mask = Mask::AddedToAll; });
  addBF16Dots("LowestMask", [](Case &c) { c.mask = Mask::AddedLowest; });
  addBF16Dots("T5", [](Case &c) { c.t5 = c.causal = true, c.left = 40; });
  addBF16Dots("SinksAndLogSums", [](Case &c) {
    c.sinks = c.logSums = c.causal = c.lengths = true;
  });
  addBF16Dots("LogSums",
              [](Case &c) { c.logSums = true, c.mask = Mask::Added; });
  addBF16Dots("RotatedLogSums", [](Case &c) {
    c.logSums = true, c.queryAngles = c.keyAngles = Angles::Positions;
  });
  // A masked score times the scale must not become infinite or NaN.
  addBF16Dots("NegativeScale",
              [](Case &c) { c.causal = true, c.scale = -0.5; });
  addBF16Dots("ZeroScale", [](Case &c) { c.causal = true, c.scale = 0; });
  // Scores as large as the error limits allow for, of rows rounded to bf16.
  addBF16Dots("Large", [](Case &c) {
    c.dim = c.valueDim = 128, c.scale = 4 / std::sqrt(128);
    c.queryAngles = c.keyAngles = Angles::TokenIndices;
  });
  return cases;
}

/// Random combinations of features.
std::vector<NamedCase> getMixtures() {
  std::vector<NamedCase> cases;
  for (uint64_t seed = 0; seed < 48; ++seed) {
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
    bool isRagged = c.form == Form::Ragged || c.form == Form::RaggedQueries;
    if (!isRagged)
      c.mask = static_cast<Mask>(oneOf(5));
    // The decode kernel, without regions and masks.
    if (!isRagged && seed >= 24) {
      c.staticQueries = seed < 34 ? 1 : 2 + oneOf(7);
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

/// The checks above detect NaNs that reach a query, and their inputs have some.
TEST(AttentionTest, NonFiniteInputsAreDetected) {
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
  size_t finite = 0, nonFinite = 0;
  for (long double value : spoiled.getExpected().output.values)
    ++(std::isfinite(value) ? finite : nonFinite);
  EXPECT_GT(finite, 0u);
  EXPECT_GT(nonFinite, 0u);
}

/// Pipelined steps of AMX: each remainder of a query tile and of a step,
/// several tiles of keys, and scores that exceed those of the first keys by
/// far.
TEST(AttentionTest, AMXSteps) {
  AttentionCase c;
  c.dtype = POSENC_BF16, c.heads = 2, c.keyHeads = 1;
  c.dim = 32, c.valueDim = 64;
  c.causal = c.lengths = true;
  c.route = Route::AMX;
  auto check = [&](const Kernel &kernel, AttentionSizes sizes, uint64_t seed) {
    AttentionData data(c, sizes, seed);
    EXPECT_EQ(data.check(kernel.call("f", data.getInputs())), "")
        << sizes.queries << " x " << sizes.keys;
  };
  Kernel kernel(getModule(c), c.route);
  for (int64_t tokens = 1; tokens <= 70; ++tokens)
    check(kernel, {2, tokens, tokens}, tokens);
  check(kernel, {1, 40, 2049}, /*seed=*/71);
  c.scale = 8;
  check(Kernel(getModule(c), c.route), {2, 70, 400}, /*seed=*/72);
}

std::string getName(const testing::TestParamInfo<NamedCase> &info) {
  return info.param.name;
}

/// Returns what this run has: each feature on the direct route, and one in
/// three of its pairs with another route or with the decode kernel.
std::vector<NamedCase> drawFeatures() {
  std::vector<NamedCase> cases, others;
  for (const NamedCase &named : getFeatures()) {
    bool isDirect = named.c.route == Route::Direct && !named.c.staticQueries;
    (isDirect ? cases : others).push_back(named);
  }
  others = drawCases("Features/AttentionTest", others, 3, getName);
  cases.insert(cases.end(), others.begin(), others.end());
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Features, AttentionTest,
                         testing::ValuesIn(drawFeatures()), getName);
INSTANTIATE_TEST_SUITE_P(Mixtures, AttentionTest,
                         testing::ValuesIn(drawCases("Mixtures/AttentionTest",
                                                     getMixtures(), 3,
                                                     getName)),
                         getName);

} // namespace

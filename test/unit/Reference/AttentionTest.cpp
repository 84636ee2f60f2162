//===- AttentionTest.cpp - attention by hand and by golden numbers --------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionTestUtils.h"

#include "posenc/Reference/Bias.h"

#include <limits>

using namespace posenc::reference;

static constexpr long double infinity =
    std::numeric_limits<long double>::infinity();

/// Returns a tensor of rank 4 with one sequence and one head, a token per row.
static Array rows(std::vector<std::vector<long double>> values) {
  Array result;
  result.shape = {1, int64_t(values.size()), 1, int64_t(values[0].size())};
  for (const std::vector<long double> &row : values)
    result.values.insert(result.values.end(), row.begin(), row.end());
  return result;
}

TEST(Attention, ByHand) {
  // Scores ln 3 and 0 after scaling: weights 3/4 and 1/4.
  Operands x{rows({{std::log(3.0L), 0}}), rows({{2, 5}, {0, 7}}),
             rows({{4, -8, 1}, {8, 16, 1}})};
  AttentionSpec spec;
  spec.scale = 0.5;
  AttentionResult result = attend(x, spec);
  EXPECT_EQ(result.output.shape, (std::vector<int64_t>{1, 1, 1, 3}));
  EXPECT_EQ(result.logSumExp.shape, (std::vector<int64_t>{1, 1, 1}));
  expectNear(result.output.values, {5, -2, 1});
  expectNear(result.output.magnitude, {5, 10, 1});
  expectNear(result.logSumExp.values, {std::log(4.0L)});
  EXPECT_EQ(result.largestValue, (std::vector<double>{16}));
  // The default scale for two channels.
  spec.scale = {};
  x.q = rows({{std::log(3.0L) / std::sqrt(2.0L), 0}});
  expectNear(attend(x, spec).output.values, {5, -2, 1});
}

TEST(Attention, CausalWindowAndPositionsByHand) {
  // All scores are equal, so the output is the mean of the visible values.
  Operands x{rows({{0}, {0}}), rows({{0}, {0}, {0}, {0}}),
             rows({{1}, {2}, {4}, {8}})};
  AttentionSpec spec;
  expectNear(attend(x, spec).output.values, {3.75L, 3.75L});
  spec.causal = true;
  expectNear(attend(x, spec).output.values, {7 / 3.0L, 3.75L});
  spec.left = 1;
  expectNear(attend(x, spec).output.values, {3, 6});
  spec.left = 0;
  expectNear(attend(x, spec).output.values, {4, 8});
  spec.causal = false;
  spec.right = 1;
  expectNear(attend(x, spec).output.values, {6, 8});
  spec.left = std::numeric_limits<int64_t>::max();
  spec.right = 0;
  expectNear(attend(x, spec).output.values, {7 / 3.0L, 3.75L});
  // Functions get query positions, while masks are indexed by query.
  AttentionSpec diagonal;
  diagonal.sees = [](int64_t, int64_t, int64_t position, int64_t key) {
    return position == key;
  };
  expectNear(attend(x, diagonal).output.values, {4, 8});
  AttentionSpec masked;
  masked.mask = AttentionMask{{{2, 4}, {1, 0, 0, 0, 0, 1, 0, 0}, {}}, true};
  expectNear(attend(x, masked).output.values, {1, 2});
  // With more queries than keys, the first positions are before all keys.
  std::swap(x.q, x.k);
  x.v = rows({{3}, {5}});
  AttentionSpec causal;
  causal.causal = true;
  AttentionResult result = attend(x, causal);
  expectNear(result.output.values, {0, 0, 3, 4});
  EXPECT_EQ(result.output.magnitude[1], -1);
  EXPECT_EQ(result.logSumExp.values[1], -infinity);
}

TEST(Attention, SinkByHand) {
  Operands x{rows({{0}}), rows({{0}, {0}}), rows({{6}, {9}})};
  AttentionSpec spec;
  spec.sinks = {0};
  AttentionResult result = attend(x, spec);
  expectNear(result.output.values, {5});
  expectNear(result.output.magnitude, {5});
  expectNear(result.logSumExp.values, {std::log(3.0L)});
  // A sink far above the scores must not overflow.
  spec.sinks = {1e4};
  result = attend(x, spec);
  expectNear(result.output.values, {0});
  expectNear(result.logSumExp.values, {1e4L}, 1e-11L);
  spec.sees = [](int64_t, int64_t, int64_t, int64_t) { return false; };
  result = attend(x, spec);
  EXPECT_EQ(result.output.values[0], 0);
  EXPECT_EQ(result.output.magnitude[0], -1);
  EXPECT_EQ(result.logSumExp.values[0], 1e4L);
}

TEST(Attention, NormByHand) {
  // The root of the mean square of (1, 7) with epsilon 11 is 6.
  Operands x{rows({{1, 7}}), rows({{6, 0}, {0, 6}}), rows({{1}, {2}})};
  AttentionSpec spec;
  spec.scale = 1.0;
  spec.queryNorm = RmsNorm{{6, 12}, 11};
  double scores[2] = {};
  spec.score = [&](double s, int64_t, int64_t, int64_t, int64_t key) {
    return scores[key] = s;
  };
  attend(x, spec);
  EXPECT_NEAR(scores[0], 6, 1e-13);
  EXPECT_NEAR(scores[1], 84, 1e-13);
  spec.queryNorm = {};
  spec.keyNorm = RmsNorm{{1, 2}, 18};
  attend(x, spec);
  EXPECT_NEAR(scores[0], 1, 1e-13);
  EXPECT_NEAR(scores[1], 14, 1e-13);
}

TEST(Attention, LargeScoresStayFinite) {
  Operands x{rows({{100}, {-100}}), rows({{100}, {-100}, {99}}),
             rows({{1}, {2}, {4}})};
  AttentionSpec spec;
  AttentionResult result = attend(x, spec);
  expectNear(result.output.values, {1, 2});
  expectNear(result.logSumExp.values, {1e4L, 1e4L}, 1e-11L);
}

TEST(Attention, SpecialValues) {
  const long double nan = std::numeric_limits<long double>::quiet_NaN();
  AttentionSpec spec;
  spec.mask = AttentionMask{{{3}, {1, 0, 1}, {}}, true};
  // A masked key is not read, so its NaN has no effect.
  Operands x{rows({{1}}), rows({{1}, {nan}, {1}}), rows({{1}, {nan}, {3}})};
  expectNear(attend(x, spec).output.values, {2});
  EXPECT_EQ(attend(x, spec).largestValue[0], 3);
  spec.mask = AttentionMask{{{3}, {0, -infinity, 0}, {}}, false};
  x.k = rows({{1}, {1}, {1}});
  expectNear(attend(x, spec).output.values, {2});
  // A mask of -infinity removes a key even if its score is NaN.
  x.k = rows({{1}, {nan}, {1}});
  expectNear(attend(x, spec).output.values, {2});
  x.k = rows({{1}, {1}, {1}});
  // If all scores are -infinity, the row has no visible keys.
  spec.mask->array.values = {-infinity, -infinity, -infinity};
  EXPECT_EQ(attend(x, spec).output.values[0], 0);
  EXPECT_EQ(attend(x, spec).logSumExp.values[0], -infinity);
  // NaN and +infinity in the score of a visible key make the result NaN.
  for (long double bad : {nan, infinity}) {
    AttentionSpec plain;
    Operands y{rows({{1}}), rows({{1}, {bad}}), rows({{1}, {3}})};
    EXPECT_TRUE(std::isnan(attend(y, plain).output.values[0]));
  }
  x.k = rows({{nan}, {nan}, {nan}});
  x.v = rows({{1}, {2}, {3}});
  EXPECT_TRUE(std::isnan(attend(x, AttentionSpec()).output.values[0]));
}

TEST(Attention, LargestValueIsFinite) {
  // An infinite value would make the bound of the other column infinite.
  AttentionResult result = attend(
      {rows({{0}}), rows({{0}, {0}}), rows({{infinity, 1}, {0, -3}})}, {});
  EXPECT_EQ(result.output.values, (std::vector<long double>{infinity, -1}));
  EXPECT_EQ(result.largestValue[0], 3);
}

TEST(Attention, EmptyOperands) {
  for (Sizes sizes : {Sizes{0, 5, 9}, Sizes{2, 0, 9}, Sizes{2, 5, 0},
                      Sizes{2, 5, 9, 0, 0}, Sizes{2, 5, 9, 4, 2, 8, 0}}) {
    Operands x = randomOperands(sizes);
    AttentionResult result = attend(x, AttentionSpec());
    EXPECT_EQ(int64_t(result.output.values.size()),
              sizes.sequences * sizes.queries * sizes.heads * sizes.valueWidth);
    for (long double value : result.output.values)
      EXPECT_EQ(value, 0);
    if (sizes.valueWidth)
      for (long double value : result.logSumExp.values)
        EXPECT_EQ(value, -infinity);
  }
}

/// Returns a tensor whose element n is ((7 n^2 + 3 n + seed) mod 17 - 8) / 4.
static Array pattern(std::vector<int64_t> shape, int64_t seed) {
  Array result;
  for (int64_t n = 0; n < numElements(shape); ++n)
    result.values.push_back((long double)((7 * n * n + 3 * n + seed) % 17 - 8) /
                            4);
  result.shape = std::move(shape);
  return result;
}

// Golden numbers computed with mpmath, with 60 digits, from the formulas and
// the pattern.

TEST(Attention, GoldenSoftCapAndSinks) {
  AttentionSpec spec;
  spec.queryLayout = spec.keyLayout = TokenLayout::HeadMajor;
  spec.causal = true;
  spec.sinks = {0.25, -1};
  spec.score = [](double s, int64_t, int64_t, int64_t, int64_t) {
    return softCap(s, 2);
  };
  AttentionResult result =
      attend({pattern({1, 2, 2, 4}, 1), pattern({1, 1, 3, 4}, 5),
              pattern({1, 1, 3, 2}, 11)},
             spec);
  expectNear(result.output.values,
             {0.61138708080961992689L, -0.29176555732920385245L,
              0.82495939841126308303L, 0.58487129378266650058L,
              0.70346042473675068124L, 1.5006782567037163508L,
              0.87039541012215398878L, -0.1020560105832057811L},
             1e-15L);
  expectNear(result.logSumExp.values,
             {1.9383879120667223504L, 1.0361957549460389073L,
              1.7797701749709681826L, 2.0098124313567572911L},
             1e-15L);
}

TEST(Attention, GoldenNormRotationAlibiAndWindow) {
  AttentionSpec spec;
  spec.causal = true;
  spec.left = 2;
  spec.queryNorm = RmsNorm{{1, 0.5, 2, 1}, 0x1p-10};
  spec.queryRotation = spec.keyRotation = rotationOf(4);
  spec.score = [](double s, int64_t, int64_t, int64_t position, int64_t key) {
    return s + alibiBias(0, 8, position, key);
  };
  AttentionResult result =
      attend({pattern({1, 3, 1, 4}, 1), pattern({1, 4, 1, 4}, 5),
              pattern({1, 4, 1, 3}, 11)},
             spec);
  expectNear(result.output.values,
             {1.473514139428733873L, 1.1705424182862016189L,
              1.2926356045715504047L, 0.72298689542091579694L,
              -0.95963985808342936245L, 0.6285739585208341421L,
              0.61519339274169092628L, 0.59784952469752829121L,
              -0.08148110077323512007L},
             1e-15L);
  expectNear(
      result.logSumExp.values,
      {1.3446845198535311701L, 0.67576885720757016485L, 1.1142311711588515101L},
      1e-15L);
}

namespace {
/// A valid call, which each test case makes invalid by one change.
struct Call {
  Operands x = randomOperands({});
  AttentionSpec spec;

  std::string check() const { return checkAttention(x.q, x.k, x.v, spec); }
};
} // namespace

template <typename Change>
static std::string reasonAfter(const Change &change) {
  Call call;
  EXPECT_EQ(call.check(), "");
  change(call);
  return call.check();
}

TEST(Attention, RejectsInvalidArguments) {
  const std::vector<void (*)(Call &)> changes = {
      [](Call &c) { c.x.q.shape = {2, 5, 32}; },
      [](Call &c) { c.x.q.shape[0] = -2; },
      [](Call &c) { c.x.q.values.pop_back(); },
      [](Call &c) { c.x.v.shape = {2, 9, 1, 12}; },
      [](Call &c) { c.x.q.shape = {2, 5, 8, 4}; },
      [](Call &c) { c.x.q = randomArray({2, 5, 3, 8}, DType::F32); },
      [](Call &c) { c.x.q = randomArray({3, 5, 4, 8}, DType::F32); },
      [](Call &c) { c.spec.keyLengths = {9}; },
      [](Call &c) { c.spec.keyLengths = {9, 10}; },
      [](Call &c) { c.spec.keyLengths = {-1, 9}; },
      [](Call &c) { c.spec.queryStarts = {0, 2, 5}; },
      [](Call &c) { c.spec.left = -1; },
      [](Call &c) { c.spec.right = -1; },
      [](Call &c) { c.spec.sinks = {1, 2}; },
      [](Call &c) { c.spec.queryNorm = RmsNorm{{1, 2}, 0}; },
      [](Call &c) { c.spec.keyNorm = RmsNorm{std::vector<double>(8, 1), -1}; },
      [](Call &c) { c.spec.queryRotation = rotationOf(7); },
      [](Call &c) { c.spec.keyRotation = rotationOf(10); },
      [](Call &c) { c.spec.keyRotation = rotationOf(8, {1, 2, 3}); },
      [](Call &c) { c.spec.mask = AttentionMask{{{5, 8}, {}, {}}, true}; },
      [](Call &c) {
        c.spec.mask = AttentionMask{randomArray({5, 8}, DType::F32), true};
      },
      [](Call &c) {
        c.spec.mask = AttentionMask{randomArray({3, 1, 1, 9}, DType::F32)};
      },
      [](Call &c) {
        c.spec.mask = AttentionMask{randomArray({1, 1, 1, 1, 1}, DType::F32)};
      },
      [](Call &c) { c.spec.blockTable = BlockTable{{0, 1}, 1}; },
      [](Call &c) {
        c.spec.blockTable = BlockTable{{0, 2}, 1};
        c.spec.keyLengths = {1, 1};
      },
      [](Call &c) {
        c.spec.blockTable = BlockTable{{0, -1}, 1};
        c.spec.keyLengths = {1, 1};
      },
      [](Call &c) {
        c.spec.blockTable = BlockTable{{0, 1}, 1};
        c.spec.keyLengths = {1, 10};
      },
      [](Call &c) {
        c.spec.blockTable = BlockTable{{0, 1, 0}, 1};
        c.spec.keyLengths = {1, 1};
      },
  };
  for (size_t i = 0; i < changes.size(); ++i)
    EXPECT_NE(reasonAfter(changes[i]), "") << "change " << i;
  // Table elements of pages without valid keys are not checked.
  EXPECT_EQ(reasonAfter([](Call &c) {
              c.spec.blockTable = BlockTable{{0, -1, 1, 7}, 2};
              c.spec.keyLengths = {9, 0};
            }),
            "");
  auto ragged = [](std::vector<int64_t> starts) {
    Operands x{randomArray({5, 4, 8}, DType::F32),
               randomArray({5, 2, 8}, DType::F32),
               randomArray({5, 2, 8}, DType::F32)};
    AttentionSpec spec;
    spec.queryStarts = {0, 2, 5};
    spec.keyStarts = std::move(starts);
    return checkAttention(x.q, x.k, x.v, spec);
  };
  EXPECT_EQ(ragged({0, 3, 5}), "");
  EXPECT_NE(ragged({1, 3, 5}), "");
  EXPECT_NE(ragged({0, 4, 3}), "");
  EXPECT_NE(ragged({0, 3, 6}), "");
  EXPECT_NE(ragged({0, 5}), "");
}

TEST(AttentionDeathTest, AbortsOnInvalidArguments) {
  Operands x = randomOperands({});
  AttentionSpec spec;
  spec.left = -1;
  EXPECT_DEATH(attention(x.q, x.k, x.v, spec), "window");
}

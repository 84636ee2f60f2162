//===- RopeTest.cpp - algebraic properties of rotations -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestUtils.h"

using namespace posenc::reference;

static Array ropeAt(const Array &x, const FrequencySpec &spec, int64_t position,
                    RotateOptions options = {}) {
  return rope(x, spec, {}, std::vector<int64_t>{position}, options);
}

static long double dot(const Array &a, const Array &b) {
  long double sum = 0;
  for (size_t i = 0; i < a.values.size(); ++i)
    sum += a.values[i] * b.values[i];
  return sum;
}

static void expectNear(const Array &a, const Array &b, long double bound) {
  ASSERT_EQ(a.shape, b.shape);
  for (size_t i = 0; i < a.values.size(); ++i)
    EXPECT_LE(std::fabs(a.values[i] - b.values[i]), bound) << "lane " << i;
}

/// Rotates a single vector at a scalar position.
static Array vectorOf(int64_t dim, unsigned seed) {
  Array x = randomArray({1, dim}, DType::F32, seed);
  x.shape = {dim};
  return x;
}

TEST(Rope, PositionZeroIsTheIdentity) {
  Array x = vectorOf(64, 1);
  EXPECT_EQ(ropeAt(x, plainSpec(64), 0).values, x.values);
  FrequencySpec scaled = plainSpec(64);
  scaled.attentionFactor = Real(1.5);
  Array result = ropeAt(x, scaled, 0);
  for (size_t i = 0; i < 64; ++i)
    EXPECT_EQ(result.values[i], 1.5L * x.values[i]);
}

TEST(Rope, ScoresDependOnRelativePositionsOnly) {
  FrequencySpec spec = plainSpec(64);
  Array q = vectorOf(64, 1), k = vectorOf(64, 2);
  for (int64_t distance : {0, 1, 17, 1000000}) {
    long double score = dot(ropeAt(q, spec, distance), ropeAt(k, spec, 0));
    for (int64_t base : {int64_t(1), int64_t(4095), int64_t(2147483647),
                         int64_t(-2147483648), int64_t(1) << 62}) {
      long double moved =
          dot(ropeAt(q, spec, base + distance), ropeAt(k, spec, base));
      EXPECT_LE(std::fabs(moved - score), 1e-16L)
          << "distance " << distance << " at " << base;
    }
  }
}

TEST(Rope, RotationsAdd) {
  FrequencySpec spec = plainSpec(64);
  Array x = vectorOf(64, 3);
  Array twice = ropeAt(ropeAt(x, spec, 2147483647), spec, 41);
  expectNear(twice, ropeAt(x, spec, int64_t(2147483647) + 41), 1e-17L);
}

TEST(Rope, KeepsTheNorm) {
  Array x = vectorOf(64, 4);
  for (int64_t position : {int64_t(1), INT64_MAX, INT64_MIN}) {
    Array result = ropeAt(x, plainSpec(64), position);
    EXPECT_TRUE(isClose(dot(result, result), dot(x, x), 0x1p-58L));
  }
}

TEST(Rope, InverseUndoesTheAttentionFactorToo) {
  Array x = vectorOf(16, 5);
  RotateOptions inverse;
  inverse.inverse = true;
  for (bool interleaved : {false, true}) {
    RotateOptions forward;
    forward.interleaved = inverse.interleaved = interleaved;
    Array there = ropeAt(x, scaledSpec(), 12345, forward);
    expectNear(ropeAt(there, scaledSpec(), 12345, inverse), x, 1e-17L);
  }
  inverse.interleaved = false;
  // With a factor of 1, the inverse is the rotation by the negated position.
  expectNear(ropeAt(x, plainSpec(16), 99, inverse),
             ropeAt(x, plainSpec(16), -99), 0.0L);
  FrequencySpec vanishing = plainSpec(16);
  vanishing.attentionFactor = Real(0.0);
  EXPECT_EQ(checkRope(x, vanishing, {}, {1}, {}), "");
  EXPECT_NE(checkRope(x, vanishing, {}, {1}, inverse), "");
}

TEST(Rope, PairingsAreEqualUpToAPermutation) {
  const int64_t dim = 32;
  Array x = vectorOf(dim, 6);
  auto permute = [&](const Array &from) {
    Array to = from;
    for (size_t i = 0; i < size_t(dim / 2); ++i) {
      to.values[i] = from.values[2 * i];
      to.values[i + size_t(dim / 2)] = from.values[2 * i + 1];
    }
    return to;
  };
  RotateOptions interleaved;
  interleaved.interleaved = true;
  Array a = permute(ropeAt(x, plainSpec(dim), 777, interleaved));
  Array b = ropeAt(permute(x), plainSpec(dim), 777);
  EXPECT_EQ(a.values, b.values);
}

TEST(Rope, MatchesTablesAndRotate) {
  // 3 x 5 positions, some of which repeat, in a tensor of two heads.
  Array x = randomArray({3, 5, 2, 16}, DType::BF16);
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < 15; ++i)
    positions.push_back(i % 7 * 1000);
  for (const FrequencySpec &spec : {plainSpec(16), scaledSpec()}) {
    CosSinTable table = sincos(spec, {}, positions, {3, 5});
    RotateOptions options = rotateAlong({0, 1});
    Array expected = rotate(x, table.cos, table.sin, options);
    Array result = rope(x, spec, {}, positions, options);
    EXPECT_EQ(result.values, expected.values);
    EXPECT_EQ(result.magnitude, expected.magnitude);
  }
}

TEST(Rope, AxesRotateTheirOwnPairs) {
  // Equal positions on all axes are the same as a single axis.
  Array x = randomArray({4, 16}, DType::F32);
  std::vector<int64_t> positions{3, 1, 4, 1}, thrice;
  for (int axis = 0; axis < 3; ++axis)
    thrice.insert(thrice.end(), positions.begin(), positions.end());
  Array single = rope(x, plainSpec(16), {}, positions, rotateAlong({0}));
  for (auto kind : {AxesKind::Sections, AxesKind::InterleavedSections})
    EXPECT_EQ(
        rope(x, plainSpec(16), {kind, {2, 3, 3}}, thrice, rotateAlong({0}))
            .values,
        single.values);
}

TEST(Rope, RepeatedRowsShareTheirAngles) {
  // Rows that are equal on only one axis must not share angles.
  AxesSpec axes{AxesKind::Sections, {1, 1}};
  CosSinTable table = sincos(plainSpec(4), axes, {7, 7, 8, 7, 1, 2, 1, 1}, {4});
  auto row = [&](size_t r) {
    return std::vector<long double>{table.sin.values[2 * r],
                                    table.sin.values[2 * r + 1]};
  };
  EXPECT_EQ(row(0), row(3));
  EXPECT_EQ(row(0)[0], row(1)[0]);
  EXPECT_NE(row(0)[1], row(1)[1]);
  EXPECT_NE(row(0)[0], row(2)[0]);
  EXPECT_EQ(row(0)[1], row(2)[1]);
}

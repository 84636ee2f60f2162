//===- BiasTest.cpp - biases on attention scores --------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestUtils.h"

#include "posenc/Reference/Bias.h"

using namespace posenc::reference;

TEST(Alibi, Slopes) {
  for (int64_t h = 0; h < 8; ++h)
    EXPECT_EQ(alibiSlope(h, 8), std::ldexp(1.0, -int(h) - 1));
  EXPECT_NEAR(alibiSlope(0, 16), std::sqrt(0.5), 1e-15);
  EXPECT_EQ(alibiSlope(0, 1), 0x1p-8);
  // Twelve heads have the slopes of 8 heads and every other one of 16 heads.
  for (int64_t h = 0; h < 12; ++h)
    EXPECT_EQ(alibiSlope(h, 12),
              h < 8 ? alibiSlope(h, 8) : alibiSlope(2 * (h - 8), 16));
}

TEST(Alibi, DecreasesOnBothSides) {
  EXPECT_EQ(alibiBias(1, 8, 5, 3), -0.5);
  EXPECT_EQ(alibiBias(1, 8, 3, 5), -0.5);
  EXPECT_EQ(alibiBias(1, 8, 3, 3), 0);
}

static std::vector<int64_t> bucketRow(int64_t query, int64_t keys,
                                      const T5Buckets &spec = {}) {
  std::vector<int64_t> row;
  for (int64_t key = 0; key < keys; ++key)
    row.push_back(t5Bucket(key - query, spec));
  return row;
}

TEST(T5, GoldenRows) {
  EXPECT_EQ(bucketRow(0, 12), (std::vector<int64_t>{0, 17, 18, 19, 20, 21, 22,
                                                    23, 24, 24, 24, 24}));
  EXPECT_EQ(bucketRow(5, 12),
            (std::vector<int64_t>{5, 4, 3, 2, 1, 0, 17, 18, 19, 20, 21, 22}));
}

TEST(T5, BucketsStartAtIntegerLogarithms) {
  // 8 * 16^(t/8): 8, 11.3, 16, 22.6, 32, 45.3, 64, 90.5, and 128.
  const int64_t begins[] = {8, 12, 16, 23, 32, 46, 64, 91};
  for (int64_t t = 0; t < 8; ++t) {
    EXPECT_EQ(t5Bucket(-begins[t]), 8 + t) << begins[t];
    EXPECT_EQ(t5Bucket(1 - begins[t]), 7 + t) << begins[t];
    EXPECT_EQ(t5Bucket(begins[t]), 24 + t) << begins[t];
  }
  for (int64_t far : {int64_t(127), int64_t(128), int64_t(1) << 40, INT64_MAX})
    EXPECT_EQ(t5Bucket(-far), 15);
  EXPECT_EQ(t5Bucket(INT64_MIN), 15);
  EXPECT_EQ(t5Bucket(INT64_MAX), 31);
}

TEST(T5, IntegerLogarithmsAreExact) {
  // ln 5 / ln 125 * 3 is 1, but is rounded below 1 in 320 bits.
  T5Buckets spec{6, 375, false};
  EXPECT_EQ(t5Bucket(-14, spec), 3);
  EXPECT_EQ(t5Bucket(-15, spec), 4);
  EXPECT_EQ(t5Bucket(-74, spec), 4);
  EXPECT_EQ(t5Bucket(-75, spec), 5);
}

TEST(T5, OneDirection) {
  T5Buckets spec;
  spec.bidirectional = false;
  EXPECT_EQ(t5Bucket(3, spec), 0);
  EXPECT_EQ(t5Bucket(INT64_MAX, spec), 0);
  for (int64_t distance = 0; distance < 16; ++distance)
    EXPECT_EQ(t5Bucket(-distance, spec), distance);
  EXPECT_EQ(t5Bucket(-16, spec), 16);
  EXPECT_EQ(t5Bucket(-127, spec), 31);
  EXPECT_EQ(t5Bucket(-128, spec), 31);
}

TEST(T5, RejectsInvalidArguments) {
  EXPECT_EQ(check(T5Buckets{}), "");
  EXPECT_EQ(check(T5Buckets{2, 2, false}), "");
  EXPECT_NE(check(T5Buckets{33, 128, true}), "");
  EXPECT_NE(check(T5Buckets{2, 128, true}), "");
  EXPECT_NE(check(T5Buckets{1, 128, false}), "");
  EXPECT_NE(check(T5Buckets{0, 128, true}), "");
  EXPECT_NE(check(T5Buckets{32, 8, true}), "");
  EXPECT_EQ(check(T5Buckets{32, 9, true}), "");
}

TEST(Shaw, ClipsTheRelativePosition) {
  EXPECT_EQ(shawIndex(5, 5, 3), 3);
  EXPECT_EQ(shawIndex(5, 7, 3), 5);
  EXPECT_EQ(shawIndex(5, 8, 3), 6);
  EXPECT_EQ(shawIndex(5, 9, 3), 6);
  EXPECT_EQ(shawIndex(5, 2, 3), 0);
  EXPECT_EQ(shawIndex(5, 0, 3), 0);
  EXPECT_EQ(shawIndex(5, 0, 0), 0);
}

TEST(SoftCap, StaysBelowItsCap) {
  EXPECT_NEAR(softCap(1, 50), 1, 2e-4);
  EXPECT_EQ(softCap(1e6, 50), 50);
  EXPECT_EQ(softCap(-1e6, 50), -50);
  EXPECT_NEAR(softCap(50, 50), 50 * std::tanh(1.0), 1e-14);
}

TEST(RelShift, ByHand) {
  Array scores{{2, 3}, {1, 2, 3, 4, 5, 6}, {}};
  EXPECT_EQ(relShift(scores).values,
            (std::vector<long double>{2, 3, 0, 4, 5, 6}));
  Array square{{3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}, {}};
  EXPECT_EQ(relShift(square).values,
            (std::vector<long double>{3, 0, 4, 5, 6, 0, 7, 8, 9}));
  Array empty{{2, 0, 3}, {}, {}};
  EXPECT_EQ(relShift(empty).values.size(), 0u);
}

TEST(RelShift, AlignsRelativePositions) {
  // Column c of the input has the relative position keys - 1 - c. In the
  // result, column j of query i has the one of key j, if it is not negative.
  const int64_t queries = 4, keys = 6;
  Array scores{{2, 3, queries, keys}, {}, {}};
  for (int64_t n = 0; n < numElements(scores.shape); ++n)
    scores.values.push_back(
        (long double)(n / keys * 100 + keys - 1 - n % keys));
  Array shifted = relShift(scores);
  ASSERT_EQ(shifted.shape, scores.shape);
  for (int64_t row = 0; row < 2 * 3 * queries; ++row)
    for (int64_t j = 0; j < keys; ++j) {
      int64_t relative = row % queries + keys - queries - j;
      if (relative >= 0)
        EXPECT_EQ(shifted.values[size_t(row * keys + j)], row * 100 + relative);
    }
}

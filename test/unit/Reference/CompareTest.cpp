//===- CompareTest.cpp - errors in units in the last place ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestUtils.h"

#include <limits>

using namespace posenc::reference;

static const long double infinity =
    std::numeric_limits<long double>::infinity();
static const long double notANumber =
    std::numeric_limits<long double>::quiet_NaN();

/// Compares one element with a reference of a given magnitude.
static Comparison lane(DType type, long double result, long double ref,
                       std::optional<long double> magnitude = {},
                       CompareOptions options = {}) {
  Array got{{1}, {result}, {}};
  Array want{{1}, {ref}, {}};
  if (magnitude)
    want.magnitude = {*magnitude};
  return compare(type, toBytes(type, got).data(), want, options);
}

TEST(Compare, CountsInUnitsOfTheMagnitude) {
  long double step = 0x1p-23L;
  EXPECT_EQ(lane(DType::F32, 1 + 3 * step, 1).maxUlp, 3.0L);
  EXPECT_EQ(lane(DType::F32, 1 + 3 * step, 1).maxAbs, 3 * step);
  EXPECT_EQ(lane(DType::F32, 1 + 3 * step, 1, 1024).maxUlp, 3 / 1024.0L);
  // An element near zero counts in units of its pair.
  EXPECT_EQ(lane(DType::F32, step / 8, 0, 1).maxUlp, 0.125L);
  EXPECT_EQ(lane(DType::F32, 3 * 0x1p-149L, 0x1p-149L).maxUlp, 2.0L);
  EXPECT_EQ(lane(DType::F32, -0.0L, 0).maxUlp, 0.0L);
  EXPECT_EQ(lane(DType::I64, 7, 9).maxUlp, 2.0L);
}

TEST(Compare, SlackIsSubtractedFromTheError) {
  CompareOptions options;
  options.absoluteSlack = 0x1p-61L;
  EXPECT_EQ(lane(DType::F32, 0x1p-70L, 0, {}, options).maxUlp, 0.0L);
  EXPECT_GT(lane(DType::F32, 0x1p-60L, 0, {}, options).maxUlp, 1e20L);
}

TEST(Compare, SpecialValues) {
  for (DType type : {DType::F64, DType::F32, DType::F16, DType::BF16}) {
    EXPECT_TRUE(lane(type, notANumber, notANumber).within(0));
    EXPECT_TRUE(lane(type, infinity, infinity).within(0));
    EXPECT_TRUE(lane(type, -infinity, -infinity).within(0));
    EXPECT_TRUE(lane(type, notANumber, 1).mismatch);
    EXPECT_TRUE(lane(type, 1, notANumber).mismatch);
    EXPECT_TRUE(lane(type, infinity, 1).mismatch);
    EXPECT_TRUE(lane(type, 1, infinity).mismatch);
    EXPECT_TRUE(lane(type, -infinity, infinity).mismatch);
    EXPECT_TRUE(lane(type, notANumber, infinity).mismatch);
    EXPECT_NE(lane(type, notANumber, 1).reason, "");
  }
}

TEST(Compare, Overflow) {
  // 65520 is halfway between the largest f16 and the next power of two.
  EXPECT_TRUE(lane(DType::F16, infinity, 65521).within(0));
  EXPECT_TRUE(lane(DType::F16, infinity, 1e9L).within(0));
  EXPECT_TRUE(lane(DType::F16, infinity, 65519.9L).within(0.51L));
  EXPECT_FALSE(lane(DType::F16, infinity, 65512).within(0.51L));
  EXPECT_TRUE(lane(DType::F16, 65504, 65520.1L).within(0.51L));
  EXPECT_FALSE(lane(DType::F16, 65504, 1e9L).within(0.51L));
  EXPECT_TRUE(lane(DType::F16, -infinity, 65521).mismatch);
  EXPECT_TRUE(lane(DType::F16, infinity, 60000).mismatch);
  EXPECT_TRUE(lane(DType::F32, infinity, 1e39L).within(0));
  EXPECT_FALSE(lane(DType::F32, 3e38L, 1e39L).within(4));
}

TEST(Compare, FlushedSubnormalsOfBf16Only) {
  EXPECT_TRUE(lane(DType::BF16, 0, 0x1p-127L).within(0));
  EXPECT_TRUE(lane(DType::BF16, 0, -0x1p-130L).within(0));
  EXPECT_TRUE(lane(DType::BF16, 0, 0x1p-126L).within(0));
  EXPECT_FALSE(lane(DType::BF16, 0, 0x1p-125L).within(0.51L));
  EXPECT_FALSE(lane(DType::BF16, 0x1p-133L, 0x1p-127L).within(0.51L));
  EXPECT_FALSE(lane(DType::F32, 0, 0x1p-127L).within(4));
  EXPECT_FALSE(lane(DType::F16, 0, 0x1p-20L).within(0.51L));
}

TEST(Compare, PassThroughIsBitEqual) {
  for (DType type : {DType::F64, DType::F32, DType::F16, DType::BF16}) {
    EXPECT_TRUE(lane(type, 0.5L, 0.5L, -1).within(0));
    EXPECT_TRUE(lane(type, notANumber, notANumber, -1).within(0));
    EXPECT_TRUE(lane(type, infinity, infinity, -1).within(0));
    EXPECT_TRUE(lane(type, -0.0L, 0.0L, -1).mismatch);
    EXPECT_TRUE(lane(type, 0.5L + ulp(type, 0.5L), 0.5L, -1).mismatch);
    EXPECT_TRUE(lane(type, notANumber, 0.5L, -1).mismatch);
    // Only computed elements may be flushed.
    long double subnormal = smallestNormal(type) / 2;
    EXPECT_TRUE(lane(type, subnormal, subnormal, -1).within(0));
    EXPECT_TRUE(lane(type, 0, subnormal, -1).mismatch);
  }
}

TEST(Compare, ReturnsTheIndexOfTheLargestError) {
  Array ref{{2, 3}, {1, 2, 3, 4, 5, 6}, {}};
  Array got = ref;
  got.values[4] += 0x1p-20L;
  got.values[1] += 0x1p-22L;
  std::vector<uint8_t> bytes = toBytes(DType::F32, got);
  Comparison worst = compare(DType::F32, bytes.data(), ref);
  EXPECT_EQ(worst.index, (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(worst.maxUlp, 2.0L);
  EXPECT_EQ(worst.maxAbs, 0x1p-20L);
  got.values[5] = notANumber;
  bytes = toBytes(DType::F32, got);
  worst = compare(DType::F32, bytes.data(), ref);
  EXPECT_TRUE(worst.mismatch);
  EXPECT_EQ(worst.index, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(worst.maxUlp, 2.0L);
  // The first of several mismatches.
  got.values[3] = infinity;
  bytes = toBytes(DType::F32, got);
  worst = compare(DType::F32, bytes.data(), ref);
  EXPECT_EQ(worst.index, (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(worst.reason, "an infinity in place of a number");
}

TEST(Compare, Shapes) {
  Array ref{{2, 3}, {1, 2, 3, 4, 5, 6}, {}};
  std::vector<uint8_t> bytes = toBytes(DType::F32, ref);
  CompareOptions options;
  options.shape = {2, 3};
  EXPECT_TRUE(compare(DType::F32, bytes.data(), ref, options).within(0));
  options.shape = {3, 2};
  EXPECT_TRUE(compare(DType::F32, bytes.data(), ref, options).mismatch);
  Array empty{{0, 3}, {}, {}};
  Comparison nothing = compare(DType::F32, nullptr, empty);
  EXPECT_TRUE(nothing.within(0));
  EXPECT_TRUE(nothing.index.empty());
}

TEST(Compare, DefaultLimits) {
  EXPECT_EQ(defaultLimitUlp(ResultKind::Table, DType::F32, false), 1.0L);
  EXPECT_EQ(defaultLimitUlp(ResultKind::Table, DType::F32, true), 2.0L);
  EXPECT_EQ(defaultLimitUlp(ResultKind::Table, DType::F64, false), 2.0L);
  EXPECT_EQ(defaultLimitUlp(ResultKind::Rotated, DType::F32, true), 4.0L);
  EXPECT_EQ(defaultLimitUlp(ResultKind::Rotated, DType::F64, false), 4.0L);
  EXPECT_EQ(defaultLimitUlp(ResultKind::Rotated, DType::F16, false), 0.51L);
  EXPECT_EQ(defaultLimitUlp(ResultKind::Table, DType::BF16, true), 0.6L);
  EXPECT_EQ(defaultLimitUlp(ResultKind::Table, DType::I32, false), 0.0L);
}

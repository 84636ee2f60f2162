//===- CompareAttentionTest.cpp - errors of attention results -------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionTestUtils.h"

#include "posenc/Reference/CompareAttention.h"

#include <limits>

using namespace posenc::reference;

static constexpr long double infinity =
    std::numeric_limits<long double>::infinity();
static constexpr long double notANumber =
    std::numeric_limits<long double>::quiet_NaN();

/// Returns a reference with one element per row.
static AttentionResult reference(std::vector<long double> values,
                                 std::vector<long double> magnitude,
                                 double largest) {
  AttentionResult result;
  result.output.shape = {int64_t(values.size()), 1};
  result.largestValue.assign(values.size(), largest);
  result.output.values = std::move(values);
  result.output.magnitude = std::move(magnitude);
  return result;
}

static AttentionComparison measure(DType type, std::vector<long double> values,
                                   const AttentionResult &ref) {
  Array got{ref.output.shape, std::move(values), {}};
  return compareAttention(type, toBytes(type, got).data(), ref);
}

static AttentionComparison element(DType type, long double result,
                                   long double ref, long double magnitude,
                                   double largest) {
  return measure(type, {result}, reference({ref}, {magnitude}, largest));
}

TEST(CompareAttention, CountsInUnitsOfTheBound) {
  // 8 * 2^-23 * 2 + 64 * 2^-23 * 4 = 272 * 2^-23.
  AttentionComparison one = element(DType::F32, 1 + 272 * 0x1p-23L, 1, 2, 4);
  EXPECT_EQ(one.maxRatio, 1);
  EXPECT_EQ(one.maxAbs, 272 * 0x1p-23);
  EXPECT_EQ(one.relative, 272 * 0x1p-23);
  EXPECT_TRUE(one.within(1));
  EXPECT_FALSE(one.within(1e-6));
  EXPECT_FALSE(element(DType::F32, 1 + 273 * 0x1p-23L, 1, 2, 4).within(1));
  // The bounds are 8 * 2^-10 and 8 * 2^-7; the other term is negligible.
  EXPECT_TRUE(element(DType::F16, 1 + 8 * 0x1p-10L, 1, 1, 1).within(1));
  EXPECT_FALSE(element(DType::F16, 1 + 9 * 0x1p-10L, 1, 1, 1).within(1));
  EXPECT_TRUE(element(DType::BF16, 1 + 8 * 0x1p-7L, 1, 1, 1).within(1));
  EXPECT_FALSE(element(DType::BF16, 1 + 9 * 0x1p-7L, 1, 1, 1).within(1));
  EXPECT_TRUE(element(DType::F64, 1 + 72 * 0x1p-52L, 1, 1, 1).within(1));
  EXPECT_FALSE(element(DType::F64, 1 + 73 * 0x1p-52L, 1, 1, 1).within(1));
}

TEST(CompareAttention, EveryRowHasItsLargestValue) {
  AttentionResult ref = reference({1, 1}, {0, 0}, 4);
  ref.largestValue[1] = 1;
  const long double off = 1 + 128 * 0x1p-23L;
  EXPECT_TRUE(measure(DType::F32, {off, 1}, ref).within(1));
  AttentionComparison second = measure(DType::F32, {1, off}, ref);
  EXPECT_NEAR(second.maxRatio, 2, 1e-6);
  EXPECT_EQ(second.index, (std::vector<int64_t>{1, 0}));
}

TEST(CompareAttention, BothBoundsAreNeeded) {
  // The error of every element is a hundredth of its bound.
  std::vector<long double> values(100, 1), off(100, 1 + 3e-6L);
  AttentionResult ref = reference(values, values, 40);
  AttentionComparison comparison = measure(DType::F32, off, ref);
  EXPECT_LT(comparison.maxRatio, 0.1);
  EXPECT_NEAR(comparison.relative, 3e-6, 1e-7);
  EXPECT_FALSE(comparison.within(defaultLimitRelative(DType::F32)));
  EXPECT_TRUE(measure(DType::F32, values, ref)
                  .within(defaultLimitRelative(DType::F32)));
  // The norm does not detect a single wrong element among many.
  std::vector<long double> many(1000000, 1);
  ref = reference(many, many, 1);
  std::vector<long double> one = many;
  one[777] += 1e-4L;
  comparison = measure(DType::F32, one, ref);
  EXPECT_LT(comparison.relative, defaultLimitRelative(DType::F32));
  EXPECT_GT(comparison.maxRatio, 1);
  EXPECT_EQ(comparison.index, (std::vector<int64_t>{777, 0}));
}

TEST(CompareAttention, ErrorsAgainstZero) {
  EXPECT_EQ(element(DType::F32, 0, 0, 1, 1).relative, 0);
  EXPECT_TRUE(std::isinf(element(DType::F32, 1e-6L, 0, 1, 1).relative));
  EXPECT_TRUE(element(DType::F32, 1e-6L, 0, -1, 1).mismatch);
  EXPECT_FALSE(element(DType::F32, -0.0L, 0, -1, 1).mismatch);
}

TEST(CompareAttention, SpecialValues) {
  for (DType type : {DType::F64, DType::F32, DType::F16, DType::BF16}) {
    EXPECT_TRUE(element(type, notANumber, notANumber, notANumber, 1).within(0));
    EXPECT_TRUE(element(type, infinity, infinity, infinity, 1).within(0));
    EXPECT_TRUE(element(type, notANumber, 1, 1, 1).mismatch);
    EXPECT_TRUE(element(type, 1, notANumber, 1, 1).mismatch);
    EXPECT_TRUE(element(type, infinity, 1, 1, 1).mismatch);
    EXPECT_TRUE(element(type, 1, infinity, infinity, 1).mismatch);
    EXPECT_TRUE(element(type, -infinity, infinity, infinity, 1).mismatch);
    EXPECT_NE(element(type, notANumber, 1, 1, 1).reason, "");
  }
}

TEST(CompareAttention, Overflow) {
  // 65520 is halfway between the largest f16 and the next power of two.
  EXPECT_TRUE(element(DType::F16, infinity, 65521, 65521, 65521).within(0));
  EXPECT_TRUE(element(DType::F16, infinity, 65400, 65400, 65504).within(1));
  EXPECT_TRUE(element(DType::F16, infinity, 60000, 60000, 65504).mismatch);
  EXPECT_TRUE(element(DType::F16, -infinity, 65521, 65521, 65521).mismatch);
}

TEST(CompareAttention, Subnormals) {
  // Rounding to subnormals of f16 is within the bounds.
  long double tiny = 0x1p-24L;
  EXPECT_TRUE(element(DType::F16, tiny, 1.4L * tiny, tiny, 0x1p-20).maxRatio <=
              0.1);
  EXPECT_GT(element(DType::F16, 16 * tiny, tiny, tiny, 0x1p-20).maxRatio, 1);
  EXPECT_TRUE(
      element(DType::BF16, 0, 0x1.8p-127L, 0x1.8p-127L, 0x1p-126).within(0));
  EXPECT_FALSE(element(DType::BF16, 0, 0x1p-125L, 0x1p-125L, 0x1p-125)
                   .within(defaultLimitRelative(DType::BF16)));
}

TEST(CompareAttention, Shapes) {
  AttentionResult ref = reference({1, 2}, {1, 2}, 2);
  std::vector<uint8_t> bytes = toBytes(DType::F32, ref.output);
  using Shape = std::vector<int64_t>;
  EXPECT_TRUE(
      compareAttention(DType::F32, bytes.data(), ref, Shape{2, 1}).within(0));
  EXPECT_TRUE(
      compareAttention(DType::F32, bytes.data(), ref, Shape{1, 2}).mismatch);
  AttentionResult empty = reference({}, {}, 0);
  AttentionComparison nothing = compareAttention(DType::F32, nullptr, empty);
  EXPECT_TRUE(nothing.within(0));
  EXPECT_TRUE(nothing.index.empty());
  ref.largestValue.pop_back();
  EXPECT_TRUE(compareAttention(DType::F32, bytes.data(), ref).mismatch);
  ref = reference({1, 2}, {1}, 2);
  EXPECT_TRUE(compareAttention(DType::F32, bytes.data(), ref).mismatch);
}

TEST(CompareAttention, LimitsOfTheTypes) {
  EXPECT_EQ(defaultLimitRelative(DType::F32), 2e-6);
  EXPECT_EQ(defaultLimitRelative(DType::F16), 1e-3);
  EXPECT_EQ(defaultLimitRelative(DType::BF16), 8e-3);
  EXPECT_EQ(defaultLimitRelative(DType::I64), 0);
}

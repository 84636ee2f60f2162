//===- TensorTest.cpp - conversions and units in the last place -----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestUtils.h"

#include <cstring>
#include <limits>

using namespace posenc::reference;

static const long double infinity =
    std::numeric_limits<long double>::infinity();

template <typename T> static uint64_t bitsOf(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(value));
  return bits;
}

TEST(Tensor, EveryHalfPatternRoundTrips) {
  for (DType type : {DType::F16, DType::BF16}) {
    for (uint64_t bits = 0; bits < 0x10000; ++bits) {
      long double value = decode(type, bits);
      if (std::isnan(value)) {
        uint64_t again = encode(type, value);
        EXPECT_TRUE(std::isnan(decode(type, again)));
        EXPECT_EQ(again & 0x8000, bits & 0x8000);
      } else {
        EXPECT_EQ(encode(type, value), bits);
      }
    }
  }
}

TEST(Tensor, EveryHalfPatternDecodesAsTheHardwareDoes) {
  for (uint64_t bits = 0; bits < 0x10000; ++bits) {
    // A bf16 is the upper half of an f32.
    uint32_t wide = uint32_t(bits) << 16;
    float single;
    std::memcpy(&single, &wide, sizeof(single));
    long double value = decode(DType::BF16, bits);
    if (!std::isnan(single))
      EXPECT_EQ(value, single);
    EXPECT_EQ(std::isnan(value), std::isnan(single));
#ifdef __FLT16_MAX__
    _Float16 half;
    auto narrow = uint16_t(bits);
    std::memcpy(&half, &narrow, sizeof(half));
    value = decode(DType::F16, bits);
    if (!std::isnan(float(half)))
      EXPECT_EQ(value, float(half));
    EXPECT_EQ(std::isnan(value), std::isnan(float(half)));
#endif
  }
}

TEST(Tensor, EveryHalfMidpointRoundsToEven) {
  for (DType type : {DType::F16, DType::BF16}) {
    for (uint64_t bits = 0; bits < 0x8000; ++bits) {
      long double value = decode(type, bits), next = decode(type, bits + 1);
      if (std::isnan(value) || std::isinf(value))
        continue;
      // For rounding, the number after the largest one is the overflow bound.
      if (std::isinf(next))
        next = overflowBound(type);
      uint64_t even = bits & 1 ? bits + 1 : bits;
      long double middle = (value + next) / 2;
      EXPECT_EQ(encode(type, middle), even);
      EXPECT_EQ(encode(type, -middle), even | 0x8000);
      EXPECT_EQ(encode(type, std::nextafter(middle, 0.0L)), bits);
      EXPECT_EQ(encode(type, std::nextafter(middle, infinity)), bits + 1);
    }
  }
}

TEST(Tensor, WideFormatsAgreeWithTheCompiler) {
  std::mt19937_64 generator(3);
  for (int i = 0; i < 200000; ++i) {
    uint64_t bits = generator();
    double wide;
    std::memcpy(&wide, &bits, sizeof(wide));
    auto narrow = uint32_t(bits >> 32);
    float single;
    std::memcpy(&single, &narrow, sizeof(single));
    if (!std::isnan(wide)) {
      EXPECT_EQ(decode(DType::F64, bits), wide);
      EXPECT_EQ(encode(DType::F64, wide), bits);
      EXPECT_EQ(encode(DType::F32, wide), bitsOf(float(wide)));
    }
    if (!std::isnan(single)) {
      EXPECT_EQ(decode(DType::F32, narrow), single);
      EXPECT_EQ(encode(DType::F32, single), narrow);
    }
  }
  EXPECT_EQ(encode(DType::F32, 1e-40L), bitsOf(1e-40f));
  EXPECT_EQ(encode(DType::F64, 4e-320L), bitsOf(4e-320));
  // A long double that is nearer to the upper of two doubles by its last bit.
  long double above = 1 + 0x1p-53L + 0x1p-63L;
  EXPECT_EQ(roundTo(DType::F64, above), 1 + 0x1p-52L);
  EXPECT_EQ(roundTo(DType::F64, 1 + 0x1p-53L), 1.0L);
}

TEST(Tensor, SpecialValues) {
  for (DType type : {DType::F64, DType::F32, DType::F16, DType::BF16}) {
    EXPECT_TRUE(isFloat(type));
    EXPECT_EQ(roundTo(type, infinity), infinity);
    EXPECT_EQ(roundTo(type, -infinity), -infinity);
    EXPECT_TRUE(std::isnan(roundTo(type, NAN)));
    EXPECT_TRUE(std::signbit(roundTo(type, -0.0L)));
    EXPECT_EQ(roundTo(type, 1e-4900L), 0.0L);
    EXPECT_EQ(roundTo(type, -1e4900L), -infinity);
  }
  EXPECT_EQ(roundTo(DType::F16, 65519.0L), 65504.0L);
  EXPECT_EQ(roundTo(DType::F16, 65520.0L), infinity);
}

TEST(Tensor, Integers) {
  for (int64_t value : {INT64_MIN, INT64_MAX, int64_t(-1), int64_t(0)})
    EXPECT_EQ(int64_t(encode(DType::I64, decode(DType::I64, uint64_t(value)))),
              value);
  EXPECT_EQ(decode(DType::I32, encode(DType::I32, -5.0L)), -5.0L);
  EXPECT_EQ(decode(DType::I32, encode(DType::I32, 1e12L)), 0x1p31L - 1);
  EXPECT_EQ(decode(DType::I64, encode(DType::I64, -1e30L)), -0x1p63L);
  EXPECT_EQ(ulp(DType::I64, 1e15L), 1.0L);
}

TEST(Tensor, UlpIsTheSpacing) {
  EXPECT_EQ(ulp(DType::F32, 1.0L), 0x1p-23L);
  EXPECT_EQ(ulp(DType::F32, -1.99L), 0x1p-23L);
  EXPECT_EQ(ulp(DType::F32, 0.999L), 0x1p-24L);
  EXPECT_EQ(ulp(DType::F32, 0.0L), 0x1p-149L);
  EXPECT_EQ(ulp(DType::F32, 1e-44L), 0x1p-149L);
  EXPECT_EQ(ulp(DType::F32, 0x1p-126L), 0x1p-149L);
  EXPECT_EQ(ulp(DType::F32, 0x1p-125L), 0x1p-148L);
  EXPECT_EQ(ulp(DType::F32, 1e300L), 0x1p104L);
  EXPECT_EQ(ulp(DType::F32, infinity), 0x1p104L);
  EXPECT_EQ(ulp(DType::F64, 1.0L), 0x1p-52L);
  EXPECT_EQ(ulp(DType::F16, 1.0L), 0x1p-10L);
  EXPECT_EQ(ulp(DType::F16, 0.0L), 0x1p-24L);
  EXPECT_EQ(ulp(DType::BF16, 1.0L), 0x1p-7L);
  EXPECT_EQ(ulp(DType::BF16, 0.0L), 0x1p-133L);
  for (uint64_t bits = 0; bits < 0x7bff; ++bits) {
    long double value = decode(DType::F16, bits);
    EXPECT_EQ(ulp(DType::F16, value), decode(DType::F16, bits + 1) - value);
  }
}

TEST(Tensor, BytesRoundTrip) {
  EXPECT_EQ(numElements({}), 1);
  EXPECT_EQ(numElements({3, 0, 2}), 0);
  for (DType type : {DType::F64, DType::F32, DType::F16, DType::BF16}) {
    Array array = randomArray({3, 5}, type);
    std::vector<uint8_t> bytes = toBytes(type, array);
    EXPECT_EQ(bytes.size(), 15 * byteWidth(type));
    Array again = fromBytes(type, bytes.data(), {3, 5});
    EXPECT_EQ(again.shape, array.shape);
    EXPECT_EQ(again.values, array.values);
  }
  const int32_t integers[] = {-7, INT32_MAX};
  EXPECT_EQ(fromBytes(DType::I32, integers, {2}).values,
            (std::vector<long double>{-7.0L, 2147483647.0L}));
}

//===- FillTest.cpp - values of generated inputs --------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc-run/Fill.h"

#include "posenc/Reference/Tensor.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace mlir::posenc;
using posenc::reference::DType;
using posenc::runtime::Array;
namespace reference = posenc::reference;

namespace {

Array allocate(posenc_dtype dtype, int64_t size) {
  Array array;
  std::string error;
  EXPECT_TRUE(Array::allocate(dtype, {size}, array, error)) << error;
  return array;
}

/// Checks that random values equal those of f64 with the same seed, rounded by
/// the oracle.
void expectRounded(posenc_dtype dtype, DType type) {
  constexpr int64_t count = 100000;
  Array exact = allocate(POSENC_F64, count), array = allocate(dtype, count);
  EXPECT_FALSE(bool(fillRandom(exact, 42)));
  EXPECT_FALSE(bool(fillRandom(array, 42)));
  for (int64_t i = 0; i < count; ++i)
    ASSERT_EQ(reference::loadBits(type, array.data(), i),
              reference::encode(type, exact.dataAs<double>()[i]))
        << exact.dataAs<double>()[i];
}

TEST(FillTest, RandomNumbersAreRoundedOnce) {
  expectRounded(POSENC_F32, DType::F32);
  expectRounded(POSENC_F16, DType::F16);
  expectRounded(POSENC_BF16, DType::BF16);
}

TEST(FillTest, RandomNumbersAreStandardNormal) {
  constexpr int64_t count = 1000000;
  Array array = allocate(POSENC_F64, count);
  EXPECT_FALSE(bool(fillRandom(array, 1)));
  double moments[5] = {};
  for (int64_t i = 0; i < count; ++i)
    for (int k = 1; k < 5; ++k)
      moments[k] += std::pow(array.dataAs<double>()[i], k) / count;
  EXPECT_NEAR(moments[1], 0, 0.005);
  EXPECT_NEAR(moments[2], 1, 0.01);
  EXPECT_NEAR(moments[3], 0, 0.02);
  EXPECT_NEAR(moments[4], 3, 0.05);
}

TEST(FillTest, SeedsArePortable) {
  Array array = allocate(POSENC_I64, 4);
  EXPECT_FALSE(bool(fillRandom(array, 7)));
  std::vector<int64_t> first(array.dataAs<int64_t>(),
                             array.dataAs<int64_t>() + 4);
  // The first four numbers of SplitMix64 with the seed 7, modulo 4096.
  EXPECT_EQ(first, (std::vector<int64_t>{3543, 1564, 2562, 2507}));
}

TEST(FillTest, RandomIntegersAreBelow4096) {
  Array array = allocate(POSENC_I32, 100000);
  EXPECT_FALSE(bool(fillRandom(array, 3)));
  int32_t smallest = 4096, largest = -1;
  for (int64_t i = 0; i < 100000; ++i) {
    smallest = std::min(smallest, array.dataAs<int32_t>()[i]);
    largest = std::max(largest, array.dataAs<int32_t>()[i]);
  }
  EXPECT_EQ(smallest, 0);
  EXPECT_EQ(largest, 4095);
}

TEST(FillTest, EveryValueIsRoundedOnce) {
  // Numbers of a 16-bit type, midpoints between neighbours, and the neighbours
  // of midpoints in f64.
  for (auto [dtype, type] : {std::pair(POSENC_F16, DType::F16),
                             std::pair(POSENC_BF16, DType::BF16)}) {
    Array array = allocate(dtype, 1);
    for (uint64_t bits = 0; bits < 65536; bits += 7) {
      long double value = reference::decode(type, bits);
      if (!std::isfinite(value))
        continue;
      long double half = value + reference::ulp(type, value) / 2;
      for (double number :
           {double(value), double(half), std::nextafter(double(half), 0),
            std::nextafter(double(half), INFINITY)}) {
        char text[64];
        std::snprintf(text, sizeof(text), "%.17g", number);
        ASSERT_FALSE(bool(fillValue(array, text))) << text;
        ASSERT_EQ(reference::loadBits(type, array.data(), 0),
                  reference::encode(type, number))
            << text;
      }
    }
  }
}

TEST(FillTest, Iota) {
  Array array = allocate(POSENC_F16, 2050);
  EXPECT_FALSE(bool(fillIota(array)));
  EXPECT_EQ(array.dataAs<uint16_t>()[1], 0x3c00);
  // f16 has no odd numbers beyond 2048.
  EXPECT_EQ(array.dataAs<uint16_t>()[2049], array.dataAs<uint16_t>()[2048]);
}

TEST(FillTest, IotaOfQuantizedTypes) {
  Array bytes = allocate(POSENC_I8, 100);
  EXPECT_FALSE(bool(fillIota(bytes)));
  EXPECT_EQ(bytes.dataAs<int8_t>()[99], 99);
  // 3 = 1.5 * 2^1: exponents are biased by 7 and by 15.
  Array floats = allocate(POSENC_F8E4M3FN, 4),
        wide = allocate(POSENC_F8E5M2, 4);
  EXPECT_FALSE(bool(fillIota(floats)) || bool(fillIota(wide)));
  EXPECT_EQ(floats.dataAs<uint8_t>()[3], 0x44);
  EXPECT_EQ(wide.dataAs<uint8_t>()[3], 0x42);
}

TEST(FillTest, ParseIntegerChecksTheRange) {
  auto parse = [](posenc_dtype dtype, llvm::StringRef text) -> std::string {
    llvm::Expected<int64_t> value = parseInteger(dtype, text);
    return value ? std::to_string(*value) : llvm::toString(value.takeError());
  };
  EXPECT_EQ(parse(POSENC_I64, "-9223372036854775808"), "-9223372036854775808");
  EXPECT_EQ(parse(POSENC_I64, "9223372036854775808"),
            "expected an integer of type i64, got '9223372036854775808'");
  EXPECT_EQ(parse(POSENC_I32, "-2147483648"), "-2147483648");
  EXPECT_EQ(parse(POSENC_I32, "2147483648"),
            "expected an integer of type i32, got '2147483648'");
  EXPECT_EQ(parse(POSENC_INDEX, "0x10"),
            "expected an integer of type index, got '0x10'");
  EXPECT_EQ(parse(POSENC_I64, ""), "expected an integer of type i64, got ''");
}

} // namespace

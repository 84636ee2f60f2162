//===- TurnsTest.cpp - frequencies computed at run time -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The results of posenc.turns against 96 bits computed with MPFR. The error of
// dynamic scaling and of given numbers is at most one unit.
//
//===----------------------------------------------------------------------===//

#include "Harness.h"

#include "posenc/Support/BigFloat.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace posenc;
using namespace posenc::test;

namespace {

runtime::Array makeLength(int64_t length) {
  return makePositions(POSENC_I64, {}, {length});
}

/// A fraction of a turn, in units of 2^-96.
__int128 join(int64_t high, int64_t low) {
  return (static_cast<__int128>(high) << 32) + low;
}

/// Calls @f and returns the largest difference of its results from the
/// frequencies, in units of the last of 96 bits.
double getLargestError(const Kernel &kernel,
                       const std::vector<posenc_value> &inputs,
                       const std::vector<BigFloat> &frequencies) {
  std::vector<runtime::Array> results = kernel.call("f", inputs);
  if (results.size() != 2)
    return std::numeric_limits<double>::infinity();
  auto *high = static_cast<const int64_t *>(results[0].data());
  auto *low = static_cast<const int64_t *>(results[1].data());
  double largest = 0;
  for (size_t i = 0; i < frequencies.size(); ++i) {
    EXPECT_GE(low[i], 0);
    EXPECT_LT(low[i], int64_t(1) << 32);
    Turns expected = Turns::fromRadians(frequencies[i]);
    // The numbers are modulo 2^96, which the upper part of the type holds.
    __int128 difference =
        (join(high[i], low[i]) -
         join(static_cast<int64_t>(expected.high), expected.low))
            << 32 >>
        32;
    largest = std::max(largest, std::abs(static_cast<double>(difference)));
  }
  return largest;
}

std::string getLengthModule(int64_t dim, const std::string &scaling) {
  std::string list = "tensor<" + std::to_string(dim / 2) + "xi64>";
  return "func.func @f(%n: tensor<i64>) -> (" + list + ", " + list +
         ") {\n  %h, %l = posenc.turns #posenc.frequencies<dim = " +
         std::to_string(dim) + ", base = 5.0e+05, scaling = " + scaling +
         "> length(%n : tensor<i64>)\n  return %h, %l : " + list + ", " + list +
         "\n}\n";
}

/// Converts an integer of more bits than a double has.
BigFloat toBigFloat(int64_t value) {
  return BigFloat(static_cast<double>(value >> 32)) * BigFloat(0x1p32) +
         BigFloat(static_cast<double>(value & 0xffffffff));
}

std::vector<BigFloat> getDynamic(int64_t dim, double factor,
                                 int64_t maxPosition, int64_t length) {
  BigFloat scale(1.0), limit(static_cast<double>(maxPosition));
  if (length > maxPosition)
    scale =
        BigFloat(1.0) + (toBigFloat(length) - limit) * BigFloat(factor) / limit;
  std::vector<BigFloat> result;
  for (int64_t i = 0; i < dim / 2; ++i)
    result.push_back(pow(BigFloat(5e5), BigFloat(-2.0 * i) / BigFloat(dim)) *
                     pow(scale, BigFloat(-2.0 * i) / BigFloat(dim - 2.0)));
  return result;
}

TEST(TurnsTest, DynamicIsWithinOneUnit) {
  for (int64_t dim : {4, 96, 128})
    for (double factor : {0.25, 1.0, 2.0, 7.3, 64.0}) {
      Kernel kernel(getLengthModule(
          dim, "#posenc.dynamic<factor = " + std::to_string(factor) +
                   ", max_position = 4096>"));
      for (int64_t length :
           {int64_t(-3), int64_t(1), int64_t(4096), int64_t(4097),
            int64_t(5000), int64_t(16384), int64_t(1000003),
            (int64_t(1) << 31) - 1, (int64_t(1) << 53) + 1,
            std::numeric_limits<int64_t>::max()})
        EXPECT_LE(getLargestError(kernel, {makeLength(length).value()},
                                  getDynamic(dim, factor, 4096, length)),
                  1)
            << "dim " << dim << ", factor " << factor << ", length " << length;
    }
}

TEST(TurnsTest, LongropeIsExact) {
  Kernel kernel(getLengthModule(
      4, "#posenc.longrope<short_factors = [1, 1.5], long_factors = [2, 7], "
         "original_max_position = 4096>"));
  BigFloat last = pow(BigFloat(5e5), BigFloat(-0.5));
  for (int64_t length : {-1, 1, 4096})
    EXPECT_EQ(getLargestError(kernel, {makeLength(length).value()},
                              {BigFloat(1.0), last / BigFloat(1.5)}),
              0);
  for (int64_t length : {int64_t(4097), std::numeric_limits<int64_t>::max()})
    EXPECT_EQ(getLargestError(kernel, {makeLength(length).value()},
                              {BigFloat(0.5), last / BigFloat(7.0)}),
              0);
}

TEST(TurnsTest, ValuesAreExactNumbers) {
  const int64_t count = 67;
  for (posenc_dtype dtype : {POSENC_F32, POSENC_F64}) {
    runtime::Array values = makeRandom(dtype, {count}, 7);
    std::vector<BigFloat> frequencies;
    for (int64_t i = 0; i < count; ++i) {
      // Numbers of all magnitudes, some of them negative.
      double scale = std::ldexp(1.0, int(i * 2) - 100 + int(i % 3));
      double value = 0;
      if (dtype == POSENC_F32) {
        auto &element = static_cast<float *>(values.data())[i];
        value = element = static_cast<float>(element * scale);
      } else {
        auto &element = static_cast<double *>(values.data())[i];
        value = element = element * scale;
      }
      frequencies.push_back(value);
    }
    std::string type = std::string(posenc_dtype_name(dtype)) + ">";
    Kernel kernel("func.func @f(%f: tensor<67x" + type +
                  ") -> (tensor<67xi64>, tensor<67xi64>) {\n  %h, %l = "
                  "posenc.turns values(%f : tensor<67x" +
                  type +
                  ")\n  return %h, %l : tensor<67xi64>, tensor<67xi64>\n}\n");
    EXPECT_LE(getLargestError(kernel, {values.value()}, frequencies), 1);
  }
}

TEST(TurnsTest, OtherNumbersAreZero) {
  runtime::Array values = makeRandom(POSENC_F64, {5}, 1);
  auto *elements = static_cast<double *>(values.data());
  elements[0] = std::numeric_limits<double>::infinity();
  elements[1] = std::numeric_limits<double>::quiet_NaN();
  elements[2] = 0x1p60;
  elements[3] = -0x1p1000;
  elements[4] = -0.0;
  Kernel kernel("func.func @f(%f: tensor<5xf64>) -> (tensor<5xi64>, "
                "tensor<5xi64>) {\n  %h, %l = posenc.turns values(%f : "
                "tensor<5xf64>)\n  return %h, %l : tensor<5xi64>, "
                "tensor<5xi64>\n}\n");
  EXPECT_EQ(getLargestError(kernel, {values.value()},
                            std::vector<BigFloat>(5, BigFloat(0.0))),
            0);
}

// Control: a frequency that differs by two of the last of 96 bits is noticed.
TEST(TurnsTest, ComparisonNoticesTwoUnits) {
  Kernel kernel(getLengthModule(
      4, "#posenc.longrope<short_factors = [1, 1], long_factors = [1, 1], "
         "original_max_position = 4096>"));
  BigFloat unit = BigFloat(2.0) * BigFloat::pi() * BigFloat(0x1p-96);
  BigFloat last = pow(BigFloat(5e5), BigFloat(-0.5));
  EXPECT_EQ(getLargestError(kernel, {makeLength(1).value()},
                            {BigFloat(1.0), last + BigFloat(2.0) * unit}),
            2);
}

} // namespace

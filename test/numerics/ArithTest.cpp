//===- ArithTest.cpp - arith ops that kernels expand ----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels expand some arith ops so that they need no compiler runtime library.
// Results are checked to the bit: conversions round once, remainders are exact.
//
//===----------------------------------------------------------------------===//

#include "Harness.h"

#include "llvm/ADT/bit.h"

#include <cmath>
#include <limits>
#include <random>

using namespace posenc;
using namespace posenc::test;
using reference::DType;

namespace {

std::string getTensor(posenc_dtype dtype) {
  return std::string("tensor<?x") + posenc_dtype_name(dtype) + ">";
}

/// Returns MLIR of a function with conversion `op` of a tensor of any size.
std::string getConversion(const char *op, posenc_dtype from, posenc_dtype to) {
  std::string fromType = getTensor(from), toType = getTensor(to);
  return "func.func @f(%x: " + fromType + ") -> " + toType +
         " {\n  %r = arith." + op + " %x : " + fromType + " to " + toType +
         "\n  return %r : " + toType + "\n}\n";
}

/// Returns the bits of each element; all bits set for any NaN.
std::vector<uint64_t> getBits(posenc_dtype dtype, const void *data,
                              int64_t count) {
  DType type = getReferenceType(dtype);
  std::vector<uint64_t> bits;
  for (int64_t i = 0; i < count; ++i) {
    uint64_t each = reference::loadBits(type, data, i);
    bits.push_back(std::isnan(reference::decode(type, each)) ? ~uint64_t(0)
                                                             : each);
  }
  return bits;
}

uint64_t encode(posenc_dtype dtype, long double value) {
  return std::isnan(value) ? ~uint64_t(0)
                           : reference::encode(getReferenceType(dtype), value);
}

/// Whether a result has the expected bits. The instructions that round to bf16
/// flush subnormal results to zero, which is accepted.
testing::AssertionResult isExact(posenc_dtype dtype, uint64_t bits,
                                 uint64_t expected) {
  constexpr uint64_t sign = 0x8000, firstNormal = 0x0080;
  bool isFlushed = dtype == POSENC_BF16 && (expected & ~sign) < firstNormal &&
                   bits == (expected & sign);
  if (bits == expected || isFlushed)
    return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << std::hex << bits << ", expected " << expected << std::dec;
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Returns numbers of any magnitude, and numbers at and around the ties of a
/// type with `precision` bits, including those that a rounding to f32 turns
/// into ties.
std::vector<double> getHardNumbers(int precision) {
  std::vector<double> numbers{
      0.0,       -0.0,     kInfinity, -kInfinity, kNaN,     65504,
      65519.99,  65520,    65520.01,  0x1p-24,    0x1p-25,  0x1.0001p-25,
      0x1p-1074, 0x1p-149, -0x1p-150, 0x1.8p-150, 0x1p128,  0x1.ffp127,
      0x1p-133,  0x1p-134, 1e308,     -1e308,     0x1p-1022};
  std::mt19937_64 generator(5);
  for (int i = 0; i < 4000; ++i) {
    double any = llvm::bit_cast<double>(generator());
    numbers.push_back(any);
    int exponent = int(generator() % 300) - 160;
    // A tie, and numbers that differ from it by less than f32 resolves.
    double tie = double((generator() % (uint64_t(1) << precision)) * 2 + 1);
    for (double beside : {0.0, 0x1p-26, -0x1p-26, 0x1p-38, -0x1p-38})
      numbers.push_back(std::ldexp(tie + beside, exponent - precision) *
                        (i % 2 ? 1 : -1));
  }
  return numbers;
}

class TruncationTest : public testing::TestWithParam<posenc_dtype> {};

TEST_P(TruncationTest, RoundsOnce) {
  posenc_dtype to = GetParam();
  Kernel kernel(getConversion("truncf", POSENC_F64, to));
  std::vector<double> numbers = getHardNumbers(to == POSENC_F16 ? 11 : 8);
  int64_t count = numbers.size();
  std::vector<uint64_t> expected;
  int numDifferent = 0;
  for (double number : numbers) {
    expected.push_back(encode(to, number));
    numDifferent += encode(to, float(number)) != expected.back();
  }
  // Enough of the numbers differ if they are rounded to f32 first.
  EXPECT_GT(numDifferent, 100);
  runtime::Array x = makeRandom(POSENC_F64, {count}, 1);
  std::copy(numbers.begin(), numbers.end(), x.dataAs<double>());
  std::vector<runtime::Array> results = kernel.call("f", {x.value()});
  ASSERT_EQ(results.size(), 1u);
  std::vector<uint64_t> bits = getBits(to, results[0].data(), count);
  for (int64_t i = 0; i < count; ++i)
    ASSERT_TRUE(isExact(to, bits[i], expected[i])) << numbers[i];
}

TEST_P(TruncationTest, IntegersRoundOnce) {
  posenc_dtype to = GetParam();
  std::mt19937_64 generator(7);
  std::vector<int64_t> numbers{0, 1, -1, INT64_MAX, INT64_MIN, INT32_MIN};
  int precision = to == POSENC_F16 ? 11 : 8;
  for (int i = 0; i < 4000; ++i) {
    numbers.push_back(int64_t(generator()) >> (generator() % 64));
    int shift = int(generator() % (63 - precision));
    int64_t tie = ((generator() % (int64_t(1) << precision)) * 2 + 1)
                  << std::max(shift - 1, 0);
    for (int64_t beside : {-1, 0, 1})
      numbers.push_back((tie + beside) * (i % 2 ? 1 : -1));
  }
  int64_t count = numbers.size();
  for (posenc_dtype from : {POSENC_I64, POSENC_I32})
    for (bool isSigned : {true, false}) {
      Kernel kernel(getConversion(isSigned ? "sitofp" : "uitofp", from, to));
      runtime::Array x = makePositions(from, {count}, numbers);
      std::vector<runtime::Array> results = kernel.call("f", {x.value()});
      ASSERT_EQ(results.size(), 1u);
      std::vector<uint64_t> bits = getBits(to, results[0].data(), count);
      for (int64_t i = 0; i < count; ++i) {
        int64_t n = from == POSENC_I32 ? int32_t(numbers[i]) : numbers[i];
        uint64_t u = from == POSENC_I32 ? uint32_t(n) : uint64_t(n);
        long double exact = isSigned ? static_cast<long double>(n)
                                     : static_cast<long double>(u);
        ASSERT_TRUE(isExact(to, bits[i], encode(to, exact)))
            << n << " " << isSigned;
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Types, TruncationTest,
                         testing::Values(POSENC_F16, POSENC_BF16),
                         [](const auto &info) {
                           return std::string(posenc_dtype_name(info.param));
                         });

class BinaryTest : public testing::TestWithParam<posenc_dtype> {
protected:
  /// Expects `op` to have exactly the results of `compute` on hard numbers.
  void expectExact(const char *op,
                   long double (*compute)(long double, long double)) {
    posenc_dtype dtype = GetParam();
    DType type = getReferenceType(dtype);
    std::string tensor = getTensor(dtype);
    Kernel kernel("func.func @f(%x: " + tensor + ", %y: " + tensor + ") -> " +
                  tensor + " {\n  %r = arith." + op + " %x, %y : " + tensor +
                  "\n  return %r : " + tensor + "\n}\n");
    std::vector<double> numbers = getHardNumbers(8);
    std::mt19937_64 generator(3);
    int64_t count = 2 * numbers.size();
    runtime::Array x = makeRandom(dtype, {count}, 1),
                   y = makeRandom(dtype, {count}, 2);
    for (int64_t i = 0; i < count; ++i) {
      double a = numbers[i / 2], b = numbers[generator() % numbers.size()];
      // Every other pair is of similar magnitude.
      if (i % 2)
        b = a * std::ldexp(double(generator() % 100), -int(generator() % 60));
      reference::storeBits(type, x.data(), i, reference::encode(type, a));
      reference::storeBits(type, y.data(), i, reference::encode(type, b));
    }
    std::vector<runtime::Array> results =
        kernel.call("f", {x.value(), y.value()});
    ASSERT_EQ(results.size(), 1u);
    std::vector<uint64_t> bits = getBits(dtype, results[0].data(), count);
    reference::Array xs = toReference(x), ys = toReference(y);
    for (int64_t i = 0; i < count; ++i) {
      // arith does not specify which of two zeros is larger.
      if (xs.values[i] == 0 && ys.values[i] == 0)
        continue;
      ASSERT_TRUE(isExact(dtype, bits[i],
                          encode(dtype, compute(xs.values[i], ys.values[i]))))
          << double(xs.values[i]) << " " << double(ys.values[i]);
    }
  }
};

TEST_P(BinaryTest, RemainderIsExact) { expectExact("remf", std::fmod); }

TEST_P(BinaryTest, ExtremaAreNumbers) {
  auto larger = [](long double x, long double y) -> long double {
    return x > y || std::isnan(y) ? x : y;
  };
  auto smaller = [](long double x, long double y) -> long double {
    return x < y || std::isnan(y) ? x : y;
  };
  expectExact("maxnumf", larger);
  expectExact("minnumf", smaller);
}

INSTANTIATE_TEST_SUITE_P(Types, BinaryTest,
                         testing::Values(POSENC_F64, POSENC_F32, POSENC_F16,
                                         POSENC_BF16),
                         [](const auto &info) {
                           return std::string(posenc_dtype_name(info.param));
                         });

} // namespace

//===- TurnsTest.cpp - frequencies as fractions of a turn -----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Support/BigFloat.h"

#include "gtest/gtest.h"
#include <limits>
#include <ostream>

using namespace posenc;

namespace {

/// Turns without the whole ones.
struct Fraction {
  uint64_t high;
  uint32_t low;
};
bool operator==(const Fraction &a, const Fraction &b) {
  return a.high == b.high && a.low == b.low;
}
std::ostream &operator<<(std::ostream &os, const Fraction &turns) {
  return os << std::hex << "{0x" << turns.high << ", 0x" << turns.low << "}";
}

Fraction turns(const BigFloat &radians) {
  Turns turns = Turns::fromRadians(radians);
  return {turns.high, turns.low};
}

/// Returns `2*pi*fraction`.
BigFloat turn(const BigFloat &fraction) {
  return BigFloat(2.0) * BigFloat::pi() * fraction;
}

/// Returns `2^exponent`.
BigFloat power(int exponent) { return pow(BigFloat(2.0), BigFloat(exponent)); }

TEST(Turns, PowersOfTwo) {
  for (int k = 1; k <= 96; ++k) {
    Fraction expected{k <= 64 ? uint64_t{1} << (64 - k) : 0,
                      k > 64 ? uint32_t{1} << (96 - k) : 0};
    EXPECT_EQ(turns(turn(power(-k))), expected) << "2*pi/2^" << k;
  }
  // Less than half a unit in the last ulp rounds to 0.
  EXPECT_EQ(turns(turn(power(-98))), (Fraction{0, 0}));
}

TEST(Turns, WholeTurnsAreZero) {
  for (int k : {0, 1, 31, 64, 100})
    EXPECT_EQ(turns(turn(power(k))), (Fraction{0, 0})) << "2*pi*2^" << k;
  EXPECT_EQ(turns(turn(BigFloat(-3.0))), (Fraction{0, 0}));
  EXPECT_EQ(turns(turn(power(40) + power(-2))),
            (Fraction{uint64_t{1} << 62, 0}));
}

TEST(Turns, WholeTurns) {
  auto whole = [](const BigFloat &fraction) {
    return Turns::fromRadians(turn(fraction)).whole;
  };
  EXPECT_EQ(whole(0.75), 0u);
  EXPECT_EQ(whole(7.25), 7u);
  EXPECT_EQ(whole(-7.25), ~uint64_t{0} - 7);
  EXPECT_EQ(whole(power(64) + BigFloat(5.5)), 5u);
  EXPECT_EQ(whole(power(63)), uint64_t{1} << 63);
  // Rounding carries into the whole turns.
  EXPECT_EQ(whole(BigFloat(3.0) - power(-98)), 3u);
}

TEST(Turns, RoundToNearest) {
  BigFloat ulp = power(-96);
  EXPECT_EQ(turns(turn(ulp * BigFloat(5.25))), (Fraction{0, 5}));
  EXPECT_EQ(turns(turn(ulp * BigFloat(5.75))), (Fraction{0, 6}));
  // A value that rounds up to a whole turn becomes 0.
  EXPECT_EQ(turns(turn(BigFloat(1.0) - ulp * BigFloat(0.25))),
            (Fraction{0, 0}));
  // The rounding carries from the low part to the high part.
  EXPECT_EQ(turns(turn(power(-64) - ulp * BigFloat(0.25))), (Fraction{1, 0}));
}

TEST(Turns, NegativeFrequencies) {
  EXPECT_EQ(turns(turn(BigFloat(-0.25))), (Fraction{uint64_t{3} << 62, 0}));
  EXPECT_EQ(turns(turn(-1.0 * power(-96))),
            (Fraction{~uint64_t{0}, ~uint32_t{0}}));
  // -f and f add up to a whole turn.
  for (double f : {1.0, 0.1, 1e-5, 123.456}) {
    Fraction a = turns(f), b = turns(-f);
    uint64_t low = uint64_t{a.low} + b.low;
    EXPECT_EQ(static_cast<uint32_t>(low), 0u) << f;
    EXPECT_EQ(a.high + b.high + (low >> 32), 0u) << f;
  }
}

TEST(Turns, Zero) {
  EXPECT_EQ(turns(0.0), (Fraction{0, 0}));
  EXPECT_EQ(turns(-0.0), (Fraction{0, 0}));
}

TEST(Turns, NotFinite) {
  EXPECT_EQ(turns(std::numeric_limits<double>::infinity()), (Fraction{0, 0}));
  EXPECT_EQ(turns(-std::numeric_limits<double>::infinity()), (Fraction{0, 0}));
  EXPECT_EQ(turns(std::numeric_limits<double>::quiet_NaN()), (Fraction{0, 0}));
}

/// Expected values are `round(f / (2*pi) * 2^96) mod 2^96`, computed with
/// integers of 3000 bits.
TEST(Turns, Doubles) {
  struct {
    double radians;
    Fraction expected;
  } cases[] = {
      {1.0, {0x28be60db9391054a, 0x7f09d5f4}},
      {0.1, {0x041309af8ec1b3ca, 0xf27486d3}},
      {-1.0, {0xd7419f246c6efab5, 0x80f62a0c}},
      {1e-05, {0x00001ab3a71b0074, 0x03c130e5}},
      {1e-30, {0, 0}},
      {-1e-30, {0, 0}},
      {3.141592653589793, {0x7ffffffffffffe98, 0x75051ca3}},
      {6.283185307179586, {0xfffffffffffffd30, 0xea0a3946}},
      {1e+22, {0xd66f29ef84bc90cc, 0xbd19bac5}},
      {1e+300, {0xa705623b8bf4109d, 0xf2da8a29}},
      {1.7976931348623157e+308, {0x7fcc3ea616b1ae40, 0x8c8ae8d8}},
      {-1.7976931348623157e+308, {0x8033c159e94e51bf, 0x73751728}},
      {2.2250738585072014e-308, {0, 0}},
      {4.9406564584124654e-324, {0, 0}},
  };
  for (const auto &test : cases)
    EXPECT_EQ(turns(test.radians), test.expected) << test.radians;
}

} // namespace

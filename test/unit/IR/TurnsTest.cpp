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

namespace posenc {
static bool operator==(const Turns &a, const Turns &b) {
  return a.high == b.high && a.low == b.low;
}
static std::ostream &operator<<(std::ostream &os, const Turns &turns) {
  return os << std::hex << "{0x" << turns.high << ", 0x" << turns.low << "}";
}
} // namespace posenc

namespace {

Turns turns(const BigFloat &radians) { return Turns::fromRadians(radians); }

/// Returns `2*pi*fraction`.
BigFloat turn(const BigFloat &fraction) {
  return BigFloat(2.0) * BigFloat::pi() * fraction;
}

/// Returns `2^exponent`.
BigFloat power(int exponent) { return pow(BigFloat(2.0), BigFloat(exponent)); }

TEST(Turns, PowersOfTwo) {
  for (int k = 1; k <= 96; ++k) {
    Turns expected{k <= 64 ? uint64_t{1} << (64 - k) : 0,
                   k > 64 ? uint32_t{1} << (96 - k) : 0};
    EXPECT_EQ(turns(turn(power(-k))), expected) << "2*pi/2^" << k;
  }
  // Less than half a unit in the last ulp rounds to 0.
  EXPECT_EQ(turns(turn(power(-98))), (Turns{0, 0}));
}

TEST(Turns, WholeTurnsAreZero) {
  for (int k : {0, 1, 31, 64, 100})
    EXPECT_EQ(turns(turn(power(k))), (Turns{0, 0})) << "2*pi*2^" << k;
  EXPECT_EQ(turns(turn(BigFloat(-3.0))), (Turns{0, 0}));
  EXPECT_EQ(turns(turn(power(40) + power(-2))), (Turns{uint64_t{1} << 62, 0}));
}

TEST(Turns, RoundToNearest) {
  BigFloat ulp = power(-96);
  EXPECT_EQ(turns(turn(ulp * BigFloat(5.25))), (Turns{0, 5}));
  EXPECT_EQ(turns(turn(ulp * BigFloat(5.75))), (Turns{0, 6}));
  // A value that rounds up to a whole turn becomes 0.
  EXPECT_EQ(turns(turn(BigFloat(1.0) - ulp * BigFloat(0.25))), (Turns{0, 0}));
  // The rounding carries from the low part to the high part.
  EXPECT_EQ(turns(turn(power(-64) - ulp * BigFloat(0.25))), (Turns{1, 0}));
}

TEST(Turns, NegativeFrequencies) {
  EXPECT_EQ(turns(turn(BigFloat(-0.25))), (Turns{uint64_t{3} << 62, 0}));
  EXPECT_EQ(turns(turn(-1.0 * power(-96))),
            (Turns{~uint64_t{0}, ~uint32_t{0}}));
  // -f and f add up to a whole turn.
  for (double f : {1.0, 0.1, 1e-5, 123.456}) {
    Turns a = turns(f), b = turns(-f);
    uint64_t low = uint64_t{a.low} + b.low;
    EXPECT_EQ(static_cast<uint32_t>(low), 0u) << f;
    EXPECT_EQ(a.high + b.high + (low >> 32), 0u) << f;
  }
}

TEST(Turns, Zero) {
  EXPECT_EQ(turns(0.0), (Turns{0, 0}));
  EXPECT_EQ(turns(-0.0), (Turns{0, 0}));
}

TEST(Turns, NotFinite) {
  EXPECT_EQ(turns(std::numeric_limits<double>::infinity()), (Turns{0, 0}));
  EXPECT_EQ(turns(-std::numeric_limits<double>::infinity()), (Turns{0, 0}));
  EXPECT_EQ(turns(std::numeric_limits<double>::quiet_NaN()), (Turns{0, 0}));
}

/// Expected values are `round(f / (2*pi) * 2^96) mod 2^96`, computed with
/// integers of 3000 bits.
TEST(Turns, Doubles) {
  struct {
    double radians;
    Turns expected;
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

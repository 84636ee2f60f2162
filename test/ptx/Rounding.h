//===- Rounding.h - rounding of numbers to PTX types ------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_PTX_ROUNDING_H
#define POSENC_TEST_PTX_ROUNDING_H

#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace posenc::ptx {

enum class Rounding : uint8_t { Nearest, Zero, Down, Up, NearestAway };

/// The bits of an f16 or bf16 number.
struct Half {
  uint16_t bits;
};
struct BFloat {
  uint16_t bits;
};

template <typename To, typename From> To bitCast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

/// A binary floating-point format with these numbers of fraction and exponent
/// bits.
template <unsigned fraction, unsigned exponent> struct Format {
  static constexpr unsigned fractionBits = fraction;
  static constexpr int bias = (1 << (exponent - 1)) - 1;
  static constexpr uint64_t infinity = ((uint64_t(1) << exponent) - 1)
                                       << fraction;
  static constexpr uint64_t sign = uint64_t(1) << (fraction + exponent);
  /// The canonical NaN of NVIDIA GPUs: all ones except the sign. Hosts and GPUs
  /// agree on another one for f64.
  static constexpr uint64_t nan =
      fraction == 52 ? 0xfff8000000000000 : sign - 1;
};
using F16Format = Format<10, 5>;
using BF16Format = Format<7, 8>;
using F32Format = Format<23, 8>;
using F64Format = Format<52, 11>;

/// Rounds significand * 2^(exponent - 63) to the format F and returns its bits.
/// The top bit of the significand is set; its lowest bit is sticky.
template <typename F>
uint64_t roundSignificand(bool isNegative, int exponent, uint64_t significand,
                          Rounding rounding) {
  uint64_t sign = isNegative ? F::sign : 0;
  int shift = 63 - int(F::fractionBits);
  bool isSubnormal = exponent < 1 - F::bias;
  if (isSubnormal)
    shift += 1 - F::bias - exponent;
  uint64_t kept, rest, half = uint64_t(1) << 63;
  if (shift > 64) {
    kept = 0;
    rest = 1;
  } else if (shift == 64) {
    kept = 0;
    rest = significand;
  } else {
    kept = significand >> shift;
    rest = significand << (64 - shift);
  }
  bool isUp = false;
  switch (rounding) {
  case Rounding::Nearest:
    isUp = rest > half || (rest == half && (kept & 1));
    break;
  case Rounding::NearestAway:
    isUp = rest >= half;
    break;
  case Rounding::Zero:
    break;
  case Rounding::Down:
    isUp = rest && isNegative;
    break;
  case Rounding::Up:
    isUp = rest && !isNegative;
    break;
  }
  kept += isUp;
  if (isSubnormal)
    return sign | kept;
  bool isToInfinity = rounding == Rounding::Nearest ||
                      rounding == Rounding::NearestAway ||
                      rounding == (isNegative ? Rounding::Down : Rounding::Up);
  uint64_t overflow = isToInfinity ? F::infinity : F::infinity - 1;
  if (exponent > F::bias)
    return sign | overflow;
  // A carry out of the fraction increments the exponent.
  uint64_t bits = (uint64_t(exponent + F::bias) << F::fractionBits) + kept -
                  (uint64_t(1) << F::fractionBits);
  return sign | (bits >= F::infinity ? overflow : bits);
}

/// Rounds a double to the format F, which is not wider, and returns its bits.
template <typename F> uint64_t roundDouble(double value, Rounding rounding) {
  uint64_t bits = bitCast<uint64_t>(value);
  bool isNegative = bits >> 63;
  int exponent = (bits >> 52) & 2047;
  uint64_t fraction = bits & ((uint64_t(1) << 52) - 1);
  if (exponent == 2047)
    return fraction ? F::nan : F::infinity | (isNegative ? F::sign : 0);
  if (exponent == 0) {
    if (!fraction)
      return isNegative ? F::sign : 0;
    int zeros = __builtin_clzll(fraction);
    return roundSignificand<F>(isNegative, -1011 - zeros, fraction << zeros,
                               rounding);
  }
  return roundSignificand<F>(isNegative, exponent - 1023,
                             (uint64_t(1) << 63) | (fraction << 11), rounding);
}

/// Rounds an integer to the format F and returns its bits.
template <typename F>
uint64_t roundInteger(bool isNegative, uint64_t magnitude, Rounding rounding) {
  if (!magnitude)
    return 0;
  int zeros = __builtin_clzll(magnitude);
  return roundSignificand<F>(isNegative, 63 - zeros, magnitude << zeros,
                             rounding);
}

inline double toDouble(Half value) {
  unsigned exponent = (value.bits >> 10) & 31, fraction = value.bits & 1023;
  double magnitude = exponent == 31 ? (fraction ? NAN : HUGE_VAL)
                     : exponent == 0
                         ? fraction * 0x1p-24
                         : bitCast<double>(uint64_t(exponent + 1008) << 52 |
                                           uint64_t(fraction) << 42);
  return value.bits & 0x8000 ? -magnitude : magnitude;
}
inline double toDouble(BFloat value) {
  return bitCast<float>(uint32_t(value.bits) << 16);
}
inline double toDouble(float value) { return value; }
inline double toDouble(double value) { return value; }

/// Returns a + b rounded to odd: rounding the result to a lower precision
/// equals rounding the exact sum.
inline double addToOdd(double a, double b) {
  double sum = a + b;
  double rest = sum - a;
  double error = (a - (sum - rest)) + (b - rest);
  if (!std::isfinite(sum) || error == 0)
    return sum;
  uint64_t bits = bitCast<uint64_t>(sum);
  if (!(bits & 1))
    bits += (error > 0) == (sum > 0) ? 1 : -1;
  return bitCast<double>(bits);
}

/// Returns `sum`, or -0 for an exact zero sum of operands with different signs
/// that is rounded down.
inline double fixZeroSum(double sum, double a, double b, Rounding rounding) {
  if (sum == 0 && rounding == Rounding::Down &&
      std::signbit(a) != std::signbit(b))
    return -0.0;
  return sum;
}

/// Clamps a number to [0, 1]; NaN becomes 0.
template <typename T> T saturate(T value) {
  return value > T(0) ? (value < T(1) ? value : T(1)) : T(0);
}

/// Replaces a subnormal number by a zero of the same sign.
inline float flush(float value) {
  return std::fabs(value) < 0x1p-126f ? std::copysign(0.0f, value) : value;
}

/// Sets the rounding mode of the host for the lifetime of the object.
class HostRounding {
public:
  explicit HostRounding(Rounding rounding) : old(fegetround()) {
    fesetround(rounding == Rounding::Zero   ? FE_TOWARDZERO
               : rounding == Rounding::Down ? FE_DOWNWARD
               : rounding == Rounding::Up   ? FE_UPWARD
                                            : FE_TONEAREST);
  }
  ~HostRounding() { fesetround(old); }

private:
  int old;
};

} // namespace posenc::ptx

#endif // POSENC_TEST_PTX_ROUNDING_H

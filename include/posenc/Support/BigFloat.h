//===- BigFloat.h - 256-bit floating point ----------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Frequencies become 96-bit constants in kernels, and a position of 31 bits
// multiplies their error: double is far too short and long double is not
// enough. A value wrapper of MPFR, which stays out of this header so that users
// of the dialect need not have it.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_SUPPORT_BIGFLOAT_H
#define POSENC_SUPPORT_BIGFLOAT_H

#include <cstdint>
#include <memory>

namespace posenc {

/// A floating-point number of 256 bits. Operations round to nearest.
class BigFloat {
public:
  BigFloat(double value = 0.0);
  BigFloat(const BigFloat &other);
  BigFloat(BigFloat &&other);
  BigFloat &operator=(BigFloat other);
  ~BigFloat();

  static BigFloat pi();

  friend BigFloat operator+(const BigFloat &a, const BigFloat &b);
  friend BigFloat operator-(const BigFloat &a, const BigFloat &b);
  friend BigFloat operator*(const BigFloat &a, const BigFloat &b);
  friend BigFloat operator/(const BigFloat &a, const BigFloat &b);
  friend bool operator<(const BigFloat &a, const BigFloat &b);
  friend bool operator>(const BigFloat &a, const BigFloat &b) { return b < a; }
  friend bool operator==(const BigFloat &a, const BigFloat &b) {
    return !(a < b) && !(b < a);
  }

  friend BigFloat pow(const BigFloat &base, const BigFloat &exponent);
  /// Natural logarithm.
  friend BigFloat log(const BigFloat &a);
  friend BigFloat cos(const BigFloat &radians);
  friend BigFloat sin(const BigFloat &radians);
  friend BigFloat floor(const BigFloat &a);
  friend BigFloat ceil(const BigFloat &a);

  double toDouble() const;
  float toFloat() const;

private:
  struct Impl;
  friend struct Turns;
  std::unique_ptr<Impl> impl;
};

/// A frequency in turns per position, a fixed-point number:
/// `whole + (high * 2^32 + low) / 2^96`.
struct Turns {
  uint64_t high;
  uint32_t low;
  /// Modulo 2^64, negative for a negative frequency. Positions that are
  /// integers do not need it.
  uint64_t whole;
  /// `round(radians / (2*pi) * 2^96) / 2^96`.
  static Turns fromRadians(const BigFloat &radians);
};

} // namespace posenc

#endif // POSENC_SUPPORT_BIGFLOAT_H

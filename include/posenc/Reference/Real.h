//===- Real.h - real number of high precision -------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_REFERENCE_REAL_H
#define POSENC_REFERENCE_REAL_H

#include <cstdint>
#include <mpfr.h>

namespace posenc::reference {

/// Owns an MPFR number of 320 bits.
///
/// An angle is p * f with |p| <= 2^63, so 63 bits of f are lost to whole turns.
/// Near a zero of the sine, about 64 more cancel. The remaining bits are far
/// more than the 64 significant bits of a long double.
class Real {
public:
  static constexpr mpfr_prec_t kPrecision = 320;

  Real() : Real(int64_t(0)) {}
  explicit Real(int64_t value);
  explicit Real(int value) : Real(int64_t(value)) {}
  explicit Real(double value);
  Real(const Real &other);
  Real(Real &&other) noexcept;
  Real &operator=(const Real &other);
  Real &operator=(Real &&other) noexcept;
  ~Real() { mpfr_clear(value); }

  mpfr_ptr get() { return value; }
  mpfr_srcptr get() const { return value; }

  /// Returns the number rounded to nearest.
  long double toLongDouble() const;

private:
  mpfr_t value;
};

Real operator+(const Real &a, const Real &b);
Real operator-(const Real &a, const Real &b);
Real operator*(const Real &a, const Real &b);
Real operator/(const Real &a, const Real &b);

bool operator<(const Real &a, const Real &b);
inline bool operator>(const Real &a, const Real &b) { return b < a; }
bool operator==(const Real &a, const Real &b);

Real log(const Real &a);
Real exp(const Real &a);
Real floor(const Real &a);

} // namespace posenc::reference

#endif // POSENC_REFERENCE_REAL_H

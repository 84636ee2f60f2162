//===- Real.cpp - real number of high precision ---------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// MPFR declares its intmax_t functions only if this macro is defined.
#define MPFR_USE_INTMAX_T
#include "posenc/Reference/Real.h"

namespace posenc::reference {

Real::Real(int64_t number) {
  mpfr_init2(value, kPrecision);
  mpfr_set_sj(value, number, MPFR_RNDN);
}

Real::Real(double number) {
  mpfr_init2(value, kPrecision);
  mpfr_set_d(value, number, MPFR_RNDN);
}

Real::Real(const Real &other) {
  mpfr_init2(value, kPrecision);
  mpfr_set(value, other.value, MPFR_RNDN);
}

Real::Real(Real &&other) noexcept {
  // The moved-from number stays valid, so the destructor can always clear it.
  mpfr_init2(value, kPrecision);
  mpfr_swap(value, other.value);
}

Real &Real::operator=(const Real &other) {
  mpfr_set(value, other.value, MPFR_RNDN);
  return *this;
}

Real &Real::operator=(Real &&other) noexcept {
  mpfr_swap(value, other.value);
  return *this;
}

long double Real::toLongDouble() const { return mpfr_get_ld(value, MPFR_RNDN); }

Real operator+(const Real &a, const Real &b) {
  Real result;
  mpfr_add(result.get(), a.get(), b.get(), MPFR_RNDN);
  return result;
}

Real operator-(const Real &a, const Real &b) {
  Real result;
  mpfr_sub(result.get(), a.get(), b.get(), MPFR_RNDN);
  return result;
}

Real operator*(const Real &a, const Real &b) {
  Real result;
  mpfr_mul(result.get(), a.get(), b.get(), MPFR_RNDN);
  return result;
}

Real operator/(const Real &a, const Real &b) {
  Real result;
  mpfr_div(result.get(), a.get(), b.get(), MPFR_RNDN);
  return result;
}

bool operator<(const Real &a, const Real &b) {
  return mpfr_less_p(a.get(), b.get()) != 0;
}

bool operator==(const Real &a, const Real &b) {
  return mpfr_equal_p(a.get(), b.get()) != 0;
}

Real log(const Real &a) {
  Real result;
  mpfr_log(result.get(), a.get(), MPFR_RNDN);
  return result;
}

Real exp(const Real &a) {
  Real result;
  mpfr_exp(result.get(), a.get(), MPFR_RNDN);
  return result;
}

Real floor(const Real &a) {
  Real result;
  mpfr_floor(result.get(), a.get());
  return result;
}

} // namespace posenc::reference

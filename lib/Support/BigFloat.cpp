//===- BigFloat.cpp - 256-bit floating point --------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Support/BigFloat.h"

#include <gmp.h>
#include <mpfr.h>
#include <utility>

using namespace posenc;

static constexpr mpfr_prec_t kPrecision = 256;

struct BigFloat::Impl {
  Impl() { mpfr_init2(value, kPrecision); }
  ~Impl() { mpfr_clear(value); }
  mpfr_t value;
};

BigFloat::BigFloat(double value) : impl(std::make_unique<Impl>()) {
  mpfr_set_d(impl->value, value, MPFR_RNDN);
}

BigFloat::BigFloat(const BigFloat &other) : impl(std::make_unique<Impl>()) {
  mpfr_set(impl->value, other.impl->value, MPFR_RNDN);
}

BigFloat::BigFloat(BigFloat &&other) = default;

BigFloat &BigFloat::operator=(BigFloat other) {
  std::swap(impl, other.impl);
  return *this;
}

BigFloat::~BigFloat() = default;

BigFloat BigFloat::pi() {
  BigFloat result;
  mpfr_const_pi(result.impl->value, MPFR_RNDN);
  return result;
}

namespace posenc {

BigFloat operator+(const BigFloat &a, const BigFloat &b) {
  BigFloat result;
  mpfr_add(result.impl->value, a.impl->value, b.impl->value, MPFR_RNDN);
  return result;
}

BigFloat operator-(const BigFloat &a, const BigFloat &b) {
  BigFloat result;
  mpfr_sub(result.impl->value, a.impl->value, b.impl->value, MPFR_RNDN);
  return result;
}

BigFloat operator*(const BigFloat &a, const BigFloat &b) {
  BigFloat result;
  mpfr_mul(result.impl->value, a.impl->value, b.impl->value, MPFR_RNDN);
  return result;
}

BigFloat operator/(const BigFloat &a, const BigFloat &b) {
  BigFloat result;
  mpfr_div(result.impl->value, a.impl->value, b.impl->value, MPFR_RNDN);
  return result;
}

bool operator<(const BigFloat &a, const BigFloat &b) {
  return mpfr_less_p(a.impl->value, b.impl->value);
}

BigFloat pow(const BigFloat &base, const BigFloat &exponent) {
  BigFloat result;
  mpfr_pow(result.impl->value, base.impl->value, exponent.impl->value,
           MPFR_RNDN);
  return result;
}

BigFloat log(const BigFloat &a) {
  BigFloat result;
  mpfr_log(result.impl->value, a.impl->value, MPFR_RNDN);
  return result;
}

BigFloat cos(const BigFloat &radians) {
  BigFloat result;
  mpfr_cos(result.impl->value, radians.impl->value, MPFR_RNDN);
  return result;
}

BigFloat sin(const BigFloat &radians) {
  BigFloat result;
  mpfr_sin(result.impl->value, radians.impl->value, MPFR_RNDN);
  return result;
}

BigFloat floor(const BigFloat &a) {
  BigFloat result;
  mpfr_floor(result.impl->value, a.impl->value);
  return result;
}

BigFloat ceil(const BigFloat &a) {
  BigFloat result;
  mpfr_ceil(result.impl->value, a.impl->value);
  return result;
}

} // namespace posenc

double BigFloat::toDouble() const { return mpfr_get_d(impl->value, MPFR_RNDN); }

float BigFloat::toFloat() const { return mpfr_get_flt(impl->value, MPFR_RNDN); }

Turns Turns::fromRadians(const BigFloat &radians) {
  // The product must keep 96 fraction bits for any frequency, so its precision
  // grows with the exponent. Callers pass finite doubles, which bounds the
  // exponent.
  const mpfr_t &value = radians.impl->value;
  if (!mpfr_regular_p(value))
    return {0, 0, 0};
  mpfr_exp_t exponent = mpfr_get_exp(value);
  mpfr_prec_t precision = kPrecision + (exponent > 0 ? exponent : 0);
  mpfr_t turns;
  mpfr_init2(turns, precision);
  mpfr_const_pi(turns, MPFR_RNDN);
  mpfr_mul_2ui(turns, turns, 1, MPFR_RNDN);
  mpfr_div(turns, value, turns, MPFR_RNDN);
  mpfr_mul_2ui(turns, turns, 96, MPFR_RNDN);
  mpz_t integer;
  mpz_init(integer);
  mpfr_get_z(integer, turns, MPFR_RNDN);
  mpfr_clear(turns);
  // Floor division is right for negative frequencies.
  Turns result;
  mpz_t word;
  mpz_init(word);
  mpz_fdiv_q_2exp(word, integer, 96);
  mpz_fdiv_r_2exp(word, word, 64);
  result.whole = mpz_get_ui(word);
  mpz_fdiv_r_2exp(integer, integer, 96);
  mpz_fdiv_r_2exp(word, integer, 32);
  result.low = static_cast<uint32_t>(mpz_get_ui(word));
  mpz_fdiv_q_2exp(word, integer, 32);
  result.high = mpz_get_ui(word);
  mpz_clear(word);
  mpz_clear(integer);
  return result;
}

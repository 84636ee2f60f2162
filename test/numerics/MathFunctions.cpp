//===- MathFunctions.cpp - exact math functions ---------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MathFunctions.h"

#include <cmath>
#include <limits>
#include <mpfr.h>
#include <random>

using namespace posenc;
using namespace posenc::test;

void test::PrintTo(const MathFunction &function, std::ostream *os) {
  *os << function.name;
}

#define UNARY(name, symmetry, libm)                                            \
  MathFunction {                                                               \
    #name, 1, MathFunction::symmetry,                                          \
        [](double x, double) -> double { return libm; },                       \
        [](void *result, const void *x, const void *) {                        \
          mpfr_##name(static_cast<mpfr_ptr>(result),                           \
                      static_cast<mpfr_srcptr>(x), MPFR_RNDN);                 \
        }                                                                      \
  }
#define BINARY(name, mpfr, libm)                                               \
  MathFunction {                                                               \
    #name, 2, MathFunction::None,                                              \
        [](double x, double y) -> double { return libm; },                     \
        [](void *result, const void *x, const void *y) {                       \
          mpfr(static_cast<mpfr_ptr>(result), static_cast<mpfr_srcptr>(x),     \
               static_cast<mpfr_srcptr>(y), MPFR_RNDN);                        \
        }                                                                      \
  }

static void mpfr_rsqrt(mpfr_ptr result, mpfr_srcptr x, mpfr_rnd_t rounding) {
  mpfr_rec_sqrt(result, x, rounding);
  // Zeros as in IEEE 754, which MPFR treats differently.
  if (mpfr_zero_p(x))
    mpfr_set_inf(result, mpfr_signbit(x) ? -1 : 1);
}

const std::vector<MathFunction> &test::getMathFunctions() {
  static const std::vector<MathFunction> functions = {
      UNARY(acos, None, std::acos(x)),
      UNARY(acosh, None, std::acosh(x)),
      UNARY(asin, Odd, std::asin(x)),
      UNARY(asinh, Odd, std::asinh(x)),
      UNARY(atan, Odd, std::atan(x)),
      UNARY(atanh, Odd, std::atanh(x)),
      UNARY(cbrt, Odd, std::cbrt(x)),
      UNARY(cos, Even, std::cos(x)),
      UNARY(cosh, Even, std::cosh(x)),
      UNARY(erf, Odd, std::erf(x)),
      UNARY(erfc, None, std::erfc(x)),
      UNARY(exp, None, std::exp(x)),
      UNARY(exp2, None, std::exp2(x)),
      UNARY(expm1, None, std::expm1(x)),
      UNARY(log, None, std::log(x)),
      UNARY(log10, None, std::log10(x)),
      UNARY(log1p, None, std::log1p(x)),
      UNARY(log2, None, std::log2(x)),
      UNARY(rsqrt, None, 1 / std::sqrt(x)),
      UNARY(sin, Odd, std::sin(x)),
      UNARY(sinh, Odd, std::sinh(x)),
      UNARY(sqrt, None, std::sqrt(x)),
      UNARY(tan, Odd, std::tan(x)),
      UNARY(tanh, Odd, std::tanh(x)),
      BINARY(atan2, mpfr_atan2, std::atan2(x, y)),
      BINARY(powf, mpfr_pow, std::pow(x, y)),
  };
  return functions;
}

namespace {
/// Owns an MPFR number of `bits` bits.
struct Number {
  explicit Number(mpfr_prec_t bits) { mpfr_init2(value, bits); }
  Number(const Number &) = delete;
  ~Number() { mpfr_clear(value); }
  mpfr_t value;
};
} // namespace

long double test::evaluate(const MathFunction &function, double x, double y) {
  static Number a(53), b(53), result(64);
  mpfr_set_d(a.value, x, MPFR_RNDN);
  mpfr_set_d(b.value, y, MPFR_RNDN);
  function.ofMpfr(result.value, a.value, b.value);
  return mpfr_get_ld(result.value, MPFR_RNDN);
}

std::string test::makeMathModule(posenc_dtype dtype) {
  std::string type = std::string("tensor<?x") + posenc_dtype_name(dtype) + ">";
  std::string text;
  for (const MathFunction &function : getMathFunctions()) {
    bool isBinary = function.arity == 2;
    std::string name = function.name;
    text += "func.func @" + name + "(%x: " + type +
            (isBinary ? ", %y: " + type : "") + ") -> " + type +
            " {\n  %r = math." + name + " %x" + (isBinary ? ", %y" : "") +
            " : " + type + "\n  return %r : " + type + "\n}\n";
  }
  return text;
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

/// The numbers of each type nearest to multiples of pi/2, found by continued
/// fractions of 2^e * 2/pi for each exponent e.
static const double kNearHalfPi32[] = {
    0x1.f37c8ap+95, 0x1.47d0fep+34, 0x1.f37c8ap+96, 0x1.47d0fep+35,
    0x1.f9cbe2p+7,  0x1.f37c8ap+97, 0x1.32ede2p+85, 0x1.628d4cp+40,
    0x1.13093p+76,  0x1.47d0fep+36, 0x1.f9cbe2p+8,  0x1.b08c4ap+111};
static const double kNearHalfPi64[] = {
    0x1.6ac5b262ca1ffp+849, 0x1.6c6cbc45dc8dep+5,   0x1.6ac5b262ca1ffp+850,
    0x1.6c6cbc45dc8dep+6,   0x1.b951f1572eba5p+23,  0x1.504cac51f1eafp+131,
    0x1.6ac5b262ca1ffp+851, 0x1.e009c53148be1p+991, 0x1.6c6cbc45dc8dep+7,
    0x1.4c96c11134d36p+577, 0x1.cfe482285f8edp+860, 0x1.db41f3cb71d7bp+680};

/// Points where functions change their formula, overflow, or have a zero or a
/// pole.
static const double kSpecialPoints[] = {
    1.0,      0.5,      2.0,    M_SQRT1_2, M_SQRT2, 0.625,  4.0,    6.0,
    10.1,     27.3,     40.0,   0x1p28,    0x1p-60, 0x1p46, 0x1p68, 0x1p90,
    0x1p112,  88.7228,  103.97, 128.0,     149.0,   709.78, 745.13, 1024.0,
    1074.0,   89.416,   710.47, M_PI,      M_LN2,   M_E,    3.0,    8.0,
    0.346574, 17.32868, 3.9192, 5.9217,    10.0541, 26.54,  100.0,  1e5,
    1e9,      1e20,     0.66,   10.0,      1000.0,  27.0,   0.1};

std::vector<double> test::makeHardArguments(bool isF32) {
  double infinity = std::numeric_limits<double>::infinity();
  auto up = [=](double x) {
    return isF32 ? std::nextafterf(float(x), float(infinity))
                 : std::nextafter(x, infinity);
  };
  std::vector<double> result = {0.0, infinity,
                                std::numeric_limits<double>::quiet_NaN()};
  std::mt19937_64 random(11);
  int digits = isF32 ? 24 : 53;
  int minExponent = isF32 ? -149 : -1074, maxExponent = isF32 ? 127 : 1023;
  for (int exponent = minExponent; exponent <= maxExponent; ++exponent) {
    double power = std::ldexp(1.0, exponent);
    result.insert(result.end(), {power, up(power), 1.5 * power});
    double unit = std::ldexp(1.0, 1 - digits);
    result.push_back(std::ldexp(2.0 - unit, exponent));
    for (int i = 0; i < 3; ++i)
      result.push_back(std::ldexp(
          1.0 + unit * double(random() >> (64 - (digits - 1))), exponent));
  }
  if (isF32)
    result.insert(result.end(), std::begin(kNearHalfPi32),
                  std::end(kNearHalfPi32));
  else
    result.insert(result.end(), std::begin(kNearHalfPi64),
                  std::end(kNearHalfPi64));
  auto addAround = [&](double center) {
    double x = isF32 ? double(float(center)) : center;
    double step = up(x) - x;
    for (int i = -6; i <= 6; ++i)
      result.push_back(x + i * step);
    for (int i = 2; i < digits; i += 3) {
      result.push_back(x + std::ldexp(step, i));
      result.push_back(x - std::ldexp(step, i));
    }
  };
  for (double point : kSpecialPoints)
    addAround(point);
  for (int i = 1; i <= 40; ++i)
    addAround(i * M_PI_2);
  std::uniform_real_distribution<double> spread(0.0, 12.0), wide(0.0, 800.0);
  for (int i = 0; i < 4000; ++i) {
    result.push_back(spread(random));
    result.push_back(wide(random));
  }
  for (size_t i = 0, e = result.size(); i < e; ++i) {
    if (isF32)
      result[i] = float(result[i]);
    result.push_back(-result[i]);
  }
  return result;
}

runtime::Array test::toArray(posenc_dtype dtype,
                             const std::vector<double> &numbers) {
  auto count = static_cast<int64_t>(numbers.size());
  runtime::Array array = makeRandom(dtype, {count}, 1);
  reference::DType type = getReferenceType(dtype);
  for (int64_t i = 0; i < count; ++i)
    reference::storeBits(type, array.data(), i,
                         reference::encode(type, numbers[i]));
  return array;
}

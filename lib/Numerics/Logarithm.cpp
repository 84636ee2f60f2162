//===- Logarithm.cpp - logarithms and inverse hyperbolics -------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// x = 2^e * (1 + m) with 1 + m between the square roots of 1/2 and 2, then
// log(x) = e * log(2) + log(1 + m).
//
//===----------------------------------------------------------------------===//

#include "posenc/Numerics/MathBuilder.h"

#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace mlir::posenc;

MathBuilder::SplitLog MathBuilder::splitLog(Value x) {
  Value isSmall;
  if (!forF32) {
    // Scales subnormal numbers; those of f32 are normal in f64.
    isSmall = compare(arith::CmpFPredicate::OLT, x, f64(0x1p-1022));
    x = select(isSmall, mul(x, f64(0x1p54)), x);
  }
  Value bits = toBits(x);
  // Splits the number so that the mantissa is between the square roots of 1/2
  // and of 2, instead of between 1 and 2.
  int64_t root = llvm::bit_cast<int64_t>(0x1.6a09e667f3bcdp-1);
  Value exponent = shrs(subi(bits, i64(root)), i64(52));
  Value mantissa = fromBits(subi(bits, shl(exponent, i64(52))));
  Value e = toFloat(exponent);
  if (isSmall)
    e = sub(e, select(isSmall, f64(54.0), f64(0.0)));
  return {e, sub(mantissa, f64(1.0))};
}

namespace {
/// The factors of a logarithm to a base.
struct Factors {
  /// log(2), of which the first part has few bits, so that products with
  /// exponents are exact.
  double ofExponent, ofExponentRest;
  /// log(e).
  double ofMantissa, ofMantissaRest;
};
} // namespace

static Factors getFactors(MathBuilder::LogBase base) {
  switch (base) {
  case MathBuilder::LogBase::E:
    return {0x1.63p-1, -2.121944400546905827679e-4, 1.0, 0.0};
  case MathBuilder::LogBase::Two:
    return {1.0, 0.0, 0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56};
  case MathBuilder::LogBase::Ten:
    return {0x1.34413508p-2, 0x1.f79fef311f12bp-34, 0x1.bcb7b1526e50ep-2,
            0x1.95355baaafad3p-57};
  }
  llvm_unreachable("unknown base");
}

Value MathBuilder::finiteLog(Value x, LogBase base, Value more) {
  auto [e, m] = splitLog(x);
  Factors factors = getFactors(base);
  Value factor = f64(factors.ofMantissa);
  bool isNatural = factors.ofMantissa == 1.0;
  if (forF32) {
    // log(1 + m) / m, with a relative error of 2^-35.8.
    Value y = mul(m, series(m, {0x1.b74f65297a8abp-5, -0x1.958826b6f1bb9p-4,
                                0x1.9af5d4b23760ap-4, -0x1.96710bcdd046ep-4,
                                0x1.c2c4b7f8425e7p-4, -0x1.ffe599a3f1a9fp-4,
                                0x1.24aded3483d56p-3, -0x1.5556c8d898efdp-3,
                                0x1.9998fa1ad202cp-3, -0x1.fffff80e0e7c8p-3,
                                0x1.5555560126822p-2, -0x1.00000002868c0p-1,
                                0x1.ffffffffe1221p-1}));
    if (more)
      y = add(y, more);
    if (!isNatural)
      y = mul(y, factor);
    return fma(e, f64(factors.ofExponent + factors.ofExponentRest), y);
  }
  // log(1 + m) = m - m^2/2 + m^3 * p/q, from Moshier's Cephes library.
  Value square = mul(m, m);
  Value p = series(m, {1.01875663804580931796e-4, 4.97494994976747001425e-1,
                       4.70579119878881725854e0, 1.44989225341610930846e1,
                       1.79368678507819816313e1, 7.70838733755885391666e0});
  Value q = series(m, {1.0, 1.12873587189167450590e1, 4.52279145837532221105e1,
                       8.29875266912776603211e1, 7.11544750618563894466e1,
                       2.31251620126765340583e1});
  Value lo = mul(m, mul(square, div(p, q)));
  if (more)
    lo = add(lo, more);
  lo = fma(square, f64(-0.5), lo);
  Value hi = m;
  if (!isNatural) {
    // (m + lo) * factor, in which m * factor is exact.
    TwoFloats exact = twoProduct(m, factor);
    Value rest = fma(m, f64(factors.ofMantissaRest), exact.lo);
    lo = fma(lo, factor, rest);
    hi = exact.hi;
  }
  if (factors.ofExponentRest != 0.0)
    lo = fma(e, f64(factors.ofExponentRest), lo);
  TwoFloats sum = fastTwoSum(mul(e, f64(factors.ofExponent)), hi);
  return add(sum.hi, add(sum.lo, lo));
}

/// Returns `result` for positive finite x, and otherwise what IEEE 754
/// specifies; `atZero` tells where the argument of the logarithm is zero.
Value MathBuilder::logSpecialCases(Value x, Value atZero, Value result) {
  result = select(compare(arith::CmpFPredicate::OEQ, x, atZero),
                  neg(infinity()), result);
  result = select(compare(arith::CmpFPredicate::OEQ, x, infinity()), x, result);
  return select(compare(arith::CmpFPredicate::ULT, x, atZero), nan(), result);
}

Value MathBuilder::log(Value x, LogBase base) {
  return logSpecialCases(x, number(0.0), finiteLog(x, base, nullptr));
}

Value MathBuilder::log1p(Value x) {
  // log(u + c) = log(u) + c / u, where u = 1 + x is rounded and c is the rest.
  Value one = number(1.0);
  TwoFloats sum = twoSum(one, x);
  Value rest = div(sum.lo, sum.hi);
  Value result = finiteLog(sum.hi, LogBase::E, rest);
  result = logSpecialCases(x, number(-1.0), result);
  // The sum is inexact for subnormal arguments and loses the sign of a zero.
  Value isTiny = compare(arith::CmpFPredicate::OLT, abs(x), number(0x1p-60));
  return select(isTiny, x, result);
}

Value MathBuilder::asinh(Value x) {
  // log(a + sqrt(1 + a^2)) = log1p(a + a^2 / (1 + sqrt(1 + a^2))); where the 1
  // does not count, log(2a).
  Value a = abs(x), one = number(1.0);
  Value isLarge = compare(arith::CmpFPredicate::OGT, a, number(0x1p28));
  Value square = mul(a, a);
  Value root = sqrt(add(square, one));
  Value small = add(a, div(square, add(root, one)));
  Value result = log1p(select(isLarge, sub(a, one), small));
  Value more = select(isLarge, number(0x1.62e42fefa39efp-1), number(0.0));
  return copySign(add(result, more), x);
}

Value MathBuilder::acosh(Value x) {
  // log(x + sqrt(x^2 - 1)) = log1p(d + sqrt(d * (x + 1))) with d = x - 1.
  Value one = number(1.0);
  Value isLarge = compare(arith::CmpFPredicate::OGT, x, number(0x1p28));
  Value d = sub(x, one);
  Value small = add(d, sqrt(mul(d, add(x, one))));
  Value result = log1p(select(isLarge, d, small));
  Value more = select(isLarge, number(0x1.62e42fefa39efp-1), number(0.0));
  Value isWrong = compare(arith::CmpFPredicate::ULT, x, one);
  return select(isWrong, nan(), add(result, more));
}

Value MathBuilder::atanh(Value x) {
  // log((1 + a) / (1 - a)) / 2
  Value a = abs(x);
  Value ratio = div(add(a, a), sub(number(1.0), a));
  return copySign(mul(log1p(ratio), number(0.5)), x);
}

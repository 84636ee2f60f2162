//===- Power.cpp - powers and cube roots ------------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Numerics/MathBuilder.h"

#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace mlir::posenc;

Value MathBuilder::cbrt(Value x) {
  // |x| = 2^(3k) * t with 1 <= t < 8.
  Value size = abs(x), scaled = size;
  Value isSmall;
  if (!forF32) {
    isSmall = compare(arith::CmpFPredicate::OLT, size, f64(0x1p-1022));
    scaled = select(isSmall, mul(size, f64(0x1p54)), size);
  }
  Value bits = toBits(scaled);
  Value exponent = toFloat(subi(shru(bits, i64(52)), i64(1023)));
  // The integer nearest to (e - 1) / 3 is e / 3 rounded down.
  auto [kBits, k] =
      roundToInteger(mul(sub(exponent, f64(1.0)), f64(1.0 / 3.0)));
  Value kInteger = subi(kBits, i64(llvm::bit_cast<int64_t>(0x1.8p52)));
  Value remainder = fma(k, f64(-3.0), exponent);
  Value mantissa = fromBits(
      ori(andi(bits, i64((int64_t{1} << 52) - 1)), i64(int64_t{1023} << 52)));
  Value isOne = compare(arith::CmpFPredicate::OEQ, remainder, f64(1.0));
  Value isTwo = compare(arith::CmpFPredicate::OEQ, remainder, f64(2.0));
  Value t =
      mul(mantissa, select(isTwo, f64(4.0), select(isOne, f64(2.0), f64(1.0))));
  // r = t^(-1/3) within 2^-9.6, then Newton's steps r += r * (1 - t * r^3) / 3.
  Value r = series(t, {0x1.1d2f0bb9720efp-15, -0x1.13677b88362f4p-10,
                       0x1.b203a7d09e7c4p-7, -0x1.689d9621c3cf6p-4,
                       0x1.570cdd59cae21p-2, -0x1.86a40d048040cp-1,
                       0x1.80a1e82328257p+0});
  Value third = f64(1.0 / 3.0);
  for (int step = 0; step < 2; ++step) {
    Value cube = mul(mul(r, r), r);
    Value error = fma(neg(t), cube, f64(1.0));
    r = fma(mul(r, third), error, r);
  }
  // c = t * r^2 has an error of 2^-34; one more step uses the exact c^3.
  Value square = mul(r, r);
  Value c = mul(t, square);
  TwoFloats cc = twoProduct(c, c);
  Value excess = fma(cc.lo, c, fma(cc.hi, c, neg(t)));
  c = fma(mul(excess, square), f64(-1.0 / 3.0), c);
  Value result = mul(c, powerOf2(kInteger));
  if (isSmall)
    result = mul(result, select(isSmall, f64(0x1p-18), f64(1.0)));
  // Zeros, infinities and NaNs are their own roots.
  Value isFinite = compare(arith::CmpFPredicate::OLT, size, infinity());
  Value isPositive = compare(arith::CmpFPredicate::OGT, size, f64(0.0));
  Value isOrdinary = arith::AndIOp::create(builder, loc, isFinite, isPositive);
  return select(isOrdinary, copySign(result, x), x);
}

//===----------------------------------------------------------------------===//
// Powers of two numbers
//===----------------------------------------------------------------------===//

TwoFloats MathBuilder::preciseLog2(Value x) {
  // log(1 + m) = 2s + s^3 * p(s^2) with s = m / (2 + m).
  auto [e, m] = splitLog(x);
  TwoFloats sum = fastTwoSum(f64(2.0), m);
  Value reciprocal = div(f64(1.0), sum.hi);
  Value s = mul(m, reciprocal);
  Value rest = fma(neg(s), sum.lo, fma(neg(s), sum.hi, m));
  TwoFloats ratio = fastTwoSum(s, mul(rest, reciprocal));
  TwoFloats z = product(ratio, ratio);
  // p without its first coefficient, 2/3, with an error of 2^-66.3 of the
  // whole.
  Value tail = series(z.hi, {0x1.0e4574aeb81cap-3, 0x1.0f7fa01fe4ee3p-3,
                             0x1.3b1eef0d81d15p-3, 0x1.745ce9d373abbp-3,
                             0x1.c71c722d9294cp-3, 0x1.2492492457b79p-2,
                             0x1.9999999999b31p-2});
  TwoFloats p = fastTwoSum(f64(0x1.5555555555555p-1), mul(z.hi, tail));
  p.lo = add(p.lo, f64(0x1.5555555555555p-55));
  TwoFloats cubic = product(product(ratio, z), p);
  TwoFloats log = fastTwoSum(add(ratio.hi, ratio.hi), cubic.hi);
  log.lo = add(log.lo, fma(ratio.lo, f64(2.0), cubic.lo));
  TwoFloats log2 =
      product(log, {f64(0x1.71547652b82fep+0), f64(0x1.777d0ffda0d24p-56)});
  TwoFloats result = fastTwoSum(e, log2.hi);
  return fastTwoSum(result.hi, add(result.lo, log2.lo));
}

/// |x|^y, except for what powSpecialCases says.
Value MathBuilder::powMagnitude(Value x, Value y) {
  Value size = abs(x);
  TwoFloats log;
  if (forF32)
    log.hi = finiteLog(size, LogBase::Two, nullptr);
  else
    log = preciseLog2(size);
  // The logarithms above are for positive finite numbers only.
  Value isZero = compare(arith::CmpFPredicate::OEQ, size, f64(0.0));
  Value isInfinite = compare(arith::CmpFPredicate::OEQ, size, infinity());
  log.hi =
      select(isZero, neg(infinity()), select(isInfinite, infinity(), log.hi));
  // 1^y is 1 also for an infinite y, where 0 * y would be NaN.
  Value isOne = compare(arith::CmpFPredicate::OEQ, size, f64(1.0));
  if (forF32)
    return exp(select(isOne, f64(0.0), mul(log.hi, y)), Base::Two);
  TwoFloats power = twoProduct(log.hi, y);
  Value lo = fma(log.lo, y, power.lo);
  // The error term of a product that overflows is NaN.
  Value isSmall =
      compare(arith::CmpFPredicate::OLT, abs(power.hi), f64(0x1p12));
  return exp2(
      {select(isOne, f64(0.0), power.hi), select(isSmall, lo, f64(0.0))});
}

/// Applies signs and the rules of IEEE 754 for special numbers. `isOdd` and
/// `isFraction` describe y; the latter is null for integers.
Value MathBuilder::powSpecialCases(Value x, Value y, Value power, Value isOdd,
                                   Value isFraction) {
  using arith::CmpFPredicate;
  power = select(isOdd, copySign(power, x), power);
  if (isFraction) {
    Value isNegative =
        binary<arith::AndIOp>(compare(CmpFPredicate::OLT, x, f64(0.0)),
                              compare(CmpFPredicate::OGT, x, neg(infinity())));
    power = select(binary<arith::AndIOp>(isNegative, isFraction), nan(), power);
  }
  power = select(compare(CmpFPredicate::UNO, x, y), nan(), power);
  Value isOne = binary<arith::OrIOp>(compare(CmpFPredicate::OEQ, x, f64(1.0)),
                                     compare(CmpFPredicate::OEQ, y, f64(0.0)));
  return select(isOne, f64(1.0), power);
}

Value MathBuilder::pow(Value x, Value y) {
  using arith::CmpFPredicate;
  Value whole = floor(y), half = mul(y, f64(0.5));
  Value isFraction = compare(CmpFPredicate::ONE, whole, y);
  Value isOdd =
      binary<arith::AndIOp>(compare(CmpFPredicate::OEQ, whole, y),
                            compare(CmpFPredicate::ONE, floor(half), half));
  return powSpecialCases(x, y, powMagnitude(x, y), isOdd, isFraction);
}

Value MathBuilder::powInteger(Value x, Value n) {
  // Beyond 2^53 it is rounded, and only its parity matters.
  Value y = cast<arith::SIToFPOp>(builder.getF64Type(), n);
  Value isOdd = cast<arith::TruncIOp>(builder.getI1Type(), n);
  return powSpecialCases(x, y, powMagnitude(x, y), isOdd,
                         /*isFraction=*/nullptr);
}

/// Computes x^n for n > 0 by squaring, with the product `multiply`.
template <typename T, typename Multiply>
static T raise(T x, uint64_t n, Multiply multiply) {
  std::optional<T> power;
  for (;; n /= 2) {
    if (n % 2)
      power = power ? multiply(*power, x) : x;
    if (n == 1)
      return *power;
    x = multiply(x, x);
  }
}

Value MathBuilder::powConstant(Value x, int64_t n) {
  if (n == 0)
    return number(1.0);
  // The reciprocal is taken first, as a power may overflow whose reciprocal is
  // subnormal.
  Value base = n < 0 ? div(number(1.0), x) : x;
  Value plain =
      raise(base, std::abs(n), [&](Value a, Value b) { return mul(a, b); });
  // A few products are accurate enough, and so is any number of them in f64 for
  // f32 results.
  if (forF32 || (n > 0 && n <= 4))
    return plain;
  Value rest = number(0.0);
  if (n < 0)
    rest = mul(fma(neg(base), x, number(1.0)), base);
  TwoFloats precise =
      raise(TwoFloats{base, rest}, std::abs(n),
            [&](TwoFloats a, TwoFloats b) { return product(a, b); });
  // For zeros, infinities and NaNs, the precise product loses the sign or is
  // NaN.
  Value isOrdinary =
      compare(arith::CmpFPredicate::OGT, abs(precise.hi), number(0.0));
  return select(isOrdinary, precise.hi, plain);
}

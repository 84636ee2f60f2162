//===- TurnsBuilder.cpp - frequencies computed at run time ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Numerics/TurnsBuilder.h"

#include "llvm/ADT/bit.h"

#include <cmath>

using namespace mlir;
using namespace mlir::posenc;
using ::posenc::BigFloat;

/// Returns ln(2); within the builder, `log` emits a logarithm.
static BigFloat getLn2() { return log(BigFloat(2.0)); }

TwoDoubles TwoDoubles::round(const BigFloat &value) {
  double hi = value.toDouble();
  return {hi, (value - BigFloat(hi)).toDouble()};
}

/// Adds in double-double precision, also where the summands cancel.
TwoFloats TurnsBuilder::sum(TwoFloats a, TwoFloats b) {
  TwoFloats hi = twoSum(a.hi, b.hi);
  TwoFloats lo = twoSum(a.lo, b.lo);
  TwoFloats both = fastTwoSum(hi.hi, add(hi.lo, lo.hi));
  return fastTwoSum(both.hi, add(both.lo, lo.lo));
}

//===----------------------------------------------------------------------===//
// Fixed point
//===----------------------------------------------------------------------===//

/// Converts a sum of numbers, of which all but the first are below 2^20, to
/// turns modulo 1. Each number is rounded to 48 bits of a turn; the remainders
/// are exact, and their sum has the next 48 bits.
TurnsBuilder::Turns TurnsBuilder::toTurns(ArrayRef<Value> terms) {
  Value upper, rests;
  for (Value term : terms) {
    // Removes whole turns, so that the rounded integers have fewer than 51
    // bits.
    Value turns = math::RoundEvenOp::create(builder, loc, term);
    Value scaled = mul(sub(term, turns), f64(0x1p48));
    auto [bits, rounded] = roundToInteger(scaled);
    Value rest = sub(scaled, rounded);
    upper = upper ? addi(upper, bits) : bits;
    rests = rests ? add(rests, rest) : rest;
  }
  Value lower = roundToInteger(mul(rests, f64(0x1p48))).first;
  // roundToInteger adds 1.5 * 2^52, so its bits are those of 1.5 * 2^52 plus
  // the integer. Subtracts the former once for each rounded number.
  int64_t magic = llvm::bit_cast<int64_t>(0x1.8p52);
  upper = subi(upper, i64(static_cast<int64_t>(static_cast<uint64_t>(magic) *
                                               terms.size())));
  lower = subi(lower, i64(magic));
  upper = addi(upper, shrs(lower, i64(48)));
  Value low48 = andi(lower, i64((int64_t{1} << 48) - 1));
  return {ori(shl(upper, i64(16)), shru(low48, i64(32))),
          andi(low48, i64(0xffffffff))};
}

TurnsBuilder::Turns TurnsBuilder::fromRadians(Value radians) {
  Value isKnown = compare(arith::CmpFPredicate::OLT, abs(radians), f64(0x1p60));
  Value x = select(isKnown, radians, f64(0));
  // 1/(2*pi) in three parts, of which the first two are multiplied exactly.
  BigFloat inverse = BigFloat(0.5) / BigFloat::pi();
  double first = inverse.toDouble();
  TwoDoubles more = TwoDoubles::round(inverse - BigFloat(first));
  TwoFloats product = twoProduct(x, f64(first));
  TwoFloats next = twoProduct(x, f64(more.hi));
  TwoFloats middle = twoSum(product.lo, next.hi);
  Value last = add(middle.lo, fma(x, f64(more.lo), next.lo));
  return toTurns({product.hi, middle.hi, last});
}

//===----------------------------------------------------------------------===//
// Dynamic scaling
//===----------------------------------------------------------------------===//

/// Returns exp(x) in double-double precision, for |x| up to 64.
TwoFloats TurnsBuilder::expTwoFloats(TwoFloats x) {
  // x = n * ln(2) + t. The first part of ln(2) has few bits, so that its
  // product with n is exact.
  BigFloat ln2 = getLn2();
  double first = std::ldexp(std::floor(std::ldexp(ln2.toDouble(), 40)), -40);
  TwoDoubles more = TwoDoubles::round(ln2 - BigFloat(first));
  auto [bits, n] = roundToInteger(mul(x.hi, f64(1.0 / ln2.toDouble())));
  TwoFloats t = twoSum(fma(n, f64(-first), x.hi), x.lo);
  TwoFloats rest = twoProduct(n, f64(-more.hi));
  t = sum(t, {rest.hi, fma(n, f64(-more.lo), rest.lo)});
  // exp(t) - 1 = (exp(t/64) - 1 + 1)^64 - 1. The terms from t^6 on are below
  // 2^-54 of the first.
  constexpr int kSquarings = 6, kFirst = 6, kLast = 12;
  Value scale = f64(std::ldexp(1.0, -kSquarings));
  t = {mul(t.hi, scale), mul(t.lo, scale)};
  BigFloat factorial(1.0);
  SmallVector<BigFloat> inverses{BigFloat(1.0)};
  for (int k = 1; k <= kLast; ++k) {
    factorial = factorial * BigFloat(k);
    inverses.push_back(BigFloat(1.0) / factorial);
  }
  SmallVector<double> small;
  for (int k = kLast; k >= kFirst; --k)
    small.push_back(inverses[k].toDouble());
  TwoFloats p{series(t.hi, small), f64(0)};
  for (int k = kFirst - 1; k >= 1; --k)
    p = sum(product(p, t), constant2(TwoDoubles::round(inverses[k])));
  p = product(p, t);
  // (1 + p)^2 - 1 = 2p + p^2 keeps the bits of a small p.
  for (int k = 0; k < kSquarings; ++k)
    p = sum({add(p.hi, p.hi), add(p.lo, p.lo)}, product(p, p));
  p = sum({f64(1), f64(0)}, p);
  Value power = powerOf2(subi(bits, i64(llvm::bit_cast<int64_t>(0x1.8p52))));
  return {mul(p.hi, power), mul(p.lo, power)};
}

TwoFloats TurnsBuilder::logOfDynamicScale(Value length, double factor,
                                          double maxPosition) {
  // Both halves of the length are converted exactly.
  Value upper = mul(toFloat(shrs(length, i64(32))), f64(0x1p32));
  Value lower = toFloat(andi(length, i64(0xffffffff)));
  TwoFloats beyond = sum(twoSum(upper, lower), {f64(-maxPosition), f64(0)});
  Value isBeyond = compare(arith::CmpFPredicate::OGT, beyond.hi, f64(0));
  beyond = {select(isBeyond, beyond.hi, f64(0)),
            select(isBeyond, beyond.lo, f64(0))};
  TwoFloats ratio =
      constant2(TwoDoubles::round(BigFloat(factor) / BigFloat(maxPosition)));
  TwoFloats scale = sum({f64(1), f64(0)}, product(beyond, ratio));
  // ln(scale) = y + ln(1 + z) with z = scale * exp(-y) - 1, which is tiny.
  Value y = log(scale.hi, LogBase::E);
  TwoFloats one = product(scale, expTwoFloats({neg(y), f64(0)}));
  TwoFloats z = sum(one, {f64(-1), f64(0)});
  Value square = mul(mul(z.hi, z.hi), f64(-0.5));
  return sum({y, f64(0)}, fastTwoSum(z.hi, add(z.lo, square)));
}

TurnsBuilder::Turns TurnsBuilder::scale(TwoFloats unscaled, TwoFloats log,
                                        TwoFloats exponent) {
  TwoFloats x = product(log, exponent);
  TwoFloats result = product(unscaled, expTwoFloats({neg(x.hi), neg(x.lo)}));
  return toTurns({result.hi, result.lo});
}

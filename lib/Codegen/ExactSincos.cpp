//===- ExactSincos.cpp - cos and sin of an exact phase ----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/ExactSincos.h"

#include "ElementwiseBuilder.h"

using namespace mlir;
using namespace mlir::posenc;
using ::posenc::BigFloat;

static double roundToFloat(double value) {
  return static_cast<double>(static_cast<float>(value));
}

ExactSincos::ExactSincos(const BigFloat &factor, bool inverse)
    : inverse(inverse) {
  factorHigh = factor.toDouble();
  factorLow = (factor - BigFloat(factorHigh)).toDouble();
  factorHighF32 = roundToFloat(factorHigh);
  factorLowF32 = (factor - BigFloat(factorHighF32)).toDouble();
  BigFloat halfPi = factor * BigFloat::pi() / BigFloat(2.0);
  halfPiHigh = roundToFloat(halfPi.toDouble());
  halfPiLow = (halfPi - BigFloat(halfPiHigh)).toDouble();
}

// Only the lower halves of the factors count: the masks and shifts let the
// backend see that, whose vectors have no product of 64-bit integers.
Value ExactSincos::emitPhaseOfLow(OpBuilder &builder, Location loc,
                                  Value position, Value high, Value low) {
  ElementwiseBuilder b(builder, loc, position);
  Value mask = b.i64(0xffffffff), thirtyTwo = b.i64(32);
  Value factor = b.andi(position, mask);
  Value carry = b.shru(b.muli(factor, b.andi(low, mask)), thirtyTwo);
  Value middle = b.muli(factor, b.andi(high, mask));
  Value top = b.shl(b.muli(factor, b.shru(high, thirtyTwo)), thirtyTwo);
  return b.addi(b.addi(carry, middle), top);
}

Value ExactSincos::emitPhaseOfHigh(OpBuilder &builder, Location loc,
                                   Value position, Value high, Value low) {
  ElementwiseBuilder b(builder, loc, position);
  Value thirtyTwo = b.i64(32);
  Value factor = b.shrs(position, thirtyTwo);
  return b.addi(b.shl(b.muli(factor, high), thirtyTwo), b.muli(factor, low));
}

/// Swaps and negates by quadrant: bit 62 of the phase swaps cos and sin, bit 63
/// negates the sine, and either alone the cosine. `top` holds those two bits
/// at the top of an integer as wide as the results.
static ExactSincos::Result emitQuadrant(ElementwiseBuilder &b, Value top,
                                        Value cos, Value sin, Type integer,
                                        bool inverse) {
  bool wide = integer.isInteger(64);
  auto constant = [&](uint64_t value) {
    return wide ? b.i64(value) : b.i32(value);
  };
  unsigned bits = integer.getIntOrFloatBitWidth();
  Value signBit = constant(uint64_t{1} << (bits - 1));
  Value second = b.shl(top, constant(1));
  Value odd = arith::CmpIOp::create(b.builder, b.loc, arith::CmpIPredicate::slt,
                                    second, constant(0));
  auto withSign = [&](Value value, Value sign) {
    Value raw = b.cast<arith::BitcastOp>(integer, value);
    raw = b.xori(raw, b.andi(sign, signBit));
    return b.cast<arith::BitcastOp>(wide ? Type(b.builder.getF64Type())
                                         : Type(b.builder.getF32Type()),
                                    raw);
  };
  Value sinSign = inverse ? b.xori(top, signBit) : top;
  return {withSign(b.select(odd, sin, cos), b.xori(top, second)),
          withSign(b.select(odd, cos, sin), sinSign)};
}

// sin(x*pi/2)/x - pi/2 and (cos(x*pi/2) - 1)/x^2 in powers of x^2, minimax on
// an eighth of a turn, times the factor; the former over x^2.
Value ExactSincos::emitSinTail(ElementwiseBuilder &b, Value z) const {
  return emitSeries(
      b, z, {-0.004604834175795936, 0.07968141280449714, -0.6459636301978783});
}

Value ExactSincos::emitCosTail(ElementwiseBuilder &b, Value z) const {
  return emitSeries(b, z,
                    {0.0008938620227866409, -0.020855396986715524,
                     0.2536685323599879, -1.2337005138397217});
}

/// A polynomial in `z`, highest power first, times the factor.
Value ExactSincos::emitSeries(ElementwiseBuilder &b, Value z,
                              ArrayRef<double> coefficients) const {
  Value sum = b.f32(coefficients.front() * factorHigh);
  for (double coefficient : coefficients.drop_front())
    sum = b.fma(sum, z, b.f32(coefficient * factorHigh));
  return sum;
}

ExactSincos::Result ExactSincos::emit(OpBuilder &builder, Location loc,
                                      Value phase, bool wide) const {
  ElementwiseBuilder b(builder, loc, phase);
  Type i32 = builder.getI32Type(), i64 = builder.getI64Type();

  if (wide) {
    // An eighth of a turn centres the rest on zero: |rest| <= 2^61.
    phase = b.addi(phase, b.i64(int64_t{1} << 61));
    // The rest in quarter turns is u + m: two exact integers of 32 and 30 bits.
    Value upper =
        b.cast<arith::TruncIOp>(i32, b.shrs(b.shl(phase, b.i64(2)), b.i64(32)));
    Value lower =
        b.cast<arith::TruncIOp>(i32, b.andi(phase, b.i64(0x3fffffff)));
    // Only the two quadrant bits were cleared, so the eighth is still to go.
    Value upperExact = b.cast<arith::SIToFPOp>(
        builder.getF64Type(), b.xori(upper, b.i32(0x80000000)));
    Value a = b.mul(upperExact, b.f64(0x1p-32));
    Value c = b.mul(b.cast<arith::SIToFPOp>(builder.getF64Type(), lower),
                    b.f64(0x1p-62));
    Value u = b.add(a, c);
    Value m = b.sub(c, b.sub(u, a));

    // The angle x + e in radians, e below half a unit of x.
    double halfPi = 0x1.921fb54442d18p+0, halfPiRest = 0x1.1a62633145c07p-54;
    Value x = b.mul(u, b.f64(halfPi));
    Value e = b.fma(u, b.f64(halfPi), b.neg(x));
    e = b.fma(u, b.f64(halfPiRest), e);
    e = b.fma(m, b.f64(halfPi), e);

    // Taylor's series: at pi/4 the first term left out is below 2^-58.
    Value z = b.mul(x, x);
    auto series = [&](std::initializer_list<double> factorials) {
      Value sum;
      for (double factorial : factorials) {
        Value term = b.f64(1.0 / factorial);
        sum = sum ? b.fma(sum, z, term) : term;
      }
      return sum;
    };
    Value sinTail = series({355687428096000.0, -1307674368000.0, 6227020800.0,
                            -39916800.0, 362880.0, -5040.0, 120.0, -6.0});
    Value cosTail = series({20922789888000.0, -87178291200.0, 479001600.0,
                            -3628800.0, 40320.0, -720.0, 24.0});
    Value half = b.mul(z, b.f64(0.5));
    Value one = b.f64(1.0);
    Value head = b.sub(one, half);
    Value sin = b.add(x, b.fma(b.mul(x, z), sinTail, b.mul(e, head)));
    Value lost = b.sub(b.sub(one, head), half);
    Value cos = b.add(
        head, b.add(b.fma(b.mul(z, z), cosTail, lost), b.neg(b.mul(x, e))));
    if (factorHigh != 1.0 || factorLow != 0.0) {
      Value fh = b.f64(factorHigh), fl = b.f64(factorLow);
      sin = b.fma(sin, fh, b.mul(sin, fl));
      cos = b.fma(cos, fh, b.mul(cos, fl));
    }
    return emitQuadrant(b, phase, cos, sin, i64, inverse);
  }

  // f32. The rest of the phase is split into three fields of 23, 23 and 16
  // bits. Each is put under a constant exponent and its bias subtracted, which
  // is exact and needs no conversion from integer; the constants added to the
  // phase first make the fields signed.
  phase = b.addi(phase, b.i64((int64_t{1} << 61) + (int64_t{1} << 38) +
                              (int64_t{1} << 15)));
  Value h = b.cast<arith::TruncIOp>(i32, b.shru(phase, b.i64(32)));
  Value l = b.cast<arith::TruncIOp>(i32, phase);
  auto field = [&](Value bits, uint32_t mask, uint32_t exponent, double bias) {
    Value raw = b.ori(b.andi(bits, b.i32(mask)), b.i32(exponent << 23));
    return b.sub(b.cast<arith::BitcastOp>(builder.getF32Type(), raw),
                 b.f32(bias));
  };
  Value first = field(b.shru(h, b.i32(7)), 0x7fffff, 127, 1.5);
  Value middle = b.ori(b.shl(h, b.i32(16)), b.shru(l, b.i32(16)));
  Value second = field(middle, 0x7fffff, 104, 0x1.8p-23);
  Value third = field(l, 0xffff, 89, 0x1p-38 + 0x1p-46); // twice the field

  // The rest in quarter turns is u + m/2.
  Value u = b.add(first, second);
  Value lost = b.sub(second, b.sub(u, first));
  Value m = b.fma(lost, b.f32(2.0), third);
  Value z = b.fma(u, u, b.mul(m, u));

  Value sinTail = emitSinTail(b, z), cosTail = emitCosTail(b, z);
  Value correction =
      b.fma(m, b.f32(halfPiHigh / 2), b.mul(u, b.f32(halfPiLow)));
  Value sin =
      b.fma(u, b.f32(halfPiHigh), b.fma(b.mul(u, z), sinTail, correction));
  Value cos =
      factorLowF32 == 0.0
          ? b.fma(z, cosTail, b.f32(factorHighF32))
          : b.add(b.f32(factorHighF32), b.fma(z, cosTail, b.f32(factorLowF32)));
  return emitQuadrant(b, h, cos, sin, i32, inverse);
}

/// From the rest in quarter turns, between -1/2 and 1/2, and the quadrant.
ExactSincos::Result ExactSincos::emitFromRest(ElementwiseBuilder &b, Value top,
                                              Value rest) const {
  Value z = b.mul(rest, rest);
  Value sinTail = b.fma(emitSinTail(b, z), z, b.f32(halfPiLow));
  Value sin = b.fma(rest, b.f32(halfPiHigh), b.mul(rest, sinTail));
  Value cos = b.fma(z, emitCosTail(b, z), b.f32(factorHighF32));
  return emitQuadrant(b, top, cos, sin, b.builder.getI32Type(), inverse);
}

// Without the two bits of the quadrant the rest is signed of itself; an eighth
// of a turn makes the quadrant the nearest one.

ExactSincos::Result ExactSincos::emitNarrow(OpBuilder &builder, Location loc,
                                            Value phase) const {
  ElementwiseBuilder b(builder, loc, phase);
  Type i32 = builder.getI32Type(), f32 = builder.getF32Type();
  // Rounded to the upper 32 bits, of which the lower ones are the signed rest:
  // the sum of the two as floats loses nothing where they cancel.
  phase = b.addi(phase, b.i64(int64_t{1} << 31));
  Value high = b.cast<arith::TruncIOp>(i32, b.shru(phase, b.i64(32)));
  Value low = b.xori(b.cast<arith::TruncIOp>(i32, phase), b.i32(1u << 31));
  Value coarse = b.cast<arith::SIToFPOp>(f32, b.shl(high, b.i32(2)));
  Value fine = b.cast<arith::SIToFPOp>(f32, low);
  Value rest = b.fma(fine, b.f32(0x1p-62), b.mul(coarse, b.f32(0x1p-32)));
  return emitFromRest(b, b.addi(high, b.i32(1u << 29)), rest);
}

ExactSincos::Result ExactSincos::emitForRotation(OpBuilder &builder,
                                                 Location loc,
                                                 Value phaseTop) const {
  ElementwiseBuilder b(builder, loc, phaseTop);
  Value rest =
      b.cast<arith::SIToFPOp>(builder.getF32Type(), b.shl(phaseTop, b.i32(2)));
  return emitFromRest(b, b.addi(phaseTop, b.i32(1u << 29)),
                      b.mul(rest, b.f32(0x1p-32)));
}

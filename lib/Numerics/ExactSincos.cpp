//===- ExactSincos.cpp - cos and sin of an exact phase ----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Numerics/ExactSincos.h"

#include "posenc/Numerics/ElementwiseBuilder.h"
#include "posenc/Numerics/SincosSeries.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::posenc;
using ::posenc::BigFloat;

ExactSincos::ExactSincos(const BigFloat &factor, bool inverse)
    : factorHigh(factor.toDouble()),
      factorLow((factor - BigFloat(factorHigh)).toDouble()), inverse(inverse) {}

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

/// Computes cos and sin of an angle in [-pi/4, pi/4] with a relative error of
/// 2^-47.
static std::pair<Value, Value> emitToRound(ElementwiseBuilder &b, Value u) {
  Value x = b.mul(u, b.f64(0x1.921fb54442d18p+0));
  // (sin(x) - x)/x^3 and (cos(x) - 1)/x^2 in powers of x^2, minimax.
  Value z = b.mul(x, x);
  Value sinTail = emitSeries(b, z,
                             {-2.4761695769975143e-08, 2.7555358360512227e-06,
                              -0.00019841263825866047, 0.008333333325277201,
                              -0.16666666666631624});
  Value cosTail = emitSeries(b, z,
                             {2.063359022226881e-09, -2.755529637780962e-07,
                              2.4801579016564626e-05, -0.0013888888871727584,
                              0.04166666666650321, -0.49999999999999484});
  return {b.fma(z, cosTail, b.f64(1.0)), b.fma(b.mul(x, z), sinTail, x)};
}

ExactSincos::Result ExactSincos::emit(OpBuilder &builder, Location loc,
                                      Value phase, Type type) const {
  ElementwiseBuilder b(builder, loc, phase);
  // Adding an eighth of a turn rounds to the nearest quadrant. The bits below
  // the quadrant are then a fraction of a quarter turn, plus one half.
  phase = b.addi(phase, b.i64(int64_t{1} << 61));
  Value rest = b.shl(phase, b.i64(2));
  Value upper = emitFixedPoint(b, b.shru(rest, b.i64(32)), 0x1p-32, 0.5);
  Value lower =
      emitFixedPoint(b, b.andi(rest, b.i64(0xffffffff)), 0x1p-64, 0.0);
  Value u = b.add(upper, lower);

  bool hasFactor = factorHigh != 1.0 || factorLow != 0.0;
  Value factor = b.f64(factorHigh);
  if (!type.isF64()) {
    auto [cos, sin] = emitToRound(b, u);
    if (hasFactor) {
      cos = b.mul(cos, factor);
      sin = b.mul(sin, factor);
    }
    auto values = emitQuadrant(b, phase, {cos, sin}, inverse);
    return {values.cos, values.sin};
  }
  auto [x, rest64] =
      emitQuarterTurnsToRadians(b, u, b.sub(lower, b.sub(u, upper)));
  auto [cos, sin] = emitPreciseCosSin(b, x, rest64);
  if (hasFactor) {
    Value fl = b.f64(factorLow);
    sin = b.fma(sin, factor, b.mul(sin, fl));
    cos = b.fma(cos, factor, b.mul(cos, fl));
  }
  auto values = emitQuadrant(b, phase, {cos, sin}, inverse);
  return {values.cos, values.sin};
}

Value ExactSincos::emitRounding(OpBuilder &builder, Location loc,
                                Value elements, Type type) {
  ElementwiseBuilder b(builder, loc, elements);
  auto round = [&](Type to) {
    if (getElementTypeOrSelf(elements.getType()) != to)
      elements = b.cast<arith::TruncFOp>(to, elements);
  };
  if (!type.isF64())
    round(builder.getF32Type());
  round(type);
  return elements;
}

ExactSincos::Result ExactSincos::emitForRotation(OpBuilder &builder,
                                                 Location loc,
                                                 Value phaseTop) const {
  ElementwiseBuilder b(builder, loc, phaseTop);
  // Shifted by the two bits of the quadrant, the rest is a signed number;
  // adding an eighth of a turn rounds to the nearest quadrant.
  Value rest =
      b.cast<arith::SIToFPOp>(builder.getF64Type(), b.shl(phaseTop, b.i32(2)));
  Value u = b.mul(rest, b.f64(0x1p-32));
  Value z = b.mul(u, u);
  // sin(u*pi/2)/u and (cos(u*pi/2) - 1)/u^2 in powers of u^2, minimax on an
  // eighth of a turn.
  auto series = [&](std::initializer_list<double> coefficients) {
    auto scaled = llvm::map_to_vector(
        coefficients, [&](double value) { return value * factorHigh; });
    return emitSeries(b, z, scaled);
  };
  Value sin = b.mul(
      u, series({0.00015820630355647733, -0.004681266256726245,
                 0.07969258272563062, -0.6459640961467954, 1.5707963267881}));
  Value cos = b.fma(z,
                    series({0.0009067398984032665, -0.020861528342199967,
                            0.2536694103571085, -1.2337005493742192}),
                    b.f64(factorHigh));
  Value top = b.addi(phaseTop, b.i32(1u << 29));
  Value wide =
      b.shl(b.cast<arith::ExtUIOp>(builder.getI64Type(), top), b.i64(32));
  auto values = emitQuadrant(b, wide, {cos, sin}, inverse);
  return {values.cos, values.sin};
}

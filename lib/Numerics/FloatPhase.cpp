//===- FloatPhase.cpp - exact phase of a float ----------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Numerics/FloatPhase.h"

#include "posenc/Numerics/ElementwiseBuilder.h"
#include "posenc/Support/BigFloat.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"

#include <limits>

using namespace mlir;
using namespace mlir::posenc;

namespace {
/// The absolute value of a float in fixed point, and its sign: all bits set, or
/// none.
struct FixedPoint {
  Value whole, fraction, sign;
};
} // namespace

/// Shifts to the left, or to the right if `left` is negative. Counts beyond 63
/// are taken as 63, which is right for all that reach the result: the numbers
/// have 53 bits.
static Value shift(ElementwiseBuilder &b, Value bits, Value left) {
  Value zero = b.i64(0), max = b.i64(63);
  auto clamp = [&](Value count) {
    return b.binary<arith::MinSIOp>(b.binary<arith::MaxSIOp>(count, zero), max);
  };
  return b.shru(b.shl(bits, clamp(left)), clamp(b.subi(zero, left)));
}

static FixedPoint splitPosition(ElementwiseBuilder &b, Value position) {
  Value bits = b.cast<arith::BitcastOp>(b.builder.getI64Type(), position);
  Value exponent = b.andi(b.shru(bits, b.i64(52)), b.i64(0x7ff));
  // A subnormal number, which has no leading one, is far below the fraction.
  Value mantissa = b.ori(b.andi(bits, b.i64((int64_t{1} << 52) - 1)),
                         b.i64(int64_t{1} << 52));
  // |p| = mantissa * 2^(exponent - 1075).
  Value whole = shift(b, mantissa, b.subi(exponent, b.i64(1075)));
  Value ofFraction = b.subi(exponent, b.i64(1075 - 64));
  Value isInteger = b.cast<arith::ExtSIOp>(
      b.builder.getI64Type(),
      arith::CmpIOp::create(b.builder, b.loc, arith::CmpIPredicate::sgt,
                            ofFraction, b.i64(63)));
  Value fraction =
      b.andi(shift(b, mantissa, ofFraction), b.xori(isInteger, b.i64(-1)));
  return {whole, fraction, b.shrs(bits, b.i64(63))};
}

// As in ExactSincos, masks and shifts let the backend see that only the lower
// halves of factors count.
Value mlir::posenc::emitPhaseOfFloat(OpBuilder &builder, Location loc,
                                     Value position,
                                     const FloatFrequency &frequency) {
  ElementwiseBuilder b(builder, loc, position);
  auto [whole, fraction, sign] = splitPosition(b, position);
  Value thirtyTwo = b.i64(32);
  auto lower = [&](Value value) { return b.andi(value, b.i64(0xffffffff)); };
  auto upper = [&](Value value) { return b.shru(value, thirtyTwo); };
  auto raise = [&](Value value) { return b.shl(value, thirtyTwo); };
  Value h0 = lower(frequency.high), h1 = upper(frequency.high);
  Value l = lower(frequency.low);
  Value i0 = lower(whole), i1 = upper(whole);
  Value q0 = lower(fraction), q1 = upper(fraction);

  // Adds the parts of the products below 2^-64 turns, the unit of the phase, in
  // units of 2^-96 turns. Half a unit in addition makes the carry round.
  Value iL = b.muli(i0, l), q1H0 = b.muli(q1, h0), q0H1 = b.muli(q0, h1);
  Value below = b.addi(upper(b.muli(q0, h0)), upper(b.muli(q1, l)));
  below = b.addi(below, b.addi(lower(iL), lower(q1H0)));
  below = b.addi(below, b.addi(lower(q0H1), b.i64(int64_t{1} << 31)));

  Value phase = b.addi(b.muli(q1, h1), upper(below));
  phase = b.addi(phase, b.addi(upper(iL), upper(q1H0)));
  phase = b.addi(phase, b.addi(upper(q0H1), b.muli(i0, h0)));
  phase = b.addi(phase, b.addi(raise(b.muli(i0, h1)), raise(b.muli(i1, h0))));
  phase = b.addi(phase, b.muli(i1, l));
  if (frequency.whole)
    phase = b.addi(phase, b.muli(fraction, frequency.whole));
  return b.subi(b.xori(phase, sign), sign);
}

Value mlir::posenc::emitFloatPosition(OpBuilder &builder, Location loc,
                                      Value position, bool rounds) {
  if (rounds && position.getType().isIndex())
    position = arith::IndexCastOp::create(builder, loc, builder.getI64Type(),
                                          position);
  auto convert = [&](Type type) {
    position = convertScalarToDtype(builder, loc, position, type,
                                    /*isUnsignedCast=*/false);
  };
  if (rounds)
    convert(builder.getF32Type());
  convert(builder.getF64Type());
  return position;
}

Value mlir::posenc::emitRoundedAngle(OpBuilder &builder, Location loc,
                                     Value position, Value frequency) {
  ElementwiseBuilder b(builder, loc, position);
  Value narrow = b.cast<arith::TruncFOp>(builder.getF32Type(), position);
  return b.cast<arith::ExtFOp>(builder.getF64Type(), b.mul(narrow, frequency));
}

Value mlir::posenc::emitPhaseOfAngle(OpBuilder &builder, Location loc,
                                     Value angle) {
  ElementwiseBuilder b(builder, loc, angle);
  auto turns = ::posenc::Turns::fromRadians(1.0);
  return emitPhaseOfFloat(builder, loc, angle,
                          {/*whole=*/nullptr,
                           b.i64(static_cast<int64_t>(turns.high)),
                           b.i64(turns.low)});
}

Value mlir::posenc::emitFloatGuard(OpBuilder &builder, Location loc,
                                   Value position) {
  ElementwiseBuilder b(builder, loc, position);
  // The bits of floats without the sign are ordered as their absolute values
  // are, and those of NaN are above.
  Value bits = b.andi(b.cast<arith::BitcastOp>(builder.getI64Type(), position),
                      b.i64(INT64_MAX));
  Value isExact =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, bits,
                            b.i64(llvm::bit_cast<int64_t>(0x1p63)));
  return b.select(isExact, b.f64(0.0),
                  b.f64(std::numeric_limits<double>::quiet_NaN()));
}

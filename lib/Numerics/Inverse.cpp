//===- Inverse.cpp - inverse trigonometric functions ------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Numerics/MathBuilder.h"

using namespace mlir;
using namespace mlir::posenc;

static constexpr double kHalfPi = 0x1.921fb54442d18p+0;
static constexpr double kHalfPiRest = 0x1.1a62633145c07p-54;

/// atan(x) - x for 0 <= x <= 1, with an error of x times 2^-57.6, or 2^-33.9
/// for f32.
static Value emitAtanTail(MathBuilder &b, Value x) {
  Value z = b.mul(x, x);
  Value tail;
  if (b.forF32)
    tail = b.series(
        z, {-0x1.6ded4f6783324p-11, 0x1.42d9c1ea58821p-8, -0x1.0b0c43c5f682ap-6,
            0x1.1a6ca9c056440p-5, -0x1.be97c41f66410p-5, 0x1.29588f854a433p-4,
            -0x1.700b16abffefap-4, 0x1.c66e48ee2bbb8p-4, -0x1.248a2c61df890p-3,
            0x1.999937ec6d5f3p-3, -0x1.555554872c81bp-2});
  else
    tail = b.series(
        z,
        {0x1.bbc52b5eb39c7p-17, -0x1.3f1c56cb18d31p-13, 0x1.b3dbe87df2810p-11,
         -0x1.7a2301cd32b00p-9, 0x1.d7a2670cf011dp-8,   -0x1.c77f16d7a2719p-7,
         0x1.683385b07aa85p-6,  -0x1.e9f22475ad9bfp-6,  0x1.2c2bbb511f104p-5,
         -0x1.59a2a07e22a3ep-5, 0x1.82da48babd7b9p-5,   -0x1.ae5e456ffa4edp-5,
         0x1.e1bb9b5a5a1d2p-5,  -0x1.110e5020d32aep-4,  0x1.3b1366764edb8p-4,
         -0x1.745d11aaf51a1p-4, 0x1.c71c717f944c4p-4,   -0x1.249249237e1fep-3,
         0x1.9999999995545p-3,  -0x1.5555555555526p-2});
  return b.mul(b.mul(x, z), tail);
}

/// asin(x) - x for 0 <= x <= 1/2, with an error of x times 2^-59.8, or 2^-35.8
/// for f32; `z` is x^2.
static Value emitAsinTail(MathBuilder &b, Value x, Value z) {
  Value tail;
  if (b.forF32)
    tail = b.series(z, {0x1.1c310e230b614p-5, 0x1.e997879db6a24p-8,
                        0x1.9356c2c3312bep-6, 0x1.ed53eadcce132p-6,
                        0x1.6ddb22c9717f4p-5, 0x1.3332a81b96fc2p-4,
                        0x1.55555608f9068p-3});
  else
    tail = b.series(
        z, {0x1.0baed5bad956bp-5, -0x1.594f6890acbd9p-6, 0x1.648ef876b6404p-6,
            0x1.e2cb2ce0def45p-9, 0x1.6173156cd30eap-7, 0x1.757ba39eb53d7p-7,
            0x1.ca20c8ac5197fp-7, 0x1.1c49e2f955df2p-6, 0x1.6e8bdfa2a52b8p-6,
            0x1.f1c71a8dea342p-6, 0x1.6db6db7225910p-5, 0x1.333333332df8bp-4,
            0x1.5555555555578p-3});
  return b.mul(b.mul(x, z), tail);
}

Value MathBuilder::atan(Value x) {
  // atan(x) = pi/2 - atan(1/x) for x above 1.
  Value size = abs(x), one = number(1.0);
  Value isLarge = compare(arith::CmpFPredicate::OGT, size, one);
  Value inner = select(isLarge, div(one, size), size);
  Value tail = emitAtanTail(*this, inner);
  Value large =
      sub(number(kHalfPi), sub(inner, sub(number(kHalfPiRest), tail)));
  return copySign(select(isLarge, large, add(inner, tail)), x);
}

Value MathBuilder::atan2(Value y, Value x) {
  // Divides the smaller magnitude by the larger one. The quotient is 1 if both
  // are infinite, and 0 if both are zero.
  Value sizeX = abs(x), sizeY = abs(y);
  Value isSteep = compare(arith::CmpFPredicate::OGT, sizeY, sizeX);
  Value min = select(isSteep, sizeX, sizeY);
  Value max = select(isSteep, sizeY, sizeX);
  Value inner = div(min, max);
  inner =
      select(compare(arith::CmpFPredicate::OEQ, min, max), number(1.0), inner);
  inner =
      select(compare(arith::CmpFPredicate::OEQ, max, number(0.0)), max, inner);
  Value tail = emitAtanTail(*this, inner);
  // The result is 0, pi/2 or pi plus or minus the arc tangent of the quotient.
  Value isLeft = compare(arith::CmpIPredicate::slt, toBits(x), integer(0));
  Value zero = number(0.0);
  auto choose = [&](double halfPi) {
    return select(isSteep, number(halfPi),
                  select(isLeft, number(2 * halfPi), zero));
  };
  Value angle = choose(kHalfPi), rest = choose(kHalfPiRest);
  // For a steep angle in the left half-plane the angle is added: pi/2 +
  // atan(x/y).
  Value isSubtracted = arith::XOrIOp::create(builder, loc, isSteep, isLeft);
  inner = select(isSubtracted, neg(inner), inner);
  tail = select(isSubtracted, neg(tail), tail);
  Value result = add(angle, add(inner, add(tail, rest)));
  Value isNaN = compare(arith::CmpFPredicate::UNO, x, y);
  // The result has no sign yet. LLVM lowers a scalar copysign from an extended
  // f16 to a call of its runtime library.
  Value isBelow = compare(arith::CmpIPredicate::slt, toBits(y), integer(0));
  return select(isNaN, nan(), select(isBelow, neg(result), result));
}

Value MathBuilder::asin(Value x) {
  // asin(x) = pi/2 - 2 asin(sqrt((1 - x)/2)) for x above 1/2.
  Value size = abs(x), half = number(0.5);
  Value isLarge = compare(arith::CmpFPredicate::OGT, size, half);
  Value z = select(isLarge, fma(size, number(-0.5), half), mul(x, x));
  Value inner = select(isLarge, sqrt(z), size);
  Value tail = emitAsinTail(*this, inner, z);
  Value two = number(-2.0);
  Value large = fma(inner, two, number(kHalfPi));
  large = add(large, fma(tail, two, number(kHalfPiRest)));
  return copySign(select(isLarge, large, add(inner, tail)), x);
}

Value MathBuilder::acos(Value x) {
  // acos(x) is pi/2 - asin(x) between -1/2 and 1/2, 2 asin(sqrt((1 - x)/2))
  // above, and pi - acos(-x) below.
  Value size = abs(x), half = number(0.5);
  Value isLarge = compare(arith::CmpFPredicate::OGT, size, half);
  Value z = select(isLarge, fma(size, number(-0.5), half), mul(x, x));
  Value inner = select(isLarge, sqrt(z), size);
  Value tail = emitAsinTail(*this, inner, z);
  Value signedInner = copySign(inner, x), signedTail = copySign(tail, x);
  Value small = sub(number(kHalfPi),
                    sub(signedInner, sub(number(kHalfPiRest), signedTail)));
  Value positive = add(inner, tail);
  Value negative =
      sub(number(kHalfPi), sub(inner, sub(number(kHalfPiRest), tail)));
  Value isNegative = compare(arith::CmpFPredicate::OLT, x, number(0.0));
  Value large = select(isNegative, negative, positive);
  return select(isLarge, add(large, large), small);
}

//===- Trigonometric.cpp - sin, cos and tan of any angle --------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Angles are reduced by the method of Payne and Hanek: only those bits of 2/pi
// are multiplied whose products are less than a whole turn.
//
// For f32, in f64: each of five intervals of exponents has its own bits of 1/pi
// or 2/pi, so that the integer part of the product has at most 46 bits. The
// nearest that an f32 comes to a multiple of pi/2 is 2^-30; the reduced angle
// is within 2^-58.
//
// For f64, in integers: the 53 bits of the argument times 192 bits of 2/pi. 126
// bits of the product are a fraction of a quarter turn. The nearest that an f64
// comes to a multiple of pi/2 is 2^-61.
//
//===----------------------------------------------------------------------===//

#include "posenc/Numerics/MathBuilder.h"
#include "posenc/Numerics/SincosSeries.h"

#include "posenc/Support/BigFloat.h"

#include <array>
#include <cmath>

using namespace mlir;
using namespace mlir::posenc;
using ::posenc::BigFloat;

//===----------------------------------------------------------------------===//
// f32
//===----------------------------------------------------------------------===//

namespace {
/// An angle in half or quarter turns.
struct ReducedAngle {
  Value bits;     // of which the lowest is that of the nearest integer
  Value fraction; // what is left, from -1/2 to 1/2
};

/// 1/pi or 2/pi in two parts, without those bits that times numbers of some
/// interval are multiples of 2.
struct Reciprocal {
  double hi, lo;
};
} // namespace

/// For numbers of f32 of at least 2^exponent; they are multiples of
/// 2^(exponent-23).
static Reciprocal getReciprocal(const BigFloat &whole, int exponent) {
  BigFloat scale(std::ldexp(1.0, exponent - 24));
  BigFloat part = whole - floor(whole * scale) / scale;
  double hi = part.toDouble();
  return {hi, (part - BigFloat(hi)).toDouble()};
}

/// Reduces `size * perRadian + shift` for a non-negative number of f32 and a
/// shift of 0 or 1/2. The fraction of an infinity is NaN.
static ReducedAngle reduceAngle(MathBuilder &b, Value size,
                                const BigFloat &perRadian, double shift) {
  // The first interval ends at 2^46, and the others are 2^22 wide.
  Reciprocal first = getReciprocal(perRadian, /*exponent=*/24);
  Value hi = b.f64(first.hi), lo = b.f64(first.lo);
  for (int exponent = 46; exponent < 128; exponent += 22) {
    Reciprocal other = getReciprocal(perRadian, exponent);
    Value isBeyond = b.compare(arith::CmpFPredicate::OGE, size,
                               b.f64(std::ldexp(1.0, exponent)));
    hi = b.select(isBeyond, b.f64(other.hi), hi);
    lo = b.select(isBeyond, b.f64(other.lo), lo);
  }
  TwoFloats product = b.twoProduct(size, hi);
  auto [bits, nearest] = b.roundToInteger(
      shift == 0.0 ? product.hi : b.add(product.hi, b.f64(shift)));
  if (shift != 0.0)
    nearest = b.sub(nearest, b.f64(shift));
  // Both sums are exact: x has 24 bits, and the product 77.
  Value fraction = b.add(b.sub(product.hi, nearest), product.lo);
  return {bits, b.fma(size, lo, fraction)};
}

/// sin(pi * x) for |x| <= 1/2, with a relative error of 2^-43.9.
static Value emitSinOfHalfTurns(MathBuilder &b, Value x) {
  Value tail =
      b.series(b.mul(x, x), {0x1.d4ec830209c68p-12, -0x1.e297d115ead42p-8,
                             0x1.5076fea55cbc7p-4, -0x1.32d2c96c7b900p-1,
                             0x1.466bc66dc846ap+1, -0x1.4abbce6247edcp+2,
                             0x1.921fb54442b5fp+1});
  return b.mul(x, tail);
}

/// The function of f32 is sin(x) or, shifted by half a half turn, cos(x).
static Value emitSinForF32(MathBuilder &b, Value size, double shift) {
  BigFloat perRadian = BigFloat(1.0) / BigFloat::pi();
  ReducedAngle angle = reduceAngle(b, size, perRadian, shift);
  Value sin = emitSinOfHalfTurns(b, angle.fraction);
  return b.xorSign(sin, b.shl(angle.bits, b.i64(63)));
}

static Value emitTanForF32(MathBuilder &b, Value size) {
  BigFloat perRadian = BigFloat(2.0) / BigFloat::pi();
  ReducedAngle angle = reduceAngle(b, size, perRadian, /*shift=*/0.0);
  // In quarter turns, with relative errors of 2^-37.7 and 2^-43.8.
  Value u = angle.fraction, z = b.mul(u, u);
  Value sin = b.series(z, {0x1.4bc1e7a9a45c4p-13, -0x1.32ca83ce6c03dp-8,
                           0x1.466bba88c9fd2p-4, -0x1.4abbce5648908p-1,
                           0x1.921fb5443af28p+0});
  Value cos = b.series(z, {-0x1.a0d80d34edb09p-16, 0x1.e1e75e6175be3p-11,
                           -0x1.55d3b96e00740p-6, 0x1.03c1f073c7d11p-2,
                           -0x1.3bd3cc9bd08fap+0, 0x1.ffffffffffdb0p-1});
  sin = b.mul(u, sin);
  Value parity = b.shl(angle.bits, b.i64(63));
  Value isOdd = b.compare(arith::CmpIPredicate::slt, parity, b.i64(0));
  // tan(x + pi/2) = -1/tan(x)
  Value ratio = b.div(b.select(isOdd, cos, sin), b.select(isOdd, sin, cos));
  return b.xorSign(ratio, parity);
}

//===----------------------------------------------------------------------===//
// f64
//===----------------------------------------------------------------------===//

/// 2/pi * 2^1152 behind a word of zeros, highest word first.
static constexpr std::array<uint64_t, 20> kTwoByPi = {
    0x0000000000000000, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0,
    0xdb6295993c439041, 0xfe5163abdebbc561, 0xb7246e3a424dd2e0,
    0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484,
    0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b,
    0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7,
    0x4f463f669e5fea2d, 0x7527bac7ebe5f17b, 0x3d0739f78a5292ea,
    0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab};

/// Three words of kTwoByPi from a bit on, highest first. The words are chosen
/// by the bits of their number, since vectors have no cheap loads by index.
static std::array<Value, 3> selectTwoByPi(MathBuilder &b, Value firstBit) {
  Value index = b.shru(firstBit, b.i64(6));
  auto hasBit = [&](int64_t bit) {
    return b.compare(arith::CmpIPredicate::ne, b.andi(index, b.i64(bit)),
                     b.i64(0));
  };
  SmallVector<Value> words;
  for (uint64_t word : kTwoByPi)
    words.push_back(b.i64(static_cast<int64_t>(word)));
  SmallVector<Value> last(ArrayRef(words).slice(16, 4));
  // Each step decides one bit of the first word's number, and halves the number
  // of words that may still be the first.
  for (int64_t step = 8; step >= 1; step /= 2) {
    Value isFarther = hasBit(step);
    SmallVector<Value> chosen;
    for (int64_t i = 0; i < step + 3; ++i)
      chosen.push_back(b.select(isFarther, words[i + step], words[i]));
    words = std::move(chosen);
  }
  Value isLast = hasBit(16);
  for (auto [word, other] : llvm::zip_equal(words, last))
    word = b.select(isLast, other, word);
  // Shifts the lower word right by 1 and then by 63 - shift, because a shift by
  // 64 is undefined.
  Value shift = b.andi(firstBit, b.i64(63));
  Value opposite = b.xori(shift, b.i64(63));
  auto join = [&](int i) {
    Value low = b.shru(b.shru(words[i + 1], b.i64(1)), opposite);
    return b.ori(b.shl(words[i], shift), low);
  };
  return {join(0), join(1), join(2)};
}

namespace {
/// A product of 128 bits.
struct WideProduct {
  Value hi, lo;
};
} // namespace

/// The product of a number of 53 bits and one of 64. Factors have 32 bits each,
/// for which vectors have an instruction.
static WideProduct multiply(MathBuilder &b, Value x, Value y) {
  Value mask = b.i64(0xffffffff), half = b.i64(32);
  Value xl = b.andi(x, mask), xh = b.shru(x, half);
  Value yl = b.andi(y, mask), yh = b.shru(y, half);
  Value low = b.muli(xl, yl);
  Value middle = b.addi(b.muli(xh, yl), b.shru(low, half));
  Value other = b.addi(b.muli(xl, yh), b.andi(middle, mask));
  Value hi =
      b.addi(b.addi(b.muli(xh, yh), b.shru(middle, half)), b.shru(other, half));
  return {hi, b.ori(b.shl(other, half), b.andi(low, mask))};
}

namespace {
/// An angle as a multiple of pi/2 and what is left.
struct QuadrantAngle {
  Value phase;  // whose upper two bits are the quadrant
  Value hi, lo; // radians, between -pi/4 and pi/4
};
} // namespace

/// Reduces a non-negative f64 to a quadrant and the rest in radians. The rest
/// of an infinity is NaN.
static QuadrantAngle reduceToQuadrant(MathBuilder &b, Value size) {
  Value bits = b.toBits(size);
  Value exponent = b.shru(bits, b.i64(52));
  Value mantissa = b.ori(b.andi(bits, b.i64((int64_t{1} << 52) - 1)),
                         b.i64(int64_t{1} << 52));
  // x = mantissa * 2^(exponent-1075). Bits of 2/pi that are worth
  // 2^(1077-exponent) or more would contribute whole turns and are skipped.
  // Numbers below 1/2 are not reduced, so their exponent does not matter.
  exponent = arith::MaxSIOp::create(b.builder, b.loc, exponent, b.i64(1022));
  std::array<Value, 3> words =
      selectTwoByPi(b, b.subi(exponent, b.i64(1075 + 2 - 64)));
  // Computes the product modulo 2^192, without its lowest word.
  WideProduct p0 = multiply(b, mantissa, words[2]);
  WideProduct p1 = multiply(b, mantissa, words[1]);
  Value top = b.muli(mantissa, words[0]);
  Value lo = b.addi(p1.lo, p0.hi);
  Value carry = b.cast<arith::ExtUIOp>(
      b.builder.getI64Type(), b.compare(arith::CmpIPredicate::ult, lo, p0.hi));
  Value hi = b.addi(b.addi(top, p1.hi), carry);

  // Adding an eighth of a turn rounds to the nearest quarter turn. The bits
  // below the quadrant are then the rest, in quarter turns, plus 1/2.
  Value phase = b.addi(hi, b.i64(int64_t{1} << 61));
  Value upper = b.ori(b.shl(phase, b.i64(2)), b.shru(lo, b.i64(62)));
  Value lower = b.shl(lo, b.i64(2));
  Value half = b.i64(32), mask = b.i64(0xffffffff);
  Value f3 = emitFixedPoint(b, b.shru(upper, half), 0x1p-32, 0.5);
  Value f2 = emitFixedPoint(b, b.andi(upper, mask), 0x1p-64, 0.0);
  Value f1 = emitFixedPoint(b, b.shru(lower, half), 0x1p-96, 0.0);
  Value f0 = emitFixedPoint(b, b.andi(lower, mask), 0x1p-128, 0.0);
  TwoFloats sum = b.fastTwoSum(f3, f2);
  sum = b.fastTwoSum(sum.hi, b.add(sum.lo, b.add(f1, f0)));
  auto [radians, rest] = emitQuarterTurnsToRadians(b, sum.hi, sum.lo);

  Value isSmall = b.compare(arith::CmpFPredicate::OLT, size, b.f64(0.5));
  radians = b.select(isSmall, size, radians);
  rest = b.select(isSmall, b.f64(0.0), rest);
  phase = b.select(isSmall, b.i64(0), phase);
  // The difference is 0 for finite numbers, and NaN for infinities and NaNs.
  return {phase, b.add(radians, b.sub(size, size)), rest};
}

static CosSin emitCosSin(MathBuilder &b, Value size) {
  QuadrantAngle angle = reduceToQuadrant(b, size);
  return emitQuadrant(b, angle.phase, emitPreciseCosSin(b, angle.hi, angle.lo));
}

//===----------------------------------------------------------------------===//
// Both
//===----------------------------------------------------------------------===//

Value MathBuilder::sin(Value x) {
  // Computes the sine of |x| and applies the sign of x last, because the sums
  // would lose the sign of a zero.
  Value size = abs(x);
  Value result =
      forF32 ? emitSinForF32(*this, size, 0.0) : emitCosSin(*this, size).sin;
  return xorSign(result, toBits(x));
}

Value MathBuilder::cos(Value x) {
  Value size = abs(x);
  return forF32 ? emitSinForF32(*this, size, 0.5) : emitCosSin(*this, size).cos;
}

Value MathBuilder::tan(Value x) {
  Value size = abs(x), result;
  if (forF32) {
    result = emitTanForF32(*this, size);
  } else {
    auto [cos, sin] = emitCosSin(*this, size);
    result = div(sin, cos);
  }
  return xorSign(result, toBits(x));
}

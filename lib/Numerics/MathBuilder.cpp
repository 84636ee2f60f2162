//===- MathBuilder.cpp - arithmetic that functions are made of --*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Numerics/MathBuilder.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/bit.h"

#include <limits>

using namespace mlir;
using namespace mlir::posenc;

MathBuilder::MathBuilder(OpBuilder &builder, Location loc, Value like,
                         bool hasAVX512, bool forF32)
    : ElementwiseBuilder(builder, loc, like),
      wide(getElementTypeOrSelf(like.getType()).isF64()), forF32(forF32),
      hasAVX512(hasAVX512) {
  assert((wide || !forF32) && "results for f32 are computed in f64");
}

Value MathBuilder::infinity() {
  return number(std::numeric_limits<double>::infinity());
}

Value MathBuilder::nan() {
  return number(std::numeric_limits<double>::quiet_NaN());
}

Value MathBuilder::toBits(Value value) {
  return cast<arith::BitcastOp>(
      wide ? builder.getI64Type() : builder.getI32Type(), value);
}

Value MathBuilder::fromBits(Value bits) {
  return cast<arith::BitcastOp>(
      wide ? Type(builder.getF64Type()) : Type(builder.getF32Type()), bits);
}

Value MathBuilder::xorSign(Value a, Value sign) {
  Value signBit =
      integer(wide ? std::numeric_limits<int64_t>::min() : int64_t{0x80000000});
  return fromBits(xori(toBits(a), andi(sign, signBit)));
}

Value MathBuilder::series(Value x, ArrayRef<double> coefficients) {
  Value sum = number(coefficients.front());
  for (double coefficient : coefficients.drop_front())
    sum = fma(sum, x, number(coefficient));
  return sum;
}

/// At this size the unit in the last place is 1.
static double getMagic(bool wide) { return wide ? 0x1.8p52 : 0x1.8p23; }

std::pair<Value, Value> MathBuilder::roundToInteger(Value value) {
  Value magic = number(getMagic(wide));
  Value shifted = add(value, magic);
  return {toBits(shifted), sub(shifted, magic)};
}

Value MathBuilder::toFloat(Value value) {
  assert(wide && "f32 has fewer bits");
  double magic = getMagic(wide);
  Value bits = addi(value, integer(llvm::bit_cast<int64_t>(magic)));
  return sub(fromBits(bits), number(magic));
}

Value MathBuilder::powerOf2(Value n) {
  Value biased = addi(n, integer(wide ? 1023 : 127));
  return fromBits(shl(biased, integer(wide ? 52 : 23)));
}

TwoFloats MathBuilder::fastTwoSum(Value a, Value b) {
  Value sum = add(a, b);
  return {sum, sub(b, sub(sum, a))};
}

TwoFloats MathBuilder::twoSum(Value a, Value b) {
  Value sum = add(a, b);
  Value ofB = sub(sum, a);
  Value ofA = sub(sum, ofB);
  return {sum, add(sub(a, ofA), sub(b, ofB))};
}

TwoFloats MathBuilder::twoProduct(Value a, Value b) {
  Value result = mul(a, b);
  return {result, fma(a, b, neg(result))};
}

TwoFloats MathBuilder::product(TwoFloats a, TwoFloats b) {
  TwoFloats result = twoProduct(a.hi, b.hi);
  Value lo = fma(a.lo, b.hi, result.lo);
  return fastTwoSum(result.hi, fma(a.hi, b.lo, lo));
}

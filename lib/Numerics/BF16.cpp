//===- BF16.cpp - bf16 rounding and bf16 halves of words ------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Numerics/BF16.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::posenc;

Value mlir::posenc::roundToBF16(ElementwiseBuilder &b, Value bits,
                                Value isNaN) {
  // Rounds to nearest even: adding 0x7fff, and 1 more if the last kept bit is
  // odd, carries into the kept bits if and only if the number is rounded up.
  Value odd = b.andi(b.shru(bits, b.i32(16)), b.i32(1));
  Value rounded = b.addi(b.addi(bits, b.i32(0x7fff)), odd);
  Value quiet = b.ori(bits, b.i32(0x00400000));
  return b.shru(b.select(isNaN, quiet, rounded), b.i32(16));
}

BF16Halves mlir::posenc::splitBF16(OpBuilder &builder, Location loc,
                                   Value value) {
  int64_t length = cast<VectorType>(value.getType()).getNumElements();
  auto type = VectorType::get({length / 2}, builder.getI32Type());
  Value words = vector::BitCastOp::create(builder, loc, type, value);
  ElementwiseBuilder b(builder, loc, words);
  Value even = b.shl(words, b.i32(16));
  Value odd = b.andi(words, b.i32(0xffff0000));
  Type f32 = builder.getF32Type();
  return {b.cast<arith::BitcastOp>(f32, even),
          b.cast<arith::BitcastOp>(f32, odd)};
}

/// Joins the upper halves of words to one vector.
static Value joinUpper(OpBuilder &builder, Location loc, Value even,
                       Value odd) {
  ElementwiseBuilder b(builder, loc, even);
  return b.ori(b.shru(even, b.i32(16)), b.andi(odd, b.i32(0xffff0000)));
}

/// Joins the lower halves of words to one vector.
static Value joinLower(OpBuilder &builder, Location loc, Value even,
                       Value odd) {
  ElementwiseBuilder b(builder, loc, even);
  return b.ori(b.andi(even, b.i32(0xffff)), b.shl(odd, b.i32(16)));
}

static Value castHalves(OpBuilder &builder, Location loc, Value words,
                        Type element) {
  int64_t length = cast<VectorType>(words.getType()).getNumElements();
  return vector::BitCastOp::create(
      builder, loc, VectorType::get({2 * length}, element), words);
}

Value mlir::posenc::joinRoundedBF16(OpBuilder &builder, Location loc,
                                    BF16Halves bits) {
  return castHalves(builder, loc, joinUpper(builder, loc, bits.even, bits.odd),
                    builder.getBF16Type());
}

Value mlir::posenc::joinBF16(OpBuilder &builder, Location loc,
                             BF16Halves halves) {
  auto getBits = [&](Value value) {
    ElementwiseBuilder b(builder, loc, value);
    return b.cast<arith::BitcastOp>(builder.getI32Type(), value);
  };
  Value even = getBits(halves.even), odd = getBits(halves.odd);
  Type half = builder.getI16Type();
  Value upper =
      castHalves(builder, loc, joinUpper(builder, loc, even, odd), half);
  Value lower =
      castHalves(builder, loc, joinLower(builder, loc, even, odd), half);
  // A tie is rounded up from an odd number, down from an even one. The sum is
  // in 16-bit halves, which take half as many vectors as words.
  ElementwiseBuilder b(builder, loc, upper);
  Value isEven = b.andi(b.xori(upper, b.i16(0xffff)), b.i16(1));
  Value above =
      b.subi(arith::MaxUIOp::create(builder, loc, lower, isEven), isEven);
  Value rounded = b.addi(upper, b.shru(above, b.i16(15)));
  return vector::BitCastOp::create(
      builder, loc,
      cast<VectorType>(upper.getType()).clone(builder.getBF16Type()), rounded);
}

Value mlir::posenc::flushSubnormals(ElementwiseBuilder &b, Value x) {
  Value smallest = b.f32(0x1p-126);
  Value sign = b.i32(0x80000000);
  Value isSmall = arith::CmpFOp::create(
      b.builder, b.loc, arith::CmpFPredicate::OLT,
      math::AbsFOp::create(b.builder, b.loc, x), smallest);
  Type i32 = b.builder.getI32Type(), f32 = b.builder.getF32Type();
  Value zero = b.cast<arith::BitcastOp>(
      f32, b.andi(b.cast<arith::BitcastOp>(i32, x), sign));
  return b.select(isSmall, zero, x);
}

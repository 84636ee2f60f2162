//===- BF16Halves.cpp - vectors of bf16 as halves of words ------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BF16Halves.h"

#include "ElementwiseBuilder.h"
#include "VectorLoops.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::posenc;

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

Value mlir::posenc::roundBF16(OpBuilder &builder, Location loc, Value value) {
  ElementwiseBuilder b(builder, loc, value);
  Value bits = b.cast<arith::BitcastOp>(builder.getI32Type(), value);
  Value odd = b.andi(b.shru(bits, b.i32(16)), b.i32(1));
  return b.addi(b.addi(bits, b.i32(0x7fff)), odd);
}

Value mlir::posenc::joinRoundedBF16(OpBuilder &builder, Location loc,
                                    BF16Halves bits) {
  ElementwiseBuilder b(builder, loc, bits.even);
  Value words =
      b.ori(b.shru(bits.even, b.i32(16)), b.andi(bits.odd, b.i32(0xffff0000)));
  int64_t length = cast<VectorType>(words.getType()).getNumElements();
  return vector::BitCastOp::create(
      builder, loc, VectorType::get({2 * length}, builder.getBF16Type()),
      words);
}

Value mlir::posenc::joinBF16(OpBuilder &builder, Location loc,
                             BF16Halves halves) {
  return joinRoundedBF16(builder, loc,
                         {roundBF16(builder, loc, halves.even),
                          roundBF16(builder, loc, halves.odd)});
}

SmallVector<int64_t> mlir::posenc::getHalvesOrder(int64_t count,
                                                  int64_t lanes) {
  SmallVector<int64_t> order;
  for (auto [first, length] : splitIntoVectors(count, lanes))
    for (int64_t odd : {0, 1})
      for (int64_t number = odd; number < length; number += 2)
        order.push_back(first + number);
  return order;
}

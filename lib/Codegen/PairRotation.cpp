//===- PairRotation.cpp - rotation of a tile of pairs ---------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PairRotation.h"

#include "posenc/Numerics/ElementwiseBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::posenc;

Value mlir::posenc::createLanes(OpBuilder &builder, Location loc, Value memref,
                                ValueRange indices, int64_t count,
                                int64_t stride) {
  SmallVector<OpFoldResult> offsets = getAsOpFoldResult(indices);
  SmallVector<OpFoldResult> sizes(offsets.size(), builder.getIndexAttr(1));
  SmallVector<OpFoldResult> strides = sizes;
  sizes.back() = builder.getIndexAttr(count);
  strides.back() = builder.getIndexAttr(stride);
  MemRefType type = memref::SubViewOp::inferRankReducedResultType(
      {count}, cast<MemRefType>(memref.getType()), offsets, sizes, strides);
  return memref::SubViewOp::create(builder, loc, type, memref, offsets, sizes,
                                   strides);
}

/// Emits the rotation of one pair, in the type `compute`. If `isNegated`, sinX
/// is already negated.
static std::pair<Value, Value> rotatePair(OpBuilder &builder, Location loc,
                                          Type compute, Value x, Value y,
                                          Value cosX, Value sinX, Value cosY,
                                          Value sinY, bool isNegated) {
  Type element = x.getType();
  if (element != compute) {
    x = arith::ExtFOp::create(builder, loc, compute, x);
    y = arith::ExtFOp::create(builder, loc, compute, y);
  }
  ElementwiseBuilder b(builder, loc, x);
  Value ys = b.mul(y, sinX), xs = b.mul(x, sinY);
  Value newX = b.fma(x, cosX, isNegated ? ys : b.neg(ys));
  Value newY = b.fma(y, cosY, xs);
  if (element != compute) {
    newX = arith::TruncFOp::create(builder, loc, element, newX);
    newY = arith::TruncFOp::create(builder, loc, element, newY);
  }
  return {newX, newY};
}

linalg::GenericOp mlir::posenc::createRotation(OpBuilder &builder, Location loc,
                                               Type compute,
                                               ArrayRef<PairLanes> parts) {
  bool isNegated = parts.front().cosX != parts.front().cosY;
  SmallVector<Value> inputs, outputs;
  for (const PairLanes &part : parts) {
    inputs.append({part.x, part.y, part.cosX, part.sinX});
    if (isNegated)
      inputs.append({part.cosY, part.sinY});
    outputs.append({part.newX, part.newY});
  }
  size_t numInputs = inputs.size() / parts.size();
  SmallVector<AffineMap> maps(inputs.size() + outputs.size(),
                              builder.getMultiDimIdentityMap(1));
  return linalg::GenericOp::create(
      builder, loc, inputs, outputs, maps, {utils::IteratorType::parallel},
      [&](OpBuilder &b, Location l, ValueRange arguments) {
        SmallVector<Value> results;
        for (size_t part = 0; part < parts.size(); ++part) {
          ValueRange args = arguments.slice(part * numInputs, numInputs);
          auto [newX, newY] = rotatePair(
              b, l, compute, args[0], args[1], args[2], args[3],
              args[isNegated ? 4 : 2], args[isNegated ? 5 : 3], isNegated);
          results.append({newX, newY});
        }
        linalg::YieldOp::create(b, l, results);
      });
}

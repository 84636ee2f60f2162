//===- RopeTables.cpp - tables of cos and sin of a rope -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RopeTables.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::posenc;
using ::posenc::BigFloat;

/// Returns the leading sizes of a rope's tables, one per dimension of positions
/// without axes.
static SmallVector<OpFoldResult> getTableSizes(RopeOp op, OpBuilder &builder) {
  Location loc = op.getLoc();
  // A scalar position counts along a dimension of the tensors.
  if (op.getScalarPositionOperand())
    return {tensor::getMixedSize(builder, loc, op.getInputs().front(),
                                 op.getDims().front())};
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(builder, loc, op.getPositions());
  if (op.getAxesAttr())
    sizes.erase(sizes.begin());
  return sizes;
}

/// Returns a constant tensor with the exponent of the factor of each pair.
static Value createExponents(OpBuilder &builder, RopeOp op) {
  SmallVector<double> values;
  for (const BigFloat &exponent :
       op.getScaleAttr().computeExponents(op.getFrequencies().getNumPairs()))
    values.push_back(exponent.toDouble() * (op.getInverse() ? -1 : 1));
  auto type = RankedTensorType::get({static_cast<int64_t>(values.size())},
                                    builder.getF64Type());
  return arith::ConstantOp::create(
      builder, op.getLoc(), DenseElementsAttr::get(type, ArrayRef(values)));
}

/// Emits `2^(distance*exponent)` in f32. The product is f64 and is split into
/// its integral part and its fraction, whose powers are computed apart: in f32,
/// the fraction of a large product would have few bits.
static Value emitFactor(OpBuilder &builder, Location loc, Value distance,
                        Value exponent) {
  Type narrow = builder.getF32Type();
  Value power = arith::MulFOp::create(builder, loc, distance, exponent);
  Value whole = math::FloorOp::create(builder, loc, power);
  Value fraction = arith::SubFOp::create(builder, loc, power, whole);
  auto exp2 = [&](Value part) -> Value {
    return math::Exp2Op::create(
        builder, loc, arith::TruncFOp::create(builder, loc, narrow, part));
  };
  Value ofWhole = exp2(whole), ofFraction = exp2(fraction);
  return arith::MulFOp::create(builder, loc, ofWhole, ofFraction);
}

/// Emits the f64 distance of a position from the origin of the scale.
static Value emitDistance(OpBuilder &builder, Location loc, RopeOp op,
                          Value position) {
  Type wide = builder.getF64Type();
  if (isa<FloatType>(position.getType())) {
    if (!position.getType().isF64())
      position = arith::ExtFOp::create(builder, loc, wide, position);
  } else {
    Type index = builder.getI64Type();
    position = getValueOrCreateCastToIndexLike(builder, loc, index, position);
    if (op.getScalarPositionOperand()) {
      Value row = getValueOrCreateCastToIndexLike(
          builder, loc, index, linalg::IndexOp::create(builder, loc, 0));
      position = arith::AddIOp::create(builder, loc, position, row);
    }
    position = arith::SIToFPOp::create(builder, loc, wide, position);
  }
  // A difference of integers could wrap.
  double origin = static_cast<double>(op.getScaleAttr().getOrigin());
  return arith::SubFOp::create(
      builder, loc, position,
      arith::ConstantOp::create(builder, loc, builder.getF64FloatAttr(origin)));
}

/// Multiplies both tables, in place, by `factor`, and by the factors of the
/// positions if the rope has a scale.
static ValueRange scaleTables(OpBuilder &builder, RopeOp op, ValueRange tables,
                              double factor) {
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(tables.front().getType());
  unsigned rank = type.getRank();
  AffineMap map = builder.getMultiDimIdentityMap(rank);
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  if (op.getScaleAttr()) {
    inputs = {op.getPositions(), createExponents(builder, op)};
    maps = {op.getScalarPositionOperand()
                ? AffineMap::get(rank, 0, builder.getContext())
                : map.dropResult(rank - 1),
            map.getSubMap({rank - 1})};
  }
  maps.append({map, map});
  auto body = [&](OpBuilder &b, Location loc, ValueRange args) {
    Value product = arith::ConstantOp::create(
        b, loc, b.getFloatAttr(type.getElementType(), factor));
    if (op.getScaleAttr()) {
      Value distance = emitDistance(b, loc, op, args[0]);
      Value scale = emitFactor(b, loc, distance, args[1]);
      product = factor == 1
                    ? scale
                    : arith::MulFOp::create(b, loc, scale, product).getResult();
    }
    SmallVector<Value> scaled;
    for (Value element : args.take_back(2))
      scaled.push_back(arith::MulFOp::create(b, loc, element, product));
    linalg::YieldOp::create(b, loc, scaled);
  };
  SmallVector<utils::IteratorType> loops(rank, utils::IteratorType::parallel);
  return linalg::GenericOp::create(builder, loc, TypeRange{type, type}, inputs,
                                   tables, maps, loops, body)
      .getResults();
}

std::pair<Value, Value> mlir::posenc::createRopeTables(OpBuilder &builder,
                                                       RopeOp op) {
  Location loc = op.getLoc();
  FrequenciesAttr frequencies = op.getFrequencies();
  SmallVector<OpFoldResult> sizes = getTableSizes(op, builder);
  sizes.push_back(builder.getIndexAttr(frequencies.getNumPairs()));
  bool wide = getElementTypeOrSelf(op.getInputs().front()).isF64();
  Type element = wide ? builder.getF64Type() : builder.getF32Type();
  SmallVector<Value> inits;
  for (int i = 0; i < 2; ++i)
    inits.push_back(tensor::EmptyOp::create(builder, loc, sizes, element));
  ValueRange tables =
      SincosOp::create(builder, loc, ValueRange(inits).getTypes(),
                       op.getPositions(), op.getTurns(), inits, frequencies,
                       op.getAxesAttr())
          .getResults();
  // The tables contain the attention factor `att`, but an inverse rope divides
  // by it.
  double factor = 1;
  if (op.getInverse() && !frequencies.hasUnitAttentionFactor()) {
    BigFloat att = frequencies.computeAttentionFactor();
    factor = (BigFloat(1.0) / (att * att)).toDouble();
  }
  if (factor != 1 || op.getScaleAttr())
    tables = scaleTables(builder, op, tables, factor);
  return {tables[0], tables[1]};
}

void mlir::posenc::replaceByRotation(RewriterBase &rewriter, RopeOp op) {
  auto [cos, sin] = createRopeTables(rewriter, op);
  rewriter.replaceOpWithNewOp<RotateOp>(
      op, op.getResultTypes(), op.getInputs(), cos, sin, op.getInits(),
      op.getPairingAttr(), op.getDimsAttr(), op.getOffsetAttr(),
      op.getInverseAttr());
}

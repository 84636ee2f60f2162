//===- SincosGeneric.cpp - cos and sin of positions in linalg -------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Values that vary along the pairs (the two parts of a frequency, the axis) are
// read from constant tensors through projected permutations, because linalg's
// vectorizer rejects indexing maps with constants.
//
//===----------------------------------------------------------------------===//

#include "SincosGeneric.h"

#include "PairConstants.h"

#include "posenc/IR/PairFrequencies.h"
#include "posenc/Numerics/ExactSincos.h"
#include "posenc/Numerics/FloatPhase.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::posenc;

/// Extracts the positions of one axis and drops the dimension of axes.
static Value extractAxis(OpBuilder &builder, Location loc, Value positions,
                         int64_t axis) {
  auto type = cast<RankedTensorType>(positions.getType());
  SmallVector<OpFoldResult> offsets(type.getRank(), builder.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(type.getRank(), builder.getIndexAttr(1));
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(builder, loc, positions);
  offsets.front() = builder.getIndexAttr(axis);
  sizes.front() = builder.getIndexAttr(1);
  auto sliceType = RankedTensorType::get(type.getShape().drop_front(),
                                         type.getElementType());
  return tensor::ExtractSliceOp::create(builder, loc, sliceType, positions,
                                        offsets, sizes, strides);
}

static Value toI64(OpBuilder &builder, Location loc, Value value) {
  return getValueOrCreateCastToIndexLike(builder, loc, builder.getI64Type(),
                                         value);
}

/// Emits cos and sin of a position. `parts` are those of the frequency, or the
/// rounded frequency alone.
static ExactSincos::Result emitSincos(OpBuilder &builder, Location loc,
                                      const ExactSincos &sincos, Value position,
                                      ValueRange parts, Type element) {
  bool rounds = parts.size() == 1;
  if (!rounds && !areFloats(position)) {
    Value phase = arith::AddIOp::create(
        builder, loc,
        ExactSincos::emitPhaseOfLow(builder, loc, position, parts[0], parts[1]),
        ExactSincos::emitPhaseOfHigh(builder, loc, position, parts[0],
                                     parts[1]));
    return sincos.emit(builder, loc, phase, element);
  }
  Value number = emitFloatPosition(builder, loc, position, rounds);
  Value angle =
      rounds ? emitRoundedAngle(builder, loc, number, parts[0]) : number;
  Value phase = rounds ? emitPhaseOfAngle(builder, loc, angle)
                       : emitPhaseOfFloat(builder, loc, angle,
                                          {parts[2], parts[0], parts[1]});
  Value guard = emitFloatGuard(builder, loc, angle);
  if (rounds && areFloats(position))
    guard = arith::AddFOp::create(builder, loc, guard,
                                  emitFloatGuard(builder, loc, number));
  auto [cos, sin] = sincos.emit(builder, loc, phase, element);
  return {arith::AddFOp::create(builder, loc, cos, guard),
          arith::AddFOp::create(builder, loc, sin, guard)};
}

bool mlir::posenc::isEmptyTensor(Value tensor) {
  return llvm::is_contained(cast<ShapedType>(tensor.getType()).getShape(), 0);
}

linalg::GenericOp mlir::posenc::createSincosGeneric(
    OpBuilder &builder, Location loc, FrequenciesAttr frequencies,
    AxesAttr axes, Value positions, ValueRange turns, Value cosInit,
    Value sinInit, std::optional<int64_t> paddingPosition) {
  auto type = cast<RankedTensorType>(cosInit.getType());
  int64_t numLoops = type.getRank() - 1;
  int64_t numAxes = axes ? axes.getNumAxes() : 1;
  bool scalar = !isa<ShapedType>(positions.getType());

  AffineMap tableMap = builder.getMultiDimIdentityMap(type.getRank());
  AffineMap positionMap = tableMap.dropResult(numLoops);
  AffineMap pairMap = tableMap.getSubMap({static_cast<unsigned>(numLoops)});
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  auto addInput = [&](Value input, AffineMap map) {
    inputs.push_back(input);
    maps.push_back(map);
  };

  if (scalar)
    addInput(positions, AffineMap::get(type.getRank(), 0, type.getContext()));
  else if (!axes)
    addInput(positions, positionMap);
  else
    for (int64_t axis = 0; axis < numAxes; ++axis)
      addInput(extractAxis(builder, loc, positions, axis), positionMap);

  SmallVector<Value> parts(turns);
  if (turns.empty()) {
    auto constants = llvm::map_to_vector(
        computePairFrequencies(frequencies, axes),
        [](const PairFrequency &pair) { return pair.frequency; });
    if (frequencies.roundsAngles())
      parts.push_back(createPairConstant<float>(
          builder, loc, builder.getF32Type(),
          llvm::map_to_vector(constants, [](const ::posenc::BigFloat &value) {
            return value.toFloat();
          })));
    else
      appendTurns(builder, loc, constants, parts, areFloats(positions));
  }
  for (Value part : parts)
    addInput(part, pairMap);
  if (axes) {
    SmallVector<int32_t> axisOfPair = llvm::map_to_vector(
        llvm::seq(frequencies.getNumPairs()), [&](int64_t pair) {
          return static_cast<int32_t>(axes.getAxisOfPair(pair));
        });
    addInput(createPairConstant<int32_t>(builder, loc, builder.getI32Type(),
                                         axisOfPair),
             pairMap);
  }
  maps.append({tableMap, tableMap});

  ExactSincos sincos(frequencies.computeAttentionFactor(), /*inverse=*/false);
  Type element = type.getElementType();
  auto body = [&](OpBuilder &b, Location loc, ValueRange args) {
    Value position = args[0];
    ValueRange frequency = args.slice(numAxes, parts.size());
    for (int64_t axis = 1; axis < numAxes; ++axis) {
      Value number =
          arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(axis));
      Value isAxis =
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                args[numAxes + parts.size()], number);
      position = arith::SelectOp::create(b, loc, isAxis, args[axis], position);
    }
    // Extends to i64 first, since the sum may overflow the position's type.
    if (!areFloats(position))
      position = toI64(b, loc, position);
    if (scalar) {
      Value row = toI64(b, loc, linalg::IndexOp::create(b, loc, 0));
      position = arith::AddIOp::create(b, loc, position, row);
    }
    auto [cos, sin] = emitSincos(b, loc, sincos, position, frequency, element);
    SmallVector<Value> results{ExactSincos::emitRounding(b, loc, cos, element),
                               ExactSincos::emitRounding(b, loc, sin, element)};
    if (paddingPosition) {
      Value isPadding = arith::CmpIOp::create(
          b, loc, arith::CmpIPredicate::eq, position,
          arith::ConstantIntOp::create(b, loc, *paddingPosition, 64));
      Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(element));
      for (Value &result : results)
        result = arith::SelectOp::create(b, loc, isPadding, zero, result);
    }
    linalg::YieldOp::create(b, loc, results);
  };
  SmallVector<utils::IteratorType> loops(type.getRank(),
                                         utils::IteratorType::parallel);
  return linalg::GenericOp::create(
      builder, loc, TypeRange{type, sinInit.getType()}, inputs,
      ValueRange{cosInit, sinInit}, maps, loops, body);
}

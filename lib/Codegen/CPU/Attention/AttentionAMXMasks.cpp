//===- AttentionAMXMasks.cpp - scores and masks of pipelined steps --------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionAMXSteps.h"

#include "posenc/Numerics/ElementwiseBuilder.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

#include <limits>

using namespace mlir;
using namespace mlir::posenc;

SmallVector<Value> mlir::posenc::getTileRow(ImplicitLocOpBuilder &builder,
                                            ValueRange before, Value row,
                                            ValueRange middle) {
  Value size = createIndex(builder, kTileRows);
  SmallVector<Value> at(before);
  at.push_back(builder.createOrFold<arith::DivUIOp>(row, size));
  llvm::append_range(at, middle);
  at.push_back(builder.createOrFold<arith::RemUIOp>(row, size));
  at.push_back(createIndex(builder, 0));
  return at;
}

RowQuery mlir::posenc::getRowQuery(ImplicitLocOpBuilder &builder,
                                   const AttentionCode &code,
                                   const AttentionBlock &block, Value row) {
  RowQuery query{block.queryHead, row, nullptr};
  if (block.firstHead) {
    Value number = addIndex(builder, block.firstHead, row);
    query.head = addIndex(builder, block.queryHead,
                          remIndex(builder, number, code.tiles.heads));
    query.token = divIndex(builder, number, code.tiles.heads);
  }
  query.position =
      minIndex(builder, addIndex(builder, block.position, query.token),
               block.lastPosition);
  query.token = minIndex(builder, addIndex(builder, block.token, query.token),
                         block.lastToken);
  return query;
}

/// Emits an i1 vector: which of the keys from number `firstLane` of the step on
/// a row sees by its position.
static Value emitRowMask(ImplicitLocOpBuilder &builder,
                         const AttentionCode &code, const AMXStep &step,
                         Value row, int64_t firstLane) {
  Value position = getRowQuery(builder, code, step.block, row).position;
  Value own = subIndex(builder, position, step.firstKey);
  Value end = createRowLimit(builder, code,
                             subIndex(builder, step.numKeys, step.firstKey));
  ElementwiseBuilder b(builder, builder.getLoc(), end);
  VisibleKeys visible = PositionMask(code.op).emitVisibleKeys(
      b,
      [&](int64_t offset) {
        return createRowLimit(builder, code, addIndex(builder, own, offset));
      },
      end);
  auto numbers = llvm::to_vector(llvm::map_range(
      llvm::seq<int32_t>(code.tiles.lanes),
      [&](int32_t lane) -> int32_t { return firstLane + lane; }));
  Value keys = arith::ConstantOp::create(
      builder, DenseElementsAttr::get(cast<ShapedType>(end.getType()),
                                      ArrayRef(numbers)));
  return emitIsVisible(b, keys, visible);
}

/// Returns the mask operand's elements for 16 keys of a row. `exist`: whether
/// all these keys exist.
static Value emitMaskElements(ImplicitLocOpBuilder &builder,
                              const AttentionCode &code, const AMXStep &step,
                              const RowQuery &query, ArrayRef<Value> keys,
                              bool exist) {
  AttentionOp op = code.op;
  Value mask = op.getMask();
  auto type = cast<MemRefType>(mask.getType());
  // An i1 is a byte in memory, but a bit of a vector.
  bool isContiguous = type.isLastDimUnitStride() &&
                      type.getShape().back() != 1 &&
                      !type.getElementType().isInteger(1);
  if (!exist || !isContiguous)
    return loadMask(builder, code,
                    {{step.block.batch},
                     {query.head},
                     {query.token},
                     SmallVector<Value>(keys)});
  SmallVector<Value> at{step.block.batch, query.head, query.token,
                        keys.front()};
  for (auto [index, size] : llvm::zip_equal(at, type.getShape()))
    if (size == 1)
      index = createIndex(builder, 0);
  return vector::LoadOp::create(
      builder, VectorType::get({code.tiles.lanes}, type.getElementType()), mask,
      at);
}

/// Applies the regions and masks to scores, for keys from number `firstLane` of
/// the step on.
static Value applyToPairs(ImplicitLocOpBuilder &builder,
                          const AttentionCode &code, const AMXStep &step,
                          Value row, int64_t firstLane, Value score,
                          Value keep) {
  AttentionOp op = code.op;
  // Keys after the last one count as the last one.
  Value last = addIndex(builder, step.numKeys, -1);
  SmallVector<Value> keys;
  for (int64_t lane = 0; lane < code.tiles.lanes; ++lane) {
    Value key = addIndex(builder, step.firstKey, firstLane + lane);
    keys.push_back(step.isMasked ? minIndex(builder, last, key) : key);
  }
  RowQuery query = getRowQuery(builder, code, step.block, row);
  Value mask;
  if (op.getMask())
    mask = emitMaskElements(builder, code, step, query, keys,
                            /*exist=*/!step.isMasked);
  // The first value is that of the last row and the first key.
  Value number =
      subIndex(builder, createIndex(builder, kStepKeys - 1 + firstLane), row);
  Value key = vector::FromElementsOp::create(
      builder, VectorType::get({code.tiles.lanes}, builder.getIndexType()),
      keys);
  return emitScore(builder, code,
                   {step.block.batch, query.head, query.position, key}, score,
                   mask, keep, /*appliesWhere=*/step.isMasked,
                   loadRelativeValues(builder, code, number));
}

SmallVector<Value> mlir::posenc::emitExponents(ImplicitLocOpBuilder &builder,
                                               const AttentionCode &code,
                                               const AMXStep &step, Value row,
                                               Value base) {
  AttentionOp op = code.op;
  VectorType type = code.getVectorType();
  double scale = op.getScoreScale();
  SmallVector<Value> exponents;
  for (int64_t half = 0; half < 2; ++half) {
    int64_t firstLane = half * code.tiles.lanes;
    Value score = loadVector(
        builder, type, step.scores,
        getTileRow(builder, {}, row, Value(createIndex(builder, half))));
    ElementwiseBuilder b(builder, builder.getLoc(), score);
    if (step.hasPairScores) {
      exponents.push_back(b.add(score, base));
      continue;
    }
    Value keep;
    if (step.isMasked)
      keep = emitRowMask(builder, code, step, row, firstLane);
    // Regions get scores in natural units and return exponents of base 2.
    // Otherwise scores are masked after they are scaled: the scale may be
    // negative or 0.
    score = code.hasOwnScores()
                ? b.mul(score, b.f32(scale))
                : b.fma(score, b.f32(scale * llvm::numbers::log2e), base);
    if (code.hasOwnPairs())
      score = applyToPairs(builder, code, step, row, firstLane, score, keep);
    else if (keep)
      score = b.select(keep, score,
                       b.f32(-std::numeric_limits<double>::infinity()));
    exponents.push_back(code.hasOwnScores() ? b.add(score, base) : score);
  }
  return exponents;
}

/// Computes the score_mod region's values that depend on the relative position
/// only, for all pairs of a step.
static void emitStepRelativeValues(ImplicitLocOpBuilder &builder,
                                   const AttentionCode &code,
                                   const AMXStep &step) {
  const AttentionBlock &block = step.block;
  RelativePositions positions;
  positions.batch = block.batch;
  positions.queryHead = block.queryHead;
  positions.first = subIndex(builder, step.firstKey,
                             addIndex(builder, block.position, kStepKeys - 1));
  positions.min = subIndex(builder, step.firstKey, block.lastPosition);
  Value lastKey = minIndex(builder, addIndex(builder, step.numKeys, -1),
                           addIndex(builder, step.firstKey, kStepKeys - 1));
  positions.max = subIndex(builder, lastKey, block.position);
  positions.step = 1;
  emitRelativeValues(builder, code, positions);
}

void mlir::posenc::emitPairScores(ImplicitLocOpBuilder &builder,
                                  const AttentionCode &code,
                                  const AMXStep &step) {
  emitStepRelativeValues(builder, code, step);
  Value none = createSplat(builder, code.getVectorType(), 0);
  createLoop(
      builder, createIndex(builder, 0),
      createIndex(builder, code.tiles.getQueryTile()), 1, [&](Value row) {
        for (auto [half, score] :
             llvm::enumerate(emitExponents(builder, code, step, row, none)))
          storeVector(
              builder, score, step.scores,
              getTileRow(builder, {}, row, Value(createIndex(builder, half))));
      });
}

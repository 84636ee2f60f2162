//===- AttentionTileSoftmax.cpp - the softmax of pipelined steps ----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionTileSteps.h"

#include "posenc/Numerics/BF16.h"
#include "posenc/Numerics/BF16Weights.h"
#include "posenc/Numerics/Softmax.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <limits>

using namespace mlir;
using namespace mlir::posenc;

static ElementwiseBuilder getMath(ImplicitLocOpBuilder &builder, Value like) {
  return ElementwiseBuilder(builder, builder.getLoc(), like);
}

/// Returns the indices of row `row` of 32 in a buffer whose last dimensions are
/// the half of the rows, some more, and the row: those before `middle`, the
/// half, `middle`, the row in its half, and 0.
static SmallVector<Value> getRowAt(ImplicitLocOpBuilder &builder,
                                   ValueRange before, Value row,
                                   ValueRange middle = {}) {
  Value size = createIndex(builder, kTileRows);
  SmallVector<Value> at(before);
  at.push_back(builder.createOrFold<arith::DivUIOp>(row, size));
  llvm::append_range(at, middle);
  at.push_back(builder.createOrFold<arith::RemUIOp>(row, size));
  at.push_back(createIndex(builder, 0));
  return at;
}

/// Returns the query position of a row. Rows after the last query have its
/// position.
static Value getPosition(ImplicitLocOpBuilder &builder, const TileStep &step,
                         Value row) {
  return minIndex(builder, addIndex(builder, step.block.position, row),
                  step.block.lastPosition);
}

/// Emits an i1 vector: which of the keys from number `firstLane` of the step on
/// a row sees by its position.
static Value emitIsSeen(ImplicitLocOpBuilder &builder,
                        const AttentionCode &code, const TileStep &step,
                        Value row, int64_t firstLane) {
  PositionMask mask(code.op);
  Value position = getPosition(builder, step, row);
  auto getLimit = [&](Value key) {
    return createRowLimit(builder, code, subIndex(builder, key, step.firstKey));
  };
  Value end = getLimit(mask.emitEndKey(builder, position, step.numKeys));
  auto numbers = llvm::to_vector(llvm::map_range(
      llvm::seq<int32_t>(code.tiles.lanes),
      [&](int32_t lane) -> int32_t { return firstLane + lane; }));
  Value keys = arith::ConstantOp::create(
      builder, DenseElementsAttr::get(cast<ShapedType>(end.getType()),
                                      ArrayRef(numbers)));
  ElementwiseBuilder b = getMath(builder, keys);
  Value isSeen = b.compare(arith::CmpIPredicate::slt, keys, end);
  if (!mask.getLeft())
    return isSeen;
  Value first = getLimit(mask.emitFirstKey(builder, position));
  return b.andi(isSeen, b.compare(arith::CmpIPredicate::sge, keys, first));
}

/// Applies the regions and masks to scores, for keys from number `firstLane` of
/// the step on.
static Value emitPairScores(ImplicitLocOpBuilder &builder,
                            const AttentionCode &code, const TileStep &step,
                            Value row, int64_t firstLane, Value score,
                            Value keep) {
  // Keys after the last one count as the last one.
  Value last = addIndex(builder, step.numKeys, -1);
  SmallVector<Value> keys;
  for (int64_t lane = 0; lane < code.tiles.lanes; ++lane)
    keys.push_back(minIndex(
        builder, last, addIndex(builder, step.firstKey, firstLane + lane)));
  Value key = vector::FromElementsOp::create(
      builder, VectorType::get({code.tiles.lanes}, builder.getIndexType()),
      keys);
  return emitScore(builder, code,
                   {step.block.batch, step.block.queryHead,
                    getPosition(builder, step, row), key},
                   score, /*mask=*/nullptr, keep,
                   /*appliesWhere=*/step.isMasked);
}

/// Emits the scores of a row for both halves of the keys, minus infinity where
/// they are masked, and adds `base` to them, in base 2.
static SmallVector<Value> emitExponents(ImplicitLocOpBuilder &builder,
                                        const AttentionCode &code,
                                        const TileStep &step, Value row,
                                        Value base) {
  AttentionOp op = code.op;
  VectorType type = code.getVectorType();
  double scale = op.getScoreScale();
  SmallVector<Value> exponents;
  for (int64_t half = 0; half < 2; ++half) {
    int64_t firstLane = half * code.tiles.lanes;
    Value score = loadVector(
        builder, type, step.scores,
        getRowAt(builder, {}, row, Value(createIndex(builder, half))));
    ElementwiseBuilder b = getMath(builder, score);
    Value keep;
    if (step.isMasked)
      keep = emitIsSeen(builder, code, step, row, firstLane);
    // Regions get scores in natural units and return exponents of base 2.
    if (code.hasOwnScores())
      score = b.mul(score, b.f32(scale));
    if (code.hasOwnPairs())
      score = emitPairScores(builder, code, step, row, firstLane, score, keep);
    else if (keep)
      score = b.select(keep, score,
                       b.f32(-std::numeric_limits<double>::infinity()));
    exponents.push_back(
        code.hasOwnScores()
            ? b.add(score, base)
            : b.fma(score, b.f32(scale * llvm::numbers::log2e), base));
  }
  return exponents;
}

Value mlir::posenc::emitWeightItem(ImplicitLocOpBuilder &builder,
                                   const AttentionCode &code,
                                   const TileStep &step, Value row,
                                   Value bits) {
  VectorType type = code.getVectorType();
  Location loc = builder.getLoc();
  Value zero = createIndex(builder, 0);
  Value offset =
      broadcast(builder, type,
                memref::LoadOp::create(builder, code.steps.offsets,
                                       ValueRange{step.block.queryTile, row}));
  SmallVector<Value> weights;
  for (Value exponent : emitExponents(builder, code, step, row, offset)) {
    ElementwiseBuilder b = getMath(builder, exponent);
    weights.push_back(emitBF16Exp2(b, exponent));
  }
  auto order = llvm::to_vector(llvm::seq<int64_t>(2 * code.tiles.lanes));
  Value both =
      vector::ShuffleOp::create(builder, weights[0], weights[1], order);
  Value narrow = arith::TruncFOp::create(
      builder, cast<VectorType>(both.getType()).clone(builder.getBF16Type()),
      both);
  storeVector(builder, vector::BitCastOp::create(builder, type, narrow),
              step.weights, getRowAt(builder, step.slot, row));
  // Results stay weighted means of values if the sum is that of the rounded
  // weights.
  BF16Halves rounded = splitBF16(builder, loc, narrow);
  ElementwiseBuilder b = getMath(builder, rounded.even);
  Value sum = b.add(rounded.even, rounded.odd);
  SmallVector<Value> at{step.block.queryTile, row, zero};
  Value before = loadVector(builder, type, code.steps.sums, at);
  storeVector(builder, before, code.steps.sumsBefore, {row, zero});
  storeVector(builder, b.add(before, sum), code.steps.sums, at);
  return b.ori(bits, b.cast<arith::BitcastOp>(builder.getI32Type(), sum));
}

//===----------------------------------------------------------------------===//
// Offsets
//===----------------------------------------------------------------------===//

/// Emits the new offsets of the rows of a step, stores them, and calls `body`
/// for each half of the rows with the first row and what changes.
static void
emitOffsets(ImplicitLocOpBuilder &builder, const AttentionCode &code,
            const TileStep &step,
            function_ref<void(Value firstRow, const RaisedOffset &)> body) {
  VectorType type = code.getVectorType();
  Base2Softmax softmax(builder, builder.getLoc(), type);
  Value zero = createIndex(builder, 0);
  Value queryTile = step.block.queryTile;
  createLoop(builder, zero, createIndex(builder, kStepKeys), 1, [&](Value row) {
    Value offset = memref::LoadOp::create(builder, code.steps.offsets,
                                          ValueRange{queryTile, row});
    ElementwiseBuilder b = getMath(builder, offset);
    Value base = broadcast(builder, type, getOffsetBase(b, offset));
    SmallVector<Value> both = emitExponents(builder, code, step, row, base);
    storeVector(builder, softmax.max(both[0], both[1]), code.steps.largest,
                {row, zero});
  });
  for (int64_t half = 0; half < kStepKeys; half += kTileRows) {
    Value firstRow = createIndex(builder, half);
    SmallVector<Value> vectors;
    for (int64_t i = 0; i < kTileRows; ++i)
      vectors.push_back(loadVector(builder, type, code.steps.largest,
                                   {addIndex(builder, firstRow, i), zero}));
    vectors = transpose(builder, vectors);
    for (size_t count = vectors.size(); count > 1; count /= 2)
      for (size_t i = 0; i < count / 2; ++i)
        vectors[i] = softmax.max(vectors[i], vectors[i + count / 2]);
    SmallVector<Value> at{queryTile, firstRow};
    Value offset = loadVector(builder, type, code.steps.offsets, at);
    ElementwiseBuilder b = getMath(builder, offset);
    RaisedOffset raised = raiseOffset(b, offset, vectors.front());
    storeVector(builder, raised.offset, code.steps.offsets, at);
    body(firstRow, raised);
  }
}

void mlir::posenc::emitFirstOffsets(ImplicitLocOpBuilder &builder,
                                    const AttentionCode &code,
                                    const TileStep &step) {
  emitOffsets(builder, code, step, [](Value, const RaisedOffset &) {});
}

/// Multiplies the weights of a row in the steps before `end` of a block.
static void scaleWeights(ImplicitLocOpBuilder &builder,
                         const AttentionCode &code, Value weights, Value row,
                         Value end, Value factor) {
  createLoop(builder, createIndex(builder, 0), end, 1, [&](Value slot) {
    SmallVector<Value> at = getRowAt(builder, slot, row);
    Value words = loadVector(builder, code.getVectorType(), weights, at);
    ElementwiseBuilder b = getMath(builder, words);
    storeVector(builder, scaleBF16Words(b, words, factor), weights, at);
  });
}

void mlir::posenc::emitRaise(ImplicitLocOpBuilder &builder,
                             const AttentionCode &code, const TileStep &step,
                             Value isSameTile) {
  VectorType type = code.getVectorType();
  Value zero = createIndex(builder, 0);
  Value queryTile = step.block.queryTile;
  emitOffsets(
      builder, code, step, [&](Value firstRow, const RaisedOffset &raised) {
        // Rows that keep their offset have a factor of 0 here, which no
        // other row has.
        ElementwiseBuilder b = getMath(builder, raised.factor);
        storeVector(builder, b.select(raised.isRaised, raised.factor, b.f32(0)),
                    code.steps.factors, firstRow);
      });
  Value endBefore = arith::SelectOp::create(
      builder, isSameTile, createIndex(builder, code.tiles.blockSteps), zero);
  createLoop(builder, zero, createIndex(builder, kStepKeys), 1, [&](Value row) {
    Value scalar = memref::LoadOp::create(builder, code.steps.factors, row);
    ElementwiseBuilder scalars = getMath(builder, scalar);
    Value isRaised = arith::CmpFOp::create(builder, arith::CmpFPredicate::ONE,
                                           scalar, scalars.f32(0));
    auto branch = scf::IfOp::create(builder, isRaised,
                                    /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    Value factor = broadcast(builder, type, scalar);
    ElementwiseBuilder b = getMath(builder, factor);
    Value sums = loadVector(builder, type, code.steps.sumsBefore, {row, zero});
    storeVector(builder, b.mul(sums, factor), code.steps.sums,
                {queryTile, row, zero});
    createLoop(builder, zero, createIndex(builder, getNumParts(code.valueDim)),
               1, [&](Value part) {
                 for (int64_t half = 0; half < 2; ++half) {
                   SmallVector<Value> at =
                       getRowAt(builder, {queryTile, part}, row,
                                Value(createIndex(builder, half)));
                   Value acc = loadVector(builder, type, code.steps.acc, at);
                   storeVector(builder, b.mul(acc, factor), code.steps.acc, at);
                 }
               });
    scaleWeights(builder, code, step.weights, row, step.slot, factor);
    scaleWeights(builder, code, step.weightsBefore, row, endBefore, factor);
    Value none = arith::ConstantOp::create(
        builder, builder.getZeroAttr(type.clone(builder.getI32Type())));
    emitWeightItem(builder, code, step, row, none);
  });
}

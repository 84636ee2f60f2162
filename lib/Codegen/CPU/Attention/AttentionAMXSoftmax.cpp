//===- AttentionAMXSoftmax.cpp - the softmax of pipelined steps -----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionAMXSteps.h"

#include "posenc/Numerics/BF16.h"
#include "posenc/Numerics/BF16Weights.h"
#include "posenc/Numerics/Softmax.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::posenc;

static ElementwiseBuilder getMath(ImplicitLocOpBuilder &builder, Value like) {
  return ElementwiseBuilder(builder, builder.getLoc(), like);
}

Value mlir::posenc::emitWeightItem(ImplicitLocOpBuilder &builder,
                                   const AttentionCode &code,
                                   const AMXStep &step, Value row, Value bits) {
  VectorType type = code.getVectorType();
  Location loc = builder.getLoc();
  Value zero = createIndex(builder, 0);
  Value offset =
      broadcast(builder, type,
                memref::LoadOp::create(builder, code.steps.offsets,
                                       ValueRange{step.block.queryTile, row}));
  WeightUse use = code.hasExactSums() ? WeightUse::Summed : WeightUse::Rounded;
  SmallVector<Value> weights;
  for (Value exponent : emitExponents(builder, code, step, row, offset)) {
    ElementwiseBuilder b = getMath(builder, exponent);
    weights.push_back(emitBF16Exp2(b, exponent, use));
  }
  ElementwiseBuilder math = getMath(builder, weights.front());
  Value narrow = roundWeights(math, weights[0], weights[1]);
  storeVector(builder, vector::BitCastOp::create(builder, type, narrow),
              step.weights, getTileRow(builder, step.slot, row));
  BF16Halves rounded = splitBF16(builder, loc, narrow);
  ElementwiseBuilder b = getMath(builder, rounded.even);
  SmallVector<Value, 2> sums{b.add(rounded.even, rounded.odd)};
  if (code.hasExactSums())
    sums.push_back(b.add(weights[0], weights[1]));
  for (auto [number, sum] : llvm::enumerate(sums)) {
    Value which = createIndex(builder, number);
    SmallVector<Value> at{step.block.queryTile, row, which, zero};
    Value before = loadVector(builder, type, code.steps.sums, at);
    storeVector(builder, before, code.steps.sumsBefore, {row, which, zero});
    storeVector(builder, b.add(before, sum), code.steps.sums, at);
  }
  return b.ori(bits,
               b.cast<arith::BitcastOp>(builder.getI32Type(), sums.front()));
}

//===----------------------------------------------------------------------===//
// Offsets
//===----------------------------------------------------------------------===//

/// Emits the new offsets of the rows of a step, stores them, and calls `body`
/// for each half of the rows with the first row and what changes.
static void
emitOffsets(ImplicitLocOpBuilder &builder, const AttentionCode &code,
            const AMXStep &step,
            function_ref<void(Value firstRow, const RaisedOffset &)> body) {
  VectorType type = code.getVectorType();
  Base2Softmax softmax(builder, builder.getLoc(), type);
  Value zero = createIndex(builder, 0);
  Value queryTile = step.block.queryTile;
  int64_t rows = code.tiles.getQueryTile();
  createLoop(builder, zero, createIndex(builder, rows), 1, [&](Value row) {
    SmallVector<Value> both =
        emitExponents(builder, code, step, row, softmax.number(0));
    storeVector(builder, softmax.max(both[0], both[1]), code.steps.largest,
                {row, zero});
  });
  for (int64_t half = 0; half < rows; half += kTileRows) {
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
                                    const AMXStep &step) {
  emitOffsets(builder, code, step, [](Value, const RaisedOffset &) {});
}

/// Multiplies the weights of a row in the steps before `end` of a block.
static void scaleWeights(ImplicitLocOpBuilder &builder,
                         const AttentionCode &code, Value weights, Value row,
                         Value end, Value factor) {
  createLoop(builder, createIndex(builder, 0), end, 1, [&](Value slot) {
    SmallVector<Value> at = getTileRow(builder, slot, row);
    Value words = loadVector(builder, code.getVectorType(), weights, at);
    ElementwiseBuilder b = getMath(builder, words);
    storeVector(builder, scaleBF16Words(b, words, factor), weights, at);
  });
}

void mlir::posenc::emitRaise(ImplicitLocOpBuilder &builder,
                             const AttentionCode &code, const AMXStep &step,
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
  Value rows = createIndex(builder, code.tiles.getQueryTile());
  createLoop(builder, zero, rows, 1, [&](Value row) {
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
    for (int64_t number = 0, e = code.hasExactSums() ? 2 : 1; number < e;
         ++number) {
      Value which = createIndex(builder, number);
      Value sums =
          loadVector(builder, type, code.steps.sumsBefore, {row, which, zero});
      storeVector(builder, b.mul(sums, factor), code.steps.sums,
                  {queryTile, row, which, zero});
    }
    createLoop(builder, zero, createIndex(builder, getNumParts(code.valueDim)),
               1, [&](Value part) {
                 for (int64_t half = 0; half < 2; ++half) {
                   SmallVector<Value> at =
                       getTileRow(builder, {queryTile, part}, row,
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

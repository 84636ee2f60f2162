//===- AttentionAMXSplits.cpp - decode by pipelined steps -----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The decode kernel with AMX. Where there are few key heads, their keys are
// divided into KV splits: chunk number i of `kChunkKeys` keys, counted from key
// 0, belongs to split i modulo the number of splits, which is a constant. So
// neither the number of keys nor other queries change the sums of a query. A
// split without keys multiplies the others by 1 and adds 0.
//
// The state of a split is, for each query tile, a vector each of the running
// max and the sums of rounded and of exact weights, and then the accumulators
// of each row.
//
//===----------------------------------------------------------------------===//

#include "AttentionAMXSteps.h"

#include "posenc/Numerics/BF16Weights.h"
#include "posenc/Numerics/Softmax.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::posenc;

namespace {
/// Emits what happens to the states of splits.
class TileSplits {
public:
  TileSplits(ImplicitLocOpBuilder &builder, const AttentionCode &code,
             const AttentionTask &task)
      : builder(builder), code(code), task(task), zero(createIndex(builder, 0)),
        type(code.getVectorType()) {}

  /// Initializes the merged state.
  void start();
  /// Stores the state of the current split to `code.partials`.
  void store(Value split);
  /// Merges a split: the one in `code.partials`, or the current one if `split`
  /// is null.
  void merge(Value split);
  /// Writes the output.
  void finish();

private:
  void forEachTile(function_ref<void(Value queryTile)> body) {
    createLoop(builder, zero, task.numQueryTiles, 1, body);
  }
  /// Calls `body` with the indices in `code.steps.acc` of all vectors of a row.
  void forEachVectorOf(Value queryTile, Value row,
                       function_ref<void(ValueRange at)> body);
  /// Returns running max and sums of the current split.
  SmallVector<Value> getState(Value queryTile);
  /// Return the offset in `code.partials` of a split, of a vector of the state
  /// of a query tile, and of a vector of accumulators.
  Value getOffset(Value split);
  Value getOffset(Value splitOffset, Value queryTile, int64_t number);
  Value getAccOffset(Value splitOffset, ValueRange at);
  /// Emits the loop over the rows of a query tile that hold queries.
  void forEachRow(Value queryTile, function_ref<void(Value row)> body) {
    Value count;
    emitStackedBlock(builder, code, task, queryTile, count);
    createLoop(builder, zero, count, 1, body);
  }

  ImplicitLocOpBuilder &builder;
  const AttentionCode &code;
  const AttentionTask &task;
  Value zero;
  VectorType type;
};
} // namespace

/// Returns the accumulators of a row.
static int64_t getRowFloats(const AttentionCode &code) {
  return kStepKeys * getNumParts(code.valueDim);
}

/// Emits the floats of the state of a split.
static Value emitSplitSize(ImplicitLocOpBuilder &builder,
                           const AttentionCode &code, Value numTokens,
                           Value numQueryTiles) {
  return addIndex(
      builder,
      mulIndex(builder, numTokens, code.tiles.heads * getRowFloats(code)),
      mulIndex(builder, numQueryTiles, kTileStateVectors * kTileRows));
}

void TileSplits::forEachVectorOf(Value queryTile, Value row,
                                 function_ref<void(ValueRange at)> body) {
  createLoop(
      builder, zero, createIndex(builder, getNumParts(code.valueDim)), 1,
      [&](Value part) {
        for (int64_t half = 0; half < 2; ++half)
          body({queryTile, part, zero, createIndex(builder, half), row, zero});
      });
}

SmallVector<Value> TileSplits::getState(Value queryTile) {
  Base2Softmax b(builder, builder.getLoc(), type);
  Value rounded = emitRowSums(builder, code, queryTile, zero, /*number=*/0);
  Value exact = code.hasExactSums()
                    ? emitRowSums(builder, code, queryTile, zero, /*number=*/1)
                    : rounded;
  SoftmaxState state = getWeightState(
      b, loadVector(builder, type, code.steps.offsets, {queryTile, zero}),
      exact);
  return {state.max, rounded, state.sum};
}

Value TileSplits::getOffset(Value split) {
  Value heads = divIndex(builder, task.queryHead, code.tiles.heads);
  Value number = addIndex(
      builder, mulIndex(builder, task.batch, code.getHeadTasks()), heads);
  number =
      addIndex(builder, mulIndex(builder, number, code.tiles.maxSplits), split);
  return builder.createOrFold<arith::MulIOp>(
      number, emitSplitSize(builder, code, task.numTokens, task.numQueryTiles));
}

Value TileSplits::getOffset(Value splitOffset, Value queryTile,
                            int64_t number) {
  Value vector =
      addIndex(builder, mulIndex(builder, queryTile, kTileStateVectors),
               createIndex(builder, number));
  return addIndex(builder, splitOffset, mulIndex(builder, vector, kTileRows));
}

Value TileSplits::getAccOffset(Value splitOffset, ValueRange at) {
  Value row = addIndex(builder, mulIndex(builder, at[0], kTileRows), at[4]);
  Value column = addIndex(builder, mulIndex(builder, at[1], 2), at[3]);
  Value inRows = addIndex(builder, mulIndex(builder, row, getRowFloats(code)),
                          mulIndex(builder, column, kTileRows));
  return addIndex(builder, getOffset(splitOffset, task.numQueryTiles, 0),
                  inRows);
}

void TileSplits::start() {
  Base2Softmax b(builder, builder.getLoc(), type);
  SoftmaxState state = emitEmptyState(b);
  forEachTile([&](Value queryTile) {
    for (int64_t i = 0; i < kTileStateVectors; ++i)
      storeVector(builder, i == 0 ? state.max : state.sum,
                  code.steps.mergedState,
                  {queryTile, createIndex(builder, i), zero});
    forEachRow(queryTile, [&](Value row) {
      forEachVectorOf(queryTile, row, [&](ValueRange at) {
        storeVector(builder, b.number(0), code.steps.mergedAcc, at);
      });
    });
  });
}

void TileSplits::store(Value split) {
  Value offset = getOffset(split);
  forEachTile([&](Value queryTile) {
    for (auto [i, value] : llvm::enumerate(getState(queryTile)))
      storeVector(builder, value, code.partials,
                  getOffset(offset, queryTile, i));
    forEachRow(queryTile, [&](Value row) {
      forEachVectorOf(queryTile, row, [&](ValueRange at) {
        storeVector(builder, loadVector(builder, type, code.steps.acc, at),
                    code.partials, getAccOffset(offset, at));
      });
    });
  });
}

void TileSplits::merge(Value split) {
  Value offset = split ? getOffset(split) : Value();
  forEachTile([&](Value queryTile) {
    Base2Softmax b(builder, builder.getLoc(), type);
    SmallVector<Value> own, before;
    if (!split)
      own = getState(queryTile);
    auto at = [&](int64_t i) {
      return SmallVector<Value>{queryTile, createIndex(builder, i), zero};
    };
    for (int64_t i = 0; i < kTileStateVectors; ++i) {
      if (split)
        own.push_back(loadVector(builder, type, code.partials,
                                 getOffset(offset, queryTile, i)));
      before.push_back(
          loadVector(builder, type, code.steps.mergedState, at(i)));
    }
    SoftmaxMerge merge = emitMerge(b, {before[0], own[0]});
    storeVector(builder, merge.max, code.steps.mergedState, at(0));
    for (int64_t i = 1; i < kTileStateVectors; ++i)
      storeVector(builder, emitMergedSum(b, {before[i], own[i]}, merge.factors),
                  code.steps.mergedState, at(i));
    // The rows read their factors from a buffer that is free between splits.
    for (auto [i, factor] : llvm::enumerate(merge.factors))
      storeVector(builder, factor, code.steps.largest,
                  {createIndex(builder, i), zero});
    forEachRow(queryTile, [&](Value row) {
      SmallVector<Value> factors;
      for (int64_t i = 0; i < 2; ++i)
        factors.push_back(broadcast(
            builder, type,
            memref::LoadOp::create(builder, code.steps.largest,
                                   ValueRange{createIndex(builder, i), row})));
      forEachVectorOf(queryTile, row, [&](ValueRange to) {
        Value sum = split ? loadVector(builder, type, code.partials,
                                       getAccOffset(offset, to))
                          : loadVector(builder, type, code.steps.acc, to);
        Value merged = loadVector(builder, type, code.steps.mergedAcc, to);
        storeVector(builder, emitMergedSum(b, {merged, sum}, factors),
                    code.steps.mergedAcc, to);
      });
    });
  });
}

void TileSplits::finish() {
  forEachTile([&](Value queryTile) {
    Value count;
    AttentionBlock block =
        emitStackedBlock(builder, code, task, queryTile, count);
    emitTileResults(builder, code, block, count);
  });
}

Value mlir::posenc::emitNumTileSplitTasks(ImplicitLocOpBuilder &builder,
                                          const AttentionCode &code,
                                          Value numTokens,
                                          Value numQueryTiles) {
  AttentionOp op = code.op;
  Value batch = getDimSize(builder, builder.getLoc(), op.getQuery(), 0);
  Value floats = builder.createOrFold<arith::MulIOp>(
      batch, emitSplitSize(builder, code, numTokens, numQueryTiles));
  int64_t maxTasks =
      getSharedBytes(op) / 4 / (code.getHeadTasks() * code.tiles.maxSplits);
  Value fits = arith::CmpIOp::create(builder, arith::CmpIPredicate::ule, floats,
                                     createIndex(builder, maxTasks));
  return arith::SelectOp::create(builder, fits,
                                 createIndex(builder, code.tiles.maxSplits),
                                 createIndex(builder, 1));
}

void mlir::posenc::emitTileDecode(ImplicitLocOpBuilder &builder,
                                  const AttentionCode &code,
                                  const AttentionRows &queryRows,
                                  const AttentionRows &keyRows,
                                  const AttentionTask &task, Value begin,
                                  Value end, Value splitTask,
                                  Value numSplitTasks) {
  if (code.tiles.maxSplits == 1)
    return emitAMXStepsTask(builder, code, queryRows, keyRows, task, begin,
                            end);
  TileSplits splits(builder, code, task);
  Value isAlone = arith::CmpIOp::create(builder, arith::CmpIPredicate::eq,
                                        numSplitTasks, createIndex(builder, 1));
  auto getSplit = [&](Value number) {
    return builder.createOrFold<arith::DivUIOp>(
        mulIndex(builder, number, code.tiles.maxSplits), numSplitTasks);
  };
  emitIf(builder, isAlone, [&] { splits.start(); });
  createLoop(builder, getSplit(splitTask),
             getSplit(addIndex(builder, splitTask, 1)), 1, [&](Value split) {
               emitAMXStepsTask(builder, code, queryRows, keyRows, task, begin,
                                end, split);
               emitIf(
                   builder, isAlone, [&] { splits.merge(/*split=*/nullptr); },
                   [&] { splits.store(split); });
             });
  emitIf(builder, isAlone, [&] { splits.finish(); });
}

void mlir::posenc::emitTileMerge(ImplicitLocOpBuilder &builder,
                                 const AttentionCode &code,
                                 const AttentionTask &task) {
  TileSplits splits(builder, code, task);
  splits.start();
  createLoop(builder, createIndex(builder, 0),
             createIndex(builder, code.tiles.maxSplits), 1,
             [&](Value split) { splits.merge(split); });
  splits.finish();
}

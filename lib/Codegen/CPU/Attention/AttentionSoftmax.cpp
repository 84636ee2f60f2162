//===- AttentionSoftmax.cpp - the online softmax --------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionBF16Dots.h"
#include "AttentionCode.h"

#include "posenc/Numerics/Softmax.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::posenc;

SmallVector<Value> mlir::posenc::emitSoftmax(ImplicitLocOpBuilder &builder,
                                             const AttentionCode &code,
                                             const AttentionBlock &block,
                                             ValueRange newRowMax) {
  VectorType type = code.getVectorType();
  Value none = createSplat(builder, type, 0);
  SmallVector<Value> factors;
  // Processes one vector at a time: constants and the values of two vectors do
  // not fit in the registers.
  for (auto [i, maximum] : llvm::enumerate(newRowMax)) {
    Value lane = createIndex(builder, i * code.tiles.lanes);
    SmallVector<Value> at{block.queryTile, lane};
    Value before = loadVector(builder, type, code.rowMax, at);
    storeVector(builder, maximum, code.rowMax, at);
    Base2Softmax softmax(builder, builder.getLoc(), type);
    SoftmaxStep step = emitStep(softmax, before, maximum);
    // The sums of weights, and of exact ones.
    SmallVector<Value> start(code.exactSum ? 2 : 1, none);
    ValueRange sum = createLoop(
        builder, block.firstRow, block.endRow, code.getDotWidth(), start,
        [&](Value row, ValueRange sums) {
          SmallVector<Value> weights;
          for (int64_t i = 0; i < code.getDotWidth(); ++i) {
            Value score = loadVector(builder, type, code.scores,
                                     {addIndex(builder, row, i), lane});
            weights.push_back(emitExp(softmax, score, step.base.value));
          }
          SmallVector<Value> next(sums);
          if (code.exactSum)
            for (Value weight : weights)
              next[1] = arith::AddFOp::create(builder, next[1], weight);
          // Works in place: words overwrite scores that have already been read.
          Value stored = code.hasBF16Dots ? packWeights(builder, weights)
                                          : weights.front();
          Value position = builder.createOrFold<arith::DivUIOp>(
              row, createIndex(builder, code.getDotWidth()));
          storeVector(builder, stored, code.scores, {position, lane});
          for (Value weight : weights)
            next[0] = arith::AddFOp::create(builder, next[0], weight);
          return next;
        });
    const Value memories[] = {code.rowSum, code.exactSum};
    for (auto [memory, added] : llvm::zip(memories, sum)) {
      Value total = loadVector(builder, type, memory, at);
      storeVector(builder, softmax.fma(total, step.factor, added), memory, at);
    }
    factors.push_back(step.factor);
  }
  return factors;
}

void mlir::posenc::emitStart(ImplicitLocOpBuilder &builder,
                             const AttentionCode &code,
                             const AttentionTask &task) {
  AttentionOp op = code.op;
  const AttentionTiles &tiles = code.tiles;
  VectorType type = code.getVectorType();
  Value zero = createSplat(builder, type, 0);
  Base2Softmax softmax(builder, builder.getLoc(), type);
  auto forLanes = [&](function_ref<void(Value)> body) {
    for (int64_t i = 0; i < tiles.vectors; ++i)
      body(createIndex(builder, i * tiles.lanes));
  };
  Value begin = createIndex(builder, 0);
  createLoop(
      builder, begin, createIndex(builder, tiles.heads), 1, [&](Value head) {
        SoftmaxState state = emitEmptyState(softmax);
        if (Value sinks = op.getSinks()) {
          Value sink = memref::LoadOp::create(
              builder, sinks,
              ValueRange{addIndex(builder, task.queryHead, head)});
          state = emitSinkState(softmax, broadcast(builder, type, sink));
          // Where exact sums are kept, the sink is added at the end.
          if (code.exactSum)
            state.sum = zero;
        }
        Value first = mulIndex(builder, head, tiles.getQueryTilesPerHead());
        Value end = addIndex(builder, first, task.numQueryTiles);
        createLoop(builder, first, end, 1, [&](Value queryTile) {
          forLanes([&](Value lane) {
            storeVector(builder, state.max, code.rowMax, {queryTile, lane});
            storeVector(builder, state.sum, code.rowSum, {queryTile, lane});
            if (code.exactSum)
              storeVector(builder, zero, code.exactSum, {queryTile, lane});
          });
          // Includes the padding columns.
          int64_t columns = code.getNumColumns();
          createLoop(
              builder, begin, createIndex(builder, columns), 1, [&](Value d) {
                forLanes([&](Value lane) {
                  storeVector(builder, zero, code.acc, {queryTile, d, lane});
                });
              });
        });
      });
}

//===- AttentionSplitKV.cpp - KV splits and their merge -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// KV splits of the decode kernel (Flash-Decoding). The number of splits depends
// on the number of keys alone, and splits are merged in order, so results do
// not depend on the number of threads. If the buffer of partial results is
// large enough for the batch, the splits of a head are divided among several
// tasks; otherwise one task does them all.
//
//===----------------------------------------------------------------------===//

#include "AttentionDecode.h"

#include "posenc/Numerics/Softmax.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::posenc;

Value Decode::getAccOffset(Value offset, Value row, Value d) {
  int64_t states =
      code.tiles.getStateVectors() * code.tiles.getBlocks() * lanes;
  Value at = addIndex(b, mulIndex(b, row, code.valueDim), states);
  return addIndex(b, offset, addIndex(b, at, d));
}

void Decode::startMerged() {
  Value zero = createIndex(b, 0), none = createSplat(b, type, 0);
  Base2Softmax softmax(b, b.getLoc(), type);
  forEachBlock([&](Value block) {
    Value row = getState(block);
    SoftmaxState state = emitEmptyState(softmax);
    storeVector(b, state.max, code.mergedState, {row, zero});
    for (int64_t i = 1; i < code.tiles.getStateVectors(); ++i)
      storeVector(b, state.sum, code.mergedState, {addIndex(b, row, i), zero});
    for (int64_t q = 0; q < getQueriesPerBlock(); ++q)
      createLoop(b, zero, createIndex(b, code.valueDim), lanes, [&](Value d) {
        storeVector(b, none, code.mergedAcc, {getRowOfQuery(block, q), d});
      });
  });
}

void Decode::merge(Value offset) {
  Value zero = createIndex(b, 0);
  forEachBlock([&](Value block) {
    Value row = getState(block);
    auto loadState = [&](Value at) {
      return offset ? loadVector(b, type, code.partials,
                                 addIndex(b, offset, mulIndex(b, at, lanes)))
                    : loadVector(b, type, code.decodeState, {at, zero});
    };
    Value before = loadVector(b, type, code.mergedState, {row, zero});
    Base2Softmax softmax(b, b.getLoc(), type);
    auto [maximum, factors] = emitMerge(softmax, {before, loadState(row)});
    // The product of the split is rounded, that of the merged state is fused.
    auto combine = [&](Value merged, Value split, ArrayRef<Value> by) {
      return emitMergedSum(softmax, {split, merged}, {by[1], by[0]});
    };
    storeVector(b, maximum, code.mergedState, {row, zero});
    for (int64_t i = 1; i < code.tiles.getStateVectors(); ++i) {
      Value next = addIndex(b, row, i);
      Value total = loadVector(b, type, code.mergedState, {next, zero});
      storeVector(b, combine(total, loadState(next), factors), code.mergedState,
                  {next, zero});
    }
    for (int64_t q = 0; q < getQueriesPerBlock(); ++q) {
      SmallVector<Value> by;
      for (Value factor : factors)
        by.push_back(broadcastQuery(factor, q));
      Value at = getRowOfQuery(block, q);
      createLoop(b, zero, createIndex(b, code.valueDim), lanes, [&](Value d) {
        Value splitSum = offset ? loadVector(b, type, code.partials,
                                             getAccOffset(offset, at, d))
                                : loadVector(b, type, code.decodeAcc, {at, d});
        Value sum = loadVector(b, type, code.mergedAcc, {at, d});
        storeVector(b, combine(sum, splitSum, by), code.mergedAcc, {at, d});
      });
    }
  });
}

void Decode::store(Value offset) {
  Value zero = createIndex(b, 0);
  forEachBlock([&](Value block) {
    for (int64_t i = 0; i < code.tiles.getStateVectors(); ++i) {
      Value row = addIndex(b, getState(block), i);
      storeVector(b, loadVector(b, type, code.decodeState, {row, zero}),
                  code.partials, addIndex(b, offset, mulIndex(b, row, lanes)));
    }
    createLoop(b, zero, createIndex(b, queries), 1, [&](Value query) {
      Value row = getRowOfQuery(block, query);
      createLoop(b, zero, createIndex(b, code.valueDim), lanes, [&](Value d) {
        storeVector(b, loadVector(b, type, code.decodeAcc, {row, d}),
                    code.partials, getAccOffset(offset, row, d));
      });
    });
  });
}

/// Emits the number of KV splits for a number of keys.
static Value emitNumSplits(ImplicitLocOpBuilder &builder,
                           const AttentionCode &code, Value numKeys) {
  // With at least this many keys, reading a split takes longer than merging it.
  constexpr int64_t minKeys = 256;
  Value number = builder.createOrFold<arith::DivUIOp>(
      numKeys, createIndex(builder, minKeys));
  return maxIndex(
      builder, createIndex(builder, 1),
      minIndex(builder, number, createIndex(builder, code.tiles.maxSplits)));
}

static Value emitNumKeys(ImplicitLocOpBuilder &builder, Value first,
                         Value end) {
  return maxIndex(builder, createIndex(builder, 0),
                  subIndex(builder, end, first));
}

/// Emits the offset in `partials` of a KV split of a task's heads.
static Value getPartialsOffset(ImplicitLocOpBuilder &builder,
                               const AttentionCode &code,
                               const AttentionTask &task, Value split) {
  Value heads = builder.createOrFold<arith::DivUIOp>(
      task.queryHead, createIndex(builder, code.tiles.heads));
  Value number = addIndex(
      builder, mulIndex(builder, task.batch, code.getHeadTasks()), heads);
  number =
      addIndex(builder, mulIndex(builder, number, code.tiles.maxSplits), split);
  return mulIndex(builder, number, code.tiles.getStateSize(code.valueDim));
}

Value mlir::posenc::emitNumSplitTasks(ImplicitLocOpBuilder &builder,
                                      const AttentionCode &code) {
  AttentionOp op = code.op;
  int64_t floatsPerSequence = code.getHeadTasks() * code.tiles.maxSplits *
                              code.tiles.getStateSize(code.valueDim);
  Value batch = getDimSize(builder, builder.getLoc(), op.getQuery(), 0);
  Value fits = arith::CmpIOp::create(
      builder, arith::CmpIPredicate::sle, batch,
      createIndex(builder, getSharedBytes(op) / 4 / floatsPerSequence));
  return arith::SelectOp::create(builder, fits,
                                 createIndex(builder, code.tiles.maxSplits),
                                 createIndex(builder, 1));
}

void mlir::posenc::emitDecode(ImplicitLocOpBuilder &builder,
                              const AttentionCode &code,
                              const AttentionRows &queryRows,
                              const AttentionRows &keyRows,
                              const AttentionTask &task, Value firstKey,
                              Value endKey, Value splitTask,
                              Value numSplitTasks) {
  AttentionOp op = code.op;
  Decode decode(builder, code, task, endKey);
  decode.emitQueries(queryRows);
  Value zero = createIndex(builder, 0);
  Value size = createIndex(builder, code.tiles.keys);
  MaskBounds bounds(op.getWhere());
  auto emitTile = [&](Value first, Value count, bool isWhole) {
    TileMask mask = bounds.emit(builder, decode.getPairs(first, count));
    auto emitVisibleTile = [&] {
      if (op.getKeyRotation() || op.getKeyNorm())
        emitKeyRows(builder, code, keyRows, task, first, count);
      decode.emitTile(first, count, isWhole, mask.isAll);
    };
    if (mask.isAny)
      emitIf(builder, mask.isAny, emitVisibleTile);
    else
      emitVisibleTile();
  };
  auto emitKeys = [&](Value first, Value total) {
    if (decode.hasMasks()) {
      Value end = addIndex(builder, first, total);
      return createLoop(builder, first, end, code.tiles.keys, [&](Value tile) {
        Value count = minIndex(builder, size, subIndex(builder, end, tile));
        emitIf(
            builder, decode.isVisibleToAll(tile, size),
            [&] { emitTile(tile, size, /*isWhole=*/true); },
            [&] { emitTile(tile, count, /*isWhole=*/false); });
      });
    }
    Value rest = builder.createOrFold<arith::RemUIOp>(total, size);
    Value endOfWhole = subIndex(builder, addIndex(builder, first, total), rest);
    createLoop(builder, first, endOfWhole, code.tiles.keys,
               [&](Value tile) { emitTile(tile, size, /*isWhole=*/true); });
    Value hasRest =
        arith::CmpIOp::create(builder, arith::CmpIPredicate::ne, rest, zero);
    emitIf(builder, hasRest,
           [&] { emitTile(endOfWhole, rest, /*isWhole=*/false); });
  };
  Value total = emitNumKeys(builder, firstKey, endKey);
  if (code.tiles.maxSplits == 1) {
    decode.start(/*isFirst=*/nullptr);
    emitKeys(firstKey, total);
    return decode.finish();
  }

  Value numSplits = emitNumSplits(builder, code, total);
  Value numTiles = builder.createOrFold<arith::CeilDivUIOp>(total, size);
  auto divide = [&](Value what, Value number, Value by) -> Value {
    return arith::DivUIOp::create(
        builder, builder.createOrFold<arith::MulIOp>(what, number), by);
  };
  Value isAlone = arith::CmpIOp::create(builder, arith::CmpIPredicate::eq,
                                        numSplitTasks, createIndex(builder, 1));
  emitIf(builder, isAlone, [&] { decode.startMerged(); });
  createLoop(
      builder, divide(numSplits, splitTask, numSplitTasks),
      divide(numSplits, addIndex(builder, splitTask, 1), numSplitTasks), 1,
      [&](Value split) {
        decode.start(arith::CmpIOp::create(builder, arith::CmpIPredicate::eq,
                                           split, zero));
        auto getKey = [&](Value number) {
          Value tile = divide(numTiles, number, numSplits);
          return minIndex(builder, total,
                          mulIndex(builder, tile, code.tiles.keys));
        };
        Value first = getKey(split), end = getKey(addIndex(builder, split, 1));
        emitKeys(addIndex(builder, firstKey, first),
                 subIndex(builder, end, first));
        emitIf(
            builder, isAlone, [&] { decode.merge(/*offset=*/nullptr); },
            [&] {
              decode.store(getPartialsOffset(builder, code, task, split));
            });
      });
  emitIf(builder, isAlone, [&] { decode.finish(); });
}

void mlir::posenc::emitMerge(ImplicitLocOpBuilder &builder,
                             const AttentionCode &code,
                             const AttentionTask &task, Value firstKey,
                             Value endKey) {
  Decode decode(builder, code, task, endKey);
  decode.startMerged();
  Value numKeys = emitNumKeys(builder, firstKey, endKey);
  createLoop(builder, createIndex(builder, 0),
             emitNumSplits(builder, code, numKeys), 1, [&](Value split) {
               decode.merge(getPartialsOffset(builder, code, task, split));
             });
  decode.finish();
}

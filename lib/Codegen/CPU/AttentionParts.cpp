//===- AttentionParts.cpp - parts of the keys of few tokens -----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The keys of a sequence are so many parts as its number of keys says, which
// are merged in their order: results do not depend on who does which part.
// Where memory for the parts of all sequences suffices, threads share the parts
// of one; otherwise a task does them all.
//
//===----------------------------------------------------------------------===//

#include "AttentionDecode.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <cfloat>

using namespace mlir;
using namespace mlir::posenc;

Value Decode::getSum(Value place, Value row, Value d) {
  int64_t states =
      code.tiles.getStateVectors() * code.tiles.getBlocks() * lanes;
  Value at = addIndex(b, mulIndex(b, row, code.valueDim), states);
  return addIndex(b, place, addIndex(b, at, d));
}

void Decode::startMerged() {
  Value zero = createIndex(b, 0), none = createSplat(b, type, 0);
  forEachBlock([&](Value block) {
    Value row = getState(block);
    storeVector(b, createSplat(b, type, -FLT_MAX), code.mergedState,
                {row, zero});
    for (int64_t i = 1; i < code.tiles.getStateVectors(); ++i)
      storeVector(b, none, code.mergedState, {addIndex(b, row, i), zero});
    for (int64_t q = 0; q < getQueriesPerBlock(); ++q)
      createLoop(b, zero, createIndex(b, code.valueDim), lanes, [&](Value d) {
        storeVector(b, none, code.mergedSums, {getRowOfQuery(block, q), d});
      });
  });
}

void Decode::merge(Value place) {
  Value zero = createIndex(b, 0);
  forEachBlock([&](Value block) {
    Value row = getState(block);
    auto loadState = [&](Value at) {
      return place ? loadVector(b, type, code.partials,
                                addIndex(b, place, mulIndex(b, at, lanes)))
                   : loadVector(b, type, code.decodeState, {at, zero});
    };
    Value before = loadVector(b, type, code.mergedState, {row, zero});
    Value mine = loadState(row);
    Value maximum = createMax(b, mine, before);
    Value factor = emitExp2(b, arith::SubFOp::create(b, before, maximum));
    Value myFactor = emitExp2(b, arith::SubFOp::create(b, mine, maximum));
    auto combine = [&](Value sum, Value by, Value mySum, Value myBy) {
      return math::FmaOp::create(b, sum, by,
                                 arith::MulFOp::create(b, mySum, myBy));
    };
    storeVector(b, maximum, code.mergedState, {row, zero});
    for (int64_t i = 1; i < code.tiles.getStateVectors(); ++i) {
      Value next = addIndex(b, row, i);
      Value total = loadVector(b, type, code.mergedState, {next, zero});
      storeVector(b, combine(total, factor, loadState(next), myFactor),
                  code.mergedState, {next, zero});
    }
    for (int64_t q = 0; q < getQueriesPerBlock(); ++q) {
      Value by = ofQuery(factor, q), myBy = ofQuery(myFactor, q);
      Value at = getRowOfQuery(block, q);
      createLoop(b, zero, createIndex(b, code.valueDim), lanes, [&](Value d) {
        Value mySum =
            place ? loadVector(b, type, code.partials, getSum(place, at, d))
                  : loadVector(b, type, code.decodeSums, {at, d});
        Value sum = loadVector(b, type, code.mergedSums, {at, d});
        storeVector(b, combine(sum, by, mySum, myBy), code.mergedSums, {at, d});
      });
    }
  });
}

void Decode::store(Value place) {
  Value zero = createIndex(b, 0);
  forEachBlock([&](Value block) {
    for (int64_t i = 0; i < code.tiles.getStateVectors(); ++i) {
      Value row = addIndex(b, getState(block), i);
      storeVector(b, loadVector(b, type, code.decodeState, {row, zero}),
                  code.partials, addIndex(b, place, mulIndex(b, row, lanes)));
    }
    createLoop(b, zero, createIndex(b, queries), 1, [&](Value query) {
      Value row = getRowOfQuery(block, query);
      createLoop(b, zero, createIndex(b, code.valueDim), lanes, [&](Value d) {
        storeVector(b, loadVector(b, type, code.decodeSums, {row, d}),
                    code.partials, getSum(place, row, d));
      });
    });
  });
}

/// Of how many parts so many keys are.
static Value emitNumParts(ImplicitLocOpBuilder &builder,
                          const AttentionCode &code, Value numKeys) {
  // Others merge in less time than it takes to read so many keys.
  constexpr int64_t leastKeys = 256;
  Value number = builder.createOrFold<arith::DivUIOp>(
      numKeys, createIndex(builder, leastKeys));
  return maxIndex(
      builder, createIndex(builder, 1),
      minIndex(builder, number, createIndex(builder, code.tiles.mostParts)));
}

static Value emitNumKeys(ImplicitLocOpBuilder &builder, Value first,
                         Value end) {
  return maxIndex(builder, createIndex(builder, 0),
                  subIndex(builder, end, first));
}

/// Where the parts of a task's heads are left.
static Value emitPlace(ImplicitLocOpBuilder &builder, const AttentionCode &code,
                       const AttentionTask &task, Value part) {
  Value heads = builder.createOrFold<arith::DivUIOp>(
      task.queryHead, createIndex(builder, code.tiles.heads));
  Value number = addIndex(
      builder, mulIndex(builder, task.batch, code.getHeadTasks()), heads);
  number =
      addIndex(builder, mulIndex(builder, number, code.tiles.mostParts), part);
  return mulIndex(builder, number, code.tiles.getStateSize(code.valueDim));
}

Value mlir::posenc::emitNumShares(ImplicitLocOpBuilder &builder,
                                  const AttentionCode &code) {
  AttentionOp op = code.op;
  int64_t ofSequence = code.getHeadTasks() * code.tiles.mostParts *
                       code.tiles.getStateSize(code.valueDim);
  Value batch = getDimSize(builder, builder.getLoc(), op.getQuery(), 0);
  Value fits = arith::CmpIOp::create(
      builder, arith::CmpIPredicate::sle, batch,
      createIndex(builder, getSharedBytes(op) / 4 / ofSequence));
  return arith::SelectOp::create(builder, fits,
                                 createIndex(builder, code.tiles.mostParts),
                                 createIndex(builder, 1));
}

static void emitIf(ImplicitLocOpBuilder &builder, Value condition,
                   function_ref<void()> then,
                   function_ref<void()> otherwise = nullptr) {
  auto branch =
      scf::IfOp::create(builder, condition,
                        /*withElseRegion=*/static_cast<bool>(otherwise));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  then();
  if (!otherwise)
    return;
  builder.setInsertionPointToStart(branch.elseBlock());
  otherwise();
}

void mlir::posenc::emitDecode(ImplicitLocOpBuilder &builder,
                              const AttentionCode &code,
                              const AttentionRows &queryRows,
                              const AttentionRows &keyRows,
                              const AttentionTask &task, Value firstKey,
                              Value endKey, Value share, Value numShares) {
  AttentionOp op = code.op;
  Decode decode(builder, code, task, endKey);
  decode.emitQueries(queryRows);
  Value zero = createIndex(builder, 0);
  Value size = createIndex(builder, code.tiles.keys);
  auto emitTile = [&](Value first, Value count, bool isWhole) {
    if (op.getKeyRotation() || op.getKeyNorm())
      emitKeyRows(builder, code, keyRows, task, first, count);
    decode.emitTile(first, count, isWhole);
  };
  auto emitKeys = [&](Value first, Value total) {
    if (decode.hasMasks()) {
      Value end = addIndex(builder, first, total);
      return createLoop(builder, first, end, code.tiles.keys, [&](Value tile) {
        Value count = minIndex(builder, size, subIndex(builder, end, tile));
        emitIf(
            builder, decode.isSeenByAll(tile, size),
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
  if (code.tiles.mostParts == 1) {
    decode.start(/*isFirst=*/nullptr);
    emitKeys(firstKey, total);
    return decode.finish();
  }

  Value numParts = emitNumParts(builder, code, total);
  Value numTiles = builder.createOrFold<arith::CeilDivUIOp>(total, size);
  auto divide = [&](Value what, Value number, Value by) -> Value {
    return arith::DivUIOp::create(
        builder, builder.createOrFold<arith::MulIOp>(what, number), by);
  };
  Value isAlone = arith::CmpIOp::create(builder, arith::CmpIPredicate::eq,
                                        numShares, createIndex(builder, 1));
  emitIf(builder, isAlone, [&] { decode.startMerged(); });
  createLoop(builder, divide(numParts, share, numShares),
             divide(numParts, addIndex(builder, share, 1), numShares), 1,
             [&](Value part) {
               decode.start(arith::CmpIOp::create(
                   builder, arith::CmpIPredicate::eq, part, zero));
               auto getKey = [&](Value number) {
                 Value tile = divide(numTiles, number, numParts);
                 return minIndex(builder, total,
                                 mulIndex(builder, tile, code.tiles.keys));
               };
               Value first = getKey(part),
                     end = getKey(addIndex(builder, part, 1));
               emitKeys(addIndex(builder, firstKey, first),
                        subIndex(builder, end, first));
               emitIf(
                   builder, isAlone, [&] { decode.merge(/*place=*/nullptr); },
                   [&] { decode.store(emitPlace(builder, code, task, part)); });
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
  createLoop(
      builder, createIndex(builder, 0), emitNumParts(builder, code, numKeys), 1,
      [&](Value part) { decode.merge(emitPlace(builder, code, task, part)); });
  decode.finish();
}

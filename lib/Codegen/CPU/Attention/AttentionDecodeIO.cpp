//===- AttentionDecodeIO.cpp - inputs and outputs of decode ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionDecode.h"

#include "posenc/Numerics/Softmax.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::posenc;

void Decode::emitQueries(const AttentionRows &rows) {
  double factor = code.getExponentScale();
  Value scale = createSplat(b, type, factor);
  bool split = areKeysSplit();
  int64_t vectors = split ? 2 : 1;
  SmallVector<int64_t> even, odd;
  for (int64_t i = 0; i < lanes; ++i) {
    even.push_back(2 * i);
    odd.push_back(2 * i + 1);
  }
  Value zero = createIndex(b, 0), dim = createIndex(b, code.dim);
  const AttentionTiles &tiles = code.tiles;
  int64_t rowsPerHead = tiles.getBlocksPerHead() * queries;
  createLoop(b, zero, numTokens, 1, [&](Value token) {
    rows.prepareQuery(b, task, addIndex(b, task.firstToken, token),
                      addIndex(b, task.firstPosition, token), token);
  });
  auto emitRow = [&](Value keyHead, Value number) {
    Value token = getToken(number);
    SmallVector<Value> at = getIndices(keyHead, number);
    Value row = addIndex(b, mulIndex(b, keyHead, rowsPerHead), number);
    rows.emitRow(b, op.getQuery(), at, code.dim, code.rows, row, token);
    if (areIntegers)
      return emitIntegerQuery(row, factor);
    createLoop(b, zero, dim, vectors * lanes, [&](Value d) {
      SmallVector<Value> parts;
      for (int64_t i = 0; i < vectors; ++i) {
        Value part =
            loadVector(b, type, code.rows, {row, addIndex(b, d, i * lanes)});
        parts.push_back(arith::MulFOp::create(b, part, scale));
      }
      if (split)
        parts = {vector::ShuffleOp::create(b, parts[0], parts[1], even),
                 vector::ShuffleOp::create(b, parts[0], parts[1], odd)};
      for (auto [i, part] : llvm::enumerate(parts))
        storeVector(b, part, code.rows, {row, addIndex(b, d, i * lanes)});
    });
  };
  // Fills the lanes after the last query.
  auto emitNone = [&](Value keyHead, Value number) {
    Value row = addIndex(b, mulIndex(b, keyHead, rowsPerHead), number);
    createLoop(b, zero, dim, lanes, [&](Value d) {
      storeVector(b, createSplat(b, type, 0), code.rows, {row, d});
    });
  };
  createLoop(b, zero, createIndex(b, tiles.keyHeads), 1, [&](Value keyHead) {
    createLoop(b, zero, perHead, 1,
               [&](Value number) { emitRow(keyHead, number); });
    if (areBlocksFull())
      return;
    Value end = numBlocks ? mulIndex(b, numBlocks, queries)
                          : createIndex(b, rowsPerHead);
    createLoop(b, perHead, end, 1,
               [&](Value number) { emitNone(keyHead, number); });
  });
}

Value Decode::getNumber(Value block) {
  Value blocks = createIndex(b, code.tiles.getBlocksPerHead());
  return mulIndex(b, b.createOrFold<arith::RemUIOp>(block, blocks), queries);
}

Value Decode::getHead(Value keyHead, Value number) {
  int64_t heads = code.tiles.getHeadsPerKeyHead();
  return addIndex(
      b, mulIndex(b, keyHead, heads),
      b.createOrFold<arith::RemUIOp>(number, createIndex(b, heads)));
}

Value Decode::getToken(Value number) {
  if (code.tiles.getTokens() == 1)
    return createIndex(b, 0);
  return b.createOrFold<arith::DivUIOp>(
      number, createIndex(b, code.tiles.getHeadsPerKeyHead()));
}

SmallVector<Value> Decode::getIndices(Value keyHead, Value number) {
  return getQueryIndices(b, op, task.batch, task.queryStart,
                         addIndex(b, task.queryHead, getHead(keyHead, number)),
                         addIndex(b, task.firstToken, getToken(number)));
}

Value Decode::loadSinks(Value block) {
  SmallVector<Value> sinks;
  for (int64_t i = 0; i < lanes; ++i) {
    Value head =
        getHead(getKeyHead(block), addIndex(b, getNumber(block), i % queries));
    sinks.push_back(memref::LoadOp::create(
        b, op.getSinks(), ValueRange{addIndex(b, task.queryHead, head)}));
  }
  return vector::FromElementsOp::create(b, type, sinks);
}

void Decode::start(Value isFirst) {
  Value zero = createIndex(b, 0), none = createSplat(b, type, 0);
  Base2Softmax softmax(b, b.getLoc(), type);
  forEachBlock([&](Value block) {
    SoftmaxState state = emitEmptyState(softmax);
    if (op.getSinks()) {
      // All lanes of a query start with the sink as running max, but only the
      // lane of the first key counts it in the running sum, and only in the
      // first KV split.
      state = emitSinkState(softmax, loadSinks(block));
      SmallVector<float> isFirstKey;
      for (int64_t i = 0; i < lanes; ++i)
        isFirstKey.push_back(i < queries ? 1 : 0);
      state.sum = arith::MulFOp::create(
          b, state.sum,
          arith::ConstantOp::create(
              b, DenseElementsAttr::get(type, ArrayRef(isFirstKey))));
      if (isFirst)
        state.sum = arith::SelectOp::create(b, isFirst, state.sum, none);
    }
    Value row = getState(block);
    storeVector(b, state.max, code.decodeState, {row, zero});
    for (int64_t i = 1; i < code.tiles.getStateVectors(); ++i)
      storeVector(b, i == 1 ? state.sum : none, code.decodeState,
                  {addIndex(b, row, i), zero});
    for (int64_t q = 0; q < queries; ++q)
      createLoop(b, zero, createIndex(b, code.valueDim), lanes, [&](Value d) {
        storeVector(b, none, code.decodeAcc, {getRowOfQuery(block, q), d});
      });
  });
}

void Decode::finish() {
  forEachBlock([&](Value block) { finishBlock(block); });
}

void Decode::finishBlock(Value block) {
  Value zero = createIndex(b, 0);
  Value output = op.getInits().front();
  VectorType narrow = type.clone(getElementTypeOrSelf(output.getType()));
  // Visits the columns in the order of the accumulators, as emitValues does.
  int64_t vectors = lanes / std::min(queries, lanes / 2);
  while (code.valueDim / lanes % vectors != 0)
    --vectors;
  bool split = areSplit(op.getValue(), vectors * lanes);
  SmallVector<int64_t> low, high;
  for (int64_t i = 0; i < lanes / 2; ++i) {
    llvm::append_values(low, i, lanes + i);
    llvm::append_values(high, lanes / 2 + i, lanes + lanes / 2 + i);
  }
  bool isMerged = code.tiles.maxSplits > 1;
  Value state = isMerged ? code.mergedState : code.decodeState;
  Value sums = isMerged ? code.mergedAcc : code.decodeAcc;
  Value maximum = loadVector(b, type, state, {getState(block), zero});
  Value total = sumWeights(state, block);
  Value sinks =
      op.getSinks() && op.getLogSumInit() ? loadSinks(block) : Value();
  Base2Softmax softmax(b, b.getLoc(), type);
  Value normalization = emitQuotient(softmax, softmax.number(1), total);
  Value logSums;
  if (op.getLogSumInit())
    logSums = emitLogSum(softmax, {maximum, total}, sinks);
  Value first = getNumber(block);
  Value count =
      minIndex(b, subIndex(b, perHead, first), createIndex(b, queries));
  createLoop(b, zero, count, 1, [&](Value query) {
    Value number = addIndex(b, first, query);
    SmallVector<Value> at = getIndices(getKeyHead(block), number);
    auto extractQuery = [&](Value vector) -> Value {
      return vector::ExtractOp::create(b, vector, OpFoldResult(query));
    };
    if (Value logSum = op.getLogSumInit())
      memref::StoreOp::create(b, extractQuery(logSums), logSum, at);
    Value factor = broadcast(b, type, extractQuery(normalization));
    Value row = getRowOfQuery(block, query);
    int64_t step = split ? 2 * lanes : lanes;
    createLoop(b, zero, createIndex(b, code.valueDim), step, [&](Value d) {
      SmallVector<Value> parts;
      for (int64_t i = 0; i < step; i += lanes)
        parts.push_back(loadVector(b, type, sums, {row, addIndex(b, d, i)}));
      if (split)
        parts = {vector::ShuffleOp::create(b, parts[0], parts[1], low),
                 vector::ShuffleOp::create(b, parts[0], parts[1], high)};
      for (auto [i, part] : llvm::enumerate(parts)) {
        Value value = arith::MulFOp::create(b, part, factor);
        if (narrow != type)
          value = arith::TruncFOp::create(b, narrow, value);
        SmallVector<Value> position(at);
        position.push_back(addIndex(b, d, i * lanes));
        storeVector(b, value, output, position);
      }
    });
  });
}

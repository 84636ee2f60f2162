//===- AttentionDecode.cpp - attention of one query -------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One query: bound by memory, so keys and values are read where they are, once
// for all query heads of a task. The lanes of vectors run along the dims. As
// many products of a key and a query are summed at a time as a vector has
// lanes, and then all of them across lanes at once, into a vector of scores:
// keys, and in each key query heads.
//
//===----------------------------------------------------------------------===//

#include "AttentionCode.h"

#include "ElementwiseBuilder.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

#include <cfloat>

using namespace mlir;
using namespace mlir::posenc;

bool mlir::posenc::isDecode(AttentionOp op, const VectorTarget &target) {
  int64_t lanes = target.vectorBytes / 4;
  auto query = cast<ShapedType>(op.getQuery().getType());
  int64_t valueDim =
      cast<ShapedType>(op.getValue().getType()).getShape().back();
  return query.getDimSize(op.getQueryTokenDim()) == 1 &&
         op.getCuSeqlens().empty() && query.getShape().back() % lanes == 0 &&
         valueDim % lanes == 0 && op.getScore().empty() &&
         op.getWhere().empty() && !op.getMask();
}

namespace {
/// The code for one task.
class Decode {
public:
  Decode(ImplicitLocOpBuilder &builder, const AttentionCode &code,
         const AttentionTask &task)
      : b(builder), code(code), op(code.op), task(task),
        type(code.getVectorType()), lanes(code.tiles.lanes),
        heads(code.tiles.heads), keys(lanes / heads) {
    for (int64_t i = 0; i < heads; ++i)
      headIndices.push_back(createIndex(b, i));
  }

  void emitTile(Value firstKey, Value count);
  void start();
  void finish();

private:
  Value load(Value memref, ValueRange row, Value lane);
  void prefetch(Value memref, ValueRange row, Value lane);
  SmallVector<Value> getKeyRow(Value key) {
    return getKeyIndices(b, op, task, key);
  }
  Value sumLanes(SmallVector<Value> vectors);
  Value acrossKeys(Value vector, function_ref<Value(Value, Value)> combine);
  Value ofHead(Value vector, int64_t head) {
    return broadcast(b, type, vector::ExtractOp::create(b, vector, head));
  }
  Value emitScores(Value firstKey, Value count, Value maximum);
  void emitValues(Value firstKey, Value count, Value factor);

  ImplicitLocOpBuilder &b;
  const AttentionCode &code;
  AttentionOp op;
  const AttentionTask &task;
  VectorType type;
  /// Query heads of the task, and keys whose scores are in a vector.
  int64_t lanes, heads, keys;
  SmallVector<Value> headIndices;
};
} // namespace

/// A vector of a tensor's row, in f32.
Value Decode::load(Value memref, ValueRange row, Value lane) {
  SmallVector<Value> at(row);
  at.push_back(lane);
  VectorType given = type.clone(getElementTypeOrSelf(memref.getType()));
  Value value = loadVector(b, given, memref, at);
  return given == type ? value : arith::ExtFOp::create(b, type, value);
}

/// Asks for the line with a lane of a row. What is beyond the tensor is never
/// touched.
void Decode::prefetch(Value memref, ValueRange row, Value lane) {
  SmallVector<Value> at(row);
  at.push_back(lane);
  memref::PrefetchOp::create(b, memref, at, /*isWrite=*/false,
                             /*localityHint=*/3, /*isDataCache=*/true);
}

/// Of as many vectors as there are lanes, the sum of each.
Value Decode::sumLanes(SmallVector<Value> vectors) {
  SmallVector<int64_t> even, odd;
  for (int64_t i = 0; i < lanes; ++i) {
    even.push_back(2 * i);
    odd.push_back(2 * i + 1);
  }
  while (vectors.size() > 1) {
    SmallVector<Value> next;
    for (size_t i = 0; i < vectors.size(); i += 2) {
      Value x = vectors[i], y = vectors[i + 1];
      next.push_back(
          arith::AddFOp::create(b, vector::ShuffleOp::create(b, x, y, even),
                                vector::ShuffleOp::create(b, x, y, odd)));
    }
    vectors = std::move(next);
  }
  return vectors.front();
}

/// Combines the lanes of all keys, for each head.
Value Decode::acrossKeys(Value vector,
                         function_ref<Value(Value, Value)> combine) {
  for (int64_t distance = heads; distance < lanes; distance *= 2) {
    SmallVector<int64_t> others;
    for (int64_t i = 0; i < lanes; ++i)
      others.push_back(i ^ distance);
    vector =
        combine(vector, vector::ShuffleOp::create(b, vector, vector, others));
  }
  return vector;
}

/// Scores of a tile; returns the new maxima.
Value Decode::emitScores(Value firstKey, Value count, Value maximum) {
  Value zero = createIndex(b, 0), last = addIndex(b, count, -1);
  bool arePacked = op.getKeyRotation() || op.getKeyNorm();
  SmallVector<Value> start(lanes, createSplat(b, type, 0));
  Value minusInfinity =
      createSplat(b, type, -std::numeric_limits<double>::infinity());
  SmallVector<int32_t> numbers;
  for (int64_t i = 0; i < lanes; ++i)
    numbers.push_back(i / heads);
  VectorType integers = type.clone(b.getI32Type());
  Value keyOfLane = arith::ConstantOp::create(
      b, DenseElementsAttr::get(integers, ArrayRef(numbers)));
  constexpr int64_t lineBytes = 64;
  int64_t bytes =
      getElementTypeOrSelf(op.getKey().getType()).getIntOrFloatBitWidth() / 8;
  int64_t step = lineBytes / bytes;
  bool hasLines = code.dim % step == 0 && code.valueDim == code.dim;
  if (!hasLines)
    step = lanes;
  maximum = createLoop(
      b, zero, count, keys, maximum, [&](Value row, ValueRange before) {
        // Keys beyond the last are the last.
        SmallVector<Value> rows;
        SmallVector<SmallVector<Value>> places;
        for (int64_t i = 0; i < keys; ++i) {
          rows.push_back(minIndex(b, addIndex(b, row, i), last));
          places.push_back(getKeyRow(addIndex(b, firstKey, rows[i])));
        }
        SmallVector<Value> products = createLoop(
            b, zero, createIndex(b, code.dim), step, start,
            [&](Value first, ValueRange sums) {
              SmallVector<Value> next(sums);
              for (int64_t j = 0; j < step; j += lanes) {
                Value d = addIndex(b, first, j);
                for (int64_t i = 0; i < keys; ++i) {
                  Value key = arePacked
                                  ? loadVector(b, type, code.keys, {rows[i], d})
                                  : load(op.getKey(), places[i], d);
                  if (j == 0 && hasLines)
                    prefetch(op.getValue(), places[i], d);
                  for (int64_t h = 0; h < heads; ++h) {
                    Value query =
                        loadVector(b, type, code.rows, {headIndices[h], d});
                    Value &sum = next[i * heads + h];
                    sum = math::FmaOp::create(b, key, query, sum);
                  }
                }
              }
              return next;
            });
        Value score = sumLanes(products);
        Value rest = arith::IndexCastOp::create(b, b.getI32Type(),
                                                subIndex(b, count, row));
        Value isKey =
            arith::CmpIOp::create(b, arith::CmpIPredicate::slt, keyOfLane,
                                  broadcast(b, integers, rest));
        score = arith::SelectOp::create(b, isKey, score, minusInfinity);
        Value number = arith::DivUIOp::create(b, row, createIndex(b, keys));
        storeVector(b, score, code.decodeScores, {number, zero});
        return SmallVector<Value>{createMax(b, score, before.front())};
      })[0];
  return acrossKeys(maximum,
                    [&](Value x, Value y) { return createMax(b, x, y); });
}

/// Adds weighted values.
void Decode::emitValues(Value firstKey, Value count, Value factor) {
  Value zero = createIndex(b, 0);
  int64_t vectors = std::max<int64_t>(lanes / heads, 1);
  while (code.valueDim / lanes % vectors != 0)
    --vectors;
  int64_t columns = vectors * lanes;
  SmallVector<Value> factors;
  for (int64_t h = 0; h < heads; ++h)
    factors.push_back(ofHead(factor, h));
  SmallVector<Value> start(vectors * heads, createSplat(b, type, 0));
  bool arePacked = op.getKeyRotation() || op.getKeyNorm();
  createLoop(b, zero, createIndex(b, code.valueDim), columns, [&](Value d) {
    SmallVector<Value> sums =
        createLoop(b, zero, count, 1, start, [&](Value row, ValueRange before) {
          Value key = addIndex(b, firstKey, row);
          SmallVector<Value> next(before), weights;
          Value number = arith::DivUIOp::create(b, row, createIndex(b, keys));
          Value inVector = mulIndex(
              b, arith::RemUIOp::create(b, row, createIndex(b, keys)), heads);
          for (int64_t h = 0; h < heads; ++h)
            weights.push_back(
                broadcast(b, type,
                          memref::LoadOp::create(
                              b, code.decodeScores,
                              ValueRange{number, addIndex(b, inVector, h)})));
          SmallVector<Value> place = getKeyRow(key);
          // Where the next keys of a paged cache are is not known yet.
          if (!arePacked && !op.getBlockTable() && code.valueDim == code.dim)
            prefetch(op.getKey(), getKeyRow(addIndex(b, key, code.tiles.keys)),
                     d);
          for (int64_t v = 0; v < vectors; ++v) {
            Value value = load(op.getValue(), place, addIndex(b, d, v * lanes));
            for (int64_t h = 0; h < heads; ++h) {
              Value &sum = next[v * heads + h];
              sum = math::FmaOp::create(b, weights[h], value, sum);
            }
          }
          return next;
        });
    for (int64_t v = 0; v < vectors; ++v)
      for (int64_t h = 0; h < heads; ++h) {
        SmallVector<Value> at{headIndices[h], addIndex(b, d, v * lanes)};
        Value before = loadVector(b, type, code.decodeSums, at);
        storeVector(
            b, math::FmaOp::create(b, before, factors[h], sums[v * heads + h]),
            code.decodeSums, at);
      }
  });
}

void Decode::emitTile(Value firstKey, Value count) {
  Value zero = createIndex(b, 0), one = createIndex(b, 1);
  Value before = loadVector(b, type, code.decodeState, {zero, zero});
  Value maximum = emitScores(firstKey, count, before);
  Value factor = emitExp2(b, arith::SubFOp::create(b, before, maximum));
  storeVector(b, maximum, code.decodeState, {zero, zero});
  Value total = loadVector(b, type, code.decodeState, {one, zero});
  Value groups =
      b.createOrFold<arith::CeilDivUIOp>(count, createIndex(b, keys));
  Value sum = createLoop(
      b, zero, groups, 1, Value(createSplat(b, type, 0)),
      [&](Value number, ValueRange sums) {
        Value score = loadVector(b, type, code.decodeScores, {number, zero});
        Value weight = emitExp2(b, arith::SubFOp::create(b, score, maximum));
        storeVector(b, weight, code.decodeScores, {number, zero});
        return SmallVector<Value>{
            arith::AddFOp::create(b, sums.front(), weight)};
      })[0];
  storeVector(b, math::FmaOp::create(b, total, factor, sum), code.decodeState,
              {one, zero});
  emitValues(firstKey, count, factor);
}

void Decode::start() {
  Value zero = createIndex(b, 0), none = createSplat(b, type, 0);
  Value maximum = createSplat(b, type, -FLT_MAX), total = none;
  if (Value sinks = op.getSinks()) {
    // All lanes have the maximum of their head, but only those of the first
    // key have its part of the sum.
    SmallVector<Value> logits;
    for (int64_t i = 0; i < lanes; ++i)
      logits.push_back(memref::LoadOp::create(
          b, sinks, ValueRange{addIndex(b, task.queryHead, i % heads)}));
    ElementwiseBuilder e(b, b.getLoc(), maximum);
    Value logit = e.mul(vector::FromElementsOp::create(b, type, logits),
                        e.f32(llvm::numbers::log2e));
    maximum = createMax(b, logit, maximum);
    SmallVector<float> isFirst;
    for (int64_t i = 0; i < lanes; ++i)
      isFirst.push_back(i < heads ? 1 : 0);
    total = e.mul(emitExp2(b, e.sub(logit, maximum)),
                  arith::ConstantOp::create(
                      b, DenseElementsAttr::get(type, ArrayRef(isFirst))));
  }
  storeVector(b, maximum, code.decodeState, {zero, zero});
  storeVector(b, total, code.decodeState, {createIndex(b, 1), zero});
  for (Value head : headIndices)
    createLoop(b, zero, createIndex(b, code.valueDim), lanes, [&](Value d) {
      storeVector(b, none, code.decodeSums, {head, d});
    });
}

void Decode::finish() {
  Value zero = createIndex(b, 0);
  Value maximum = loadVector(b, type, code.decodeState, {zero, zero});
  Value total = acrossKeys(
      loadVector(b, type, code.decodeState, {createIndex(b, 1), zero}),
      [&](Value x, Value y) -> Value {
        return arith::AddFOp::create(b, x, y);
      });
  AttentionResult result = emitResult(b, maximum, total);
  Value output = op.getInits().front();
  VectorType narrow = type.clone(getElementTypeOrSelf(output.getType()));
  for (int64_t h = 0; h < heads; ++h) {
    SmallVector<Value> at =
        getRowIndices(task.batch, addIndex(b, task.queryHead, h),
                      task.firstToken, op.getQueryHeadDim());
    if (Value logSum = op.getLogSumInit())
      memref::StoreOp::create(b, vector::ExtractOp::create(b, result.logSum, h),
                              logSum, at);
    Value factor = ofHead(result.factor, h);
    createLoop(b, zero, createIndex(b, code.valueDim), lanes, [&](Value d) {
      Value value = arith::MulFOp::create(
          b, loadVector(b, type, code.decodeSums, {headIndices[h], d}), factor);
      if (narrow != type)
        value = arith::TruncFOp::create(b, narrow, value);
      SmallVector<Value> place(at);
      place.push_back(d);
      storeVector(b, value, output, place);
    });
  }
}

void mlir::posenc::emitDecode(ImplicitLocOpBuilder &builder,
                              const AttentionCode &code,
                              const AttentionRows &queryRows,
                              const AttentionRows &keyRows,
                              const AttentionTask &task, Value firstKey,
                              Value endKey) {
  AttentionOp op = code.op;
  Value zero = createIndex(builder, 0);
  queryRows.preparePosition(builder, task.batch, task.firstToken,
                            task.firstPlace, zero);
  VectorType type = code.getVectorType();
  Value scale =
      createSplat(builder, type, op.getScoreScale() * llvm::numbers::log2e);
  createLoop(
      builder, zero, createIndex(builder, code.tiles.heads), 1,
      [&](Value head) {
        SmallVector<Value> at =
            getRowIndices(task.batch, addIndex(builder, task.queryHead, head),
                          task.firstToken, op.getQueryHeadDim());
        queryRows.emitRow(builder, op.getQuery(), at, code.dim, code.rows, head,
                          zero);
        createLoop(builder, zero, createIndex(builder, code.dim),
                   code.tiles.lanes, [&](Value d) {
                     Value x = loadVector(builder, type, code.rows, {head, d});
                     storeVector(builder,
                                 arith::MulFOp::create(builder, x, scale),
                                 code.rows, {head, d});
                   });
      });
  Decode decode(builder, code, task);
  decode.start();
  createLoop(builder, firstKey, endKey, code.tiles.keys, [&](Value first) {
    Value count = minIndex(builder, createIndex(builder, code.tiles.keys),
                           subIndex(builder, endKey, first));
    if (op.getKeyRotation() || op.getKeyNorm())
      emitKeyRows(builder, code, keyRows, task, first, count);
    decode.emitTile(first, count);
  });
  decode.finish();
}

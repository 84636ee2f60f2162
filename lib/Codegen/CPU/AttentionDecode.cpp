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
// A tile of keys, and one of values, is a page: both stay in the first cache
// between being asked for and being used. Products with the keys ask for rows
// of the tile's values and of the next keys, sums of values for the next keys
// again and the next values: in order and beside the arithmetic, as many at a
// time are dropped, and single ones now and then.
//
// Where all key heads of a key stand side by side, a task takes them all: the
// tile is then one of whole rows of heads, and is taken head by head from the
// second cache, while the next one is asked for in the order of the memory.
//
//===----------------------------------------------------------------------===//

#include "AttentionDecode.h"
#include "BF16Halves.h"

#include "ElementwiseBuilder.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

#include <cfloat>
#include <numeric>

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

static int64_t getElementBytes(Value memref) {
  return getElementTypeOrSelf(memref.getType()).getIntOrFloatBitWidth() / 8;
}

static constexpr int64_t kLineBytes = 64;

/// Whether vectors of bf16 are split into even and odd elements, not halves.
static bool areSplit(const AttentionCode &code, Value memref, int64_t dim) {
  return getElementTypeOrSelf(memref.getType()).isBF16() &&
         dim % (2 * code.tiles.lanes) == 0;
}

Decode::Decode(ImplicitLocOpBuilder &builder, const AttentionCode &code,
               const AttentionTask &task, Value endKey)
    : b(builder), code(code), op(code.op), task(task),
      type(code.getVectorType()), lanes(code.tiles.lanes),
      heads(code.tiles.getHeadLanes()),
      headsPerBlock(code.tiles.getHeadsPerBlock()), keys(lanes / heads),
      endKey(endKey), arePacked(op.getKeyRotation() || op.getKeyNorm()) {
  int64_t bytes = code.dim * getElementBytes(op.getKey());
  hasLines = bytes % kLineBytes == 0 && code.valueDim == code.dim;
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

SmallVector<Value> Decode::getRow(Value firstKey, Value row, Value keyHead,
                                  bool isNext) {
  if (isNext)
    row = addIndex(b, row, code.tiles.keys);
  Value key = addIndex(b, firstKey, row);
  // Pages are only known of keys that there are.
  if (isNext && op.getBlockTable())
    key = minIndex(b, key, addIndex(b, endKey, -1));
  AttentionTask mine = task;
  if (code.tiles.keyHeads > 1)
    mine.keyHead = addIndex(b, task.keyHead, keyHead);
  return getKeyIndices(b, op, mine, key);
}

SmallVector<Value> Decode::getNextRow(Value firstKey, Value &number,
                                      int64_t ofRow) {
  Value size = createIndex(b, ofRow),
        heads = createIndex(b, code.tiles.keyHeads);
  Value row = b.createOrFold<arith::DivUIOp>(number, size);
  number = b.createOrFold<arith::RemUIOp>(number, size);
  return getRow(firstKey, b.createOrFold<arith::DivUIOp>(row, heads),
                b.createOrFold<arith::RemUIOp>(row, heads), /*isNext=*/true);
}

SmallVector<Value> Decode::load(Value memref, ValueRange row, Value lane,
                                int64_t count) {
  SmallVector<Value> result;
  Type element = getElementTypeOrSelf(memref.getType());
  bool split = areSplit(code, memref, type.getNumElements() * count);
  for (int64_t i = 0; i < count; i += split ? 2 : 1) {
    SmallVector<Value> at(row);
    at.push_back(addIndex(b, lane, i * lanes));
    if (split) {
      auto both = VectorType::get({2 * lanes}, element);
      BF16Halves halves =
          splitBF16(b, b.getLoc(), loadVector(b, both, memref, at));
      llvm::append_values(result, halves.even, halves.odd);
      continue;
    }
    Value value = loadVector(b, type.clone(element), memref, at);
    if (element != type.getElementType())
      value = arith::ExtFOp::create(b, type, value);
    result.push_back(value);
  }
  return result;
}

void Decode::prefetch(Value memref, ValueRange row, Value lane) {
  SmallVector<Value> at(row);
  at.push_back(lane);
  memref::PrefetchOp::create(b, memref, at, /*isWrite=*/false,
                             /*localityHint=*/3, /*isDataCache=*/true);
}

void Decode::prefetchBeside(Value firstKey, Value row, Value block,
                            bool isKey) {
  Value memref = isKey ? op.getKey() : op.getValue();
  SmallVector<Value> at;
  if (code.tiles.keyHeads == 1) {
    at = getRow(firstKey, row, block, /*isNext=*/isKey);
  } else if (isKey) {
    Value number = addIndex(b, mulIndex(b, block, code.tiles.keys), row);
    at = getNextRow(firstKey, number, /*ofRow=*/1);
  } else {
    return;
  }
  int64_t elements = kLineBytes / getElementBytes(memref);
  for (int64_t lane = 0; lane < code.dim; lane += elements)
    prefetch(memref, at, createIndex(b, lane));
}

/// Of as many vectors as there are lanes, the sum of each.
Value Decode::sumLanes(SmallVector<Value> vectors) {
  // What moves between the parts of a vector that are 16 bytes comes last, when
  // there are few.
  for (int64_t unit = 1, step = 0; vectors.size() > 1; ++step) {
    int64_t parts = std::min<int64_t>(lanes / unit, 4);
    SmallVector<int64_t> low, high;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      int64_t part = lane / unit % parts;
      bool isLast = parts == 2;
      int64_t vector = isLast || step % 2 == 0 ? part % 2 : part / 2;
      int64_t from = isLast ? 0 : step % 2 == 0 ? part / 2 : part % 2;
      int64_t source = vector * lanes + lane - part * unit + from * unit;
      low.push_back(source);
      high.push_back(source + parts / 2 * unit);
    }
    if (step % 2 == 1)
      unit *= 4;
    SmallVector<Value> next;
    for (size_t i = 0; i < vectors.size(); i += 2) {
      Value x = vectors[i], y = vectors[i + 1];
      next.push_back(
          arith::AddFOp::create(b, vector::ShuffleOp::create(b, x, y, low),
                                vector::ShuffleOp::create(b, x, y, high)));
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

void Decode::forEachBlock(function_ref<void(Value block)> body) {
  createLoop(b, createIndex(b, 0), createIndex(b, code.tiles.getHeadBlocks()),
             1, body);
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

void Decode::emitScores(Value firstKey, Value count, bool isWhole,
                        Value block) {
  Value zero = createIndex(b, 0), last = addIndex(b, count, -1);
  SmallVector<Value> start(lanes, createSplat(b, type, 0));
  int64_t step = hasLines ? kLineBytes / getElementBytes(op.getKey()) : lanes;
  // Split vectors come in pairs.
  int64_t vectors = std::max<int64_t>(step / lanes, 1);
  if (arePacked || !areSplit(code, op.getKey(), code.dim))
    vectors = 1;
  else
    vectors = 2;
  step = std::max(step, vectors * lanes);
  createLoop(b, zero, count, keys, [&](Value row) {
    SmallVector<Value> rows;
    SmallVector<SmallVector<Value>> places;
    for (int64_t i = 0; i < keys; ++i) {
      // Keys beyond the last are the last.
      Value mine = addIndex(b, row, i);
      rows.push_back(isWhole ? mine : minIndex(b, mine, last));
      places.push_back(getRow(firstKey, rows[i], block, /*isNext=*/false));
    }
    auto multiply = [&](Value first, ValueRange sums) {
      SmallVector<Value> next(sums);
      for (int64_t j = 0; j < step; j += vectors * lanes) {
        Value d = addIndex(b, first, j);
        SmallVector<SmallVector<Value>> loaded;
        for (int64_t i = 0; i < keys; ++i) {
          loaded.push_back(arePacked
                               ? SmallVector<Value>{loadVector(
                                     b, type, code.keys, {rows[i], d})}
                               : load(op.getKey(), places[i], d, vectors));
        }
        // Each vector of a query serves all keys, and then no more.
        for (int64_t part = 0; part < vectors; ++part)
          for (int64_t h = 0; h < heads; ++h) {
            Value query = loadVector(
                b, type, code.rows,
                {getRowOfHead(block, h), addIndex(b, d, part * lanes)});
            for (int64_t i = 0; i < keys; ++i) {
              Value &sum = next[i * heads + h];
              sum = math::FmaOp::create(b, loaded[i][part], query, sum);
            }
          }
      }
      return next;
    };
    // What is asked for at a time is spread over the dims.
    constexpr int64_t mostLines = 16;
    int64_t numLines =
        2 * keys * code.dim * getElementBytes(op.getKey()) / kLineBytes;
    int64_t segments =
        hasLines ? std::max<int64_t>(numLines / mostLines, 1) : 1;
    segments = std::gcd(std::gcd(code.dim / step, segments), 2 * keys);
    SmallVector<Value> products = start;
    for (int64_t i = 0; i < segments; ++i) {
      for (int64_t j = 0; hasLines && j < 2 * keys / segments; ++j) {
        int64_t number = i * 2 * keys / segments + j;
        prefetchBeside(firstKey, rows[number / 2], block, number % 2 == 1);
      }
      int64_t size = code.dim / segments;
      products = createRolledLoop(b, createIndex(b, i * size),
                                  createIndex(b, (i + 1) * size), step,
                                  products, multiply);
    }
    storeVector(b, sumLanes(products), code.decodeScores,
                mulIndex(b, row, heads));
  });
}

Value Decode::emitWeights(Value count, bool isWhole, Value block) {
  Value zero = createIndex(b, 0);
  SmallVector<Value> atMaximum{mulIndex(b, block, 2), zero};
  SmallVector<Value> atTotal{addIndex(b, mulIndex(b, block, 2), 1), zero};
  Value before = loadVector(b, type, code.decodeState, atMaximum);
  int64_t numVectors = code.tiles.keys / keys;
  SmallVector<Value> scores;
  Value maximum = before;
  VectorType integers = type.clone(b.getI32Type());
  Value minusInfinity =
      createSplat(b, type, -std::numeric_limits<double>::infinity());
  for (int64_t i = 0; i < numVectors; ++i) {
    Value score =
        loadVector(b, type, code.decodeScores, createIndex(b, i * lanes));
    if (!isWhole) {
      SmallVector<int32_t> numbers;
      for (int64_t lane = 0; lane < lanes; ++lane)
        numbers.push_back(i * keys + lane / heads);
      Value keyOfLane = arith::ConstantOp::create(
          b, DenseElementsAttr::get(integers, ArrayRef(numbers)));
      Value end = broadcast(
          b, integers, arith::IndexCastOp::create(b, b.getI32Type(), count));
      Value isKey =
          arith::CmpIOp::create(b, arith::CmpIPredicate::slt, keyOfLane, end);
      score = arith::SelectOp::create(b, isKey, score, minusInfinity);
    }
    maximum = createMax(b, score, maximum);
    scores.push_back(score);
  }
  maximum =
      acrossKeys(maximum, [&](Value x, Value y) { return createMax(b, x, y); });
  storeVector(b, maximum, code.decodeState, atMaximum);
  Value sum;
  for (auto [i, score] : llvm::enumerate(scores)) {
    Value weight = emitExp2(b, arith::SubFOp::create(b, score, maximum));
    storeVector(b, weight, code.decodeScores, createIndex(b, i * lanes));
    sum = sum ? Value(arith::AddFOp::create(b, sum, weight)) : weight;
  }
  Value factor = emitExp2(b, arith::SubFOp::create(b, before, maximum));
  Value total = loadVector(b, type, code.decodeState, atTotal);
  storeVector(b, math::FmaOp::create(b, total, factor, sum), code.decodeState,
              atTotal);
  return factor;
}

void Decode::emitValues(Value firstKey, Value count, bool isWhole, Value block,
                        Value factor) {
  Value zero = createIndex(b, 0);
  // As many sums as scores, of at least two vectors.
  int64_t few = std::min(heads, lanes / 2);
  int64_t vectors = lanes / few;
  while (code.valueDim / lanes % vectors != 0)
    --vectors;
  int64_t columns = vectors * lanes;
  SmallVector<Value> factors;
  for (int64_t h = 0; h < heads; ++h)
    factors.push_back(ofHead(factor, h));
  SmallVector<Value> start(vectors * few, createSplat(b, type, 0));
  // Beside the arithmetic on a row of a pass over columns, as much of the next
  // tile is asked for: all in all that tile, in order.
  int64_t elements = kLineBytes / getElementBytes(op.getValue());
  int64_t numColumns = code.valueDim / columns;
  int64_t size = isWhole ? std::gcd(code.tiles.keys, numColumns) : 1;
  // Where rows are in pages is computed once for all columns, if they are few.
  int64_t step = op.getBlockTable() ? std::gcd(size, 16) : 1;
  for (int64_t firstHead = 0; firstHead < heads; firstHead += few) {
    bool isAsking = isWhole && hasLines && firstHead == 0;
    createLoop(b, zero, createIndex(b, numColumns), 1, [&](Value column) {
      Value d = mulIndex(b, column, columns);
      auto emitRow = [&](Value row, ValueRange before) {
        SmallVector<Value> next(before);
        SmallVector<Value> values =
            load(op.getValue(), getRow(firstKey, row, block, /*isNext=*/false),
                 d, vectors);
        for (int64_t h = 0; h < few; ++h) {
          Value weight = broadcast(
              b, type,
              memref::LoadOp::create(
                  b, code.decodeScores,
                  addIndex(b, mulIndex(b, row, heads), firstHead + h)));
          for (auto [v, value] : llvm::enumerate(values)) {
            Value &sum = next[v * few + h];
            sum = math::FmaOp::create(b, weight, value, sum);
          }
        }
        return next;
      };
      auto emitRows = [&](Value first, ValueRange before) {
        Value pass = code.tiles.keyHeads > 1
                         ? addIndex(b, mulIndex(b, block, numColumns), column)
                         : column;
        Value number = addIndex(b, mulIndex(b, pass, code.tiles.keys), first);
        SmallVector<Value> ahead = getNextRow(firstKey, number, numColumns);
        Value lane = mulIndex(b, number, columns);
        Value end = addIndex(b, first, size);
        return llvm::to_vector(createRolledLoop(
            b, first, end, step, before, [&](Value row, ValueRange s) {
              SmallVector<Value> next(s);
              for (int64_t i = 0; i < step; ++i) {
                Value mine = addIndex(b, row, i);
                if (isAsking) {
                  Value at = addIndex(
                      b, lane, mulIndex(b, subIndex(b, mine, first), columns));
                  for (int64_t j = 0; j < columns; j += elements) {
                    prefetch(op.getKey(), ahead, addIndex(b, at, j));
                    prefetch(op.getValue(), ahead, addIndex(b, at, j));
                  }
                }
                next = emitRow(mine, next);
              }
              return next;
            }));
      };
      SmallVector<Value> sums;
      if (isWhole)
        sums = createLoop(b, zero, count, size, start, emitRows);
      else
        sums = createRolledLoop(b, zero, count, 1, start, emitRow);
      for (int64_t v = 0; v < vectors; ++v)
        for (int64_t h = 0; h < few; ++h) {
          SmallVector<Value> at{getRowOfHead(block, firstHead + h),
                                addIndex(b, d, v * lanes)};
          Value before = loadVector(b, type, code.decodeSums, at);
          storeVector(b,
                      math::FmaOp::create(b, before, factors[firstHead + h],
                                          sums[v * few + h]),
                      code.decodeSums, at);
        }
    });
  }
}

void Decode::emitTile(Value firstKey, Value count, bool isWhole) {
  forEachBlock([&](Value block) {
    emitScores(firstKey, count, isWhole, block);
    Value factor = emitWeights(count, isWhole, block);
    emitValues(firstKey, count, isWhole, block, factor);
  });
}

//===----------------------------------------------------------------------===//
// Beginning and end
//===----------------------------------------------------------------------===//

void Decode::emitQueries(const AttentionRows &rows) {
  Value scale = createSplat(b, type, op.getScoreScale() * llvm::numbers::log2e);
  bool split = !arePacked && areSplit(code, op.getKey(), code.dim);
  int64_t vectors = split ? 2 : 1;
  SmallVector<int64_t> even, odd;
  for (int64_t i = 0; i < lanes; ++i) {
    even.push_back(2 * i);
    odd.push_back(2 * i + 1);
  }
  Value zero = createIndex(b, 0), dim = createIndex(b, code.dim);
  rows.preparePosition(b, task.batch, task.firstToken, task.firstPlace, zero);
  createLoop(b, zero, createIndex(b, code.tiles.heads), 1, [&](Value head) {
    SmallVector<Value> at =
        getRowIndices(task.batch, addIndex(b, task.queryHead, head),
                      task.firstToken, op.getQueryHeadDim());
    Value size = createIndex(b, headsPerBlock);
    Value block = b.createOrFold<arith::DivUIOp>(head, size);
    Value row = addIndex(b, mulIndex(b, block, heads),
                         b.createOrFold<arith::RemUIOp>(head, size));
    rows.emitRow(b, op.getQuery(), at, code.dim, code.rows, row, zero);
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
  });
  // Lanes that are no head.
  SmallVector<int64_t> none;
  for (int64_t row = 0, e = code.tiles.getHeadBlocks() * heads; row < e; ++row)
    if (row % heads >= headsPerBlock ||
        row / heads * headsPerBlock + row % heads >= code.tiles.heads)
      none.push_back(row);
  createLoop(b, zero, dim, none.empty() ? code.dim : lanes, [&](Value d) {
    for (int64_t row : none)
      storeVector(b, createSplat(b, type, 0), code.rows,
                  {createIndex(b, row), d});
  });
}

void Decode::start(Value isFirst) {
  Value zero = createIndex(b, 0), none = createSplat(b, type, 0);
  Value sinks = op.getSinks();
  forEachBlock([&](Value block) {
    Value maximum = createSplat(b, type, -FLT_MAX), total = none;
    if (sinks) {
      // All lanes have the maximum of their head, but only those of the first
      // key have its part of the sum, and only in the first part of the keys.
      SmallVector<Value> logits;
      for (int64_t i = 0; i < lanes; ++i) {
        Value head = getHead(block, std::min(i % heads, headsPerBlock - 1));
        head = minIndex(b, head, createIndex(b, code.tiles.heads - 1));
        logits.push_back(memref::LoadOp::create(
            b, sinks, ValueRange{addIndex(b, task.queryHead, head)}));
      }
      ElementwiseBuilder e(b, b.getLoc(), maximum);
      Value logit = e.mul(vector::FromElementsOp::create(b, type, logits),
                          e.f32(llvm::numbers::log2e));
      maximum = createMax(b, logit, maximum);
      SmallVector<float> isFirstKey;
      for (int64_t i = 0; i < lanes; ++i)
        isFirstKey.push_back(i < heads ? 1 : 0);
      total = e.mul(emitExp2(b, e.sub(logit, maximum)),
                    arith::ConstantOp::create(
                        b, DenseElementsAttr::get(type, ArrayRef(isFirstKey))));
      if (isFirst)
        total = arith::SelectOp::create(b, isFirst, total, none);
    }
    Value row = mulIndex(b, block, 2);
    storeVector(b, maximum, code.decodeState, {row, zero});
    storeVector(b, total, code.decodeState, {addIndex(b, row, 1), zero});
    for (int64_t h = 0; h < heads; ++h)
      createLoop(b, zero, createIndex(b, code.valueDim), lanes, [&](Value d) {
        storeVector(b, none, code.decodeSums, {getRowOfHead(block, h), d});
      });
  });
}

void Decode::finish() {
  int64_t wholeBlocks = code.tiles.heads / headsPerBlock;
  createLoop(b, createIndex(b, 0), createIndex(b, wholeBlocks), 1,
             [&](Value block) { finishBlock(block, headsPerBlock); });
  if (int64_t rest = code.tiles.heads % headsPerBlock)
    finishBlock(createIndex(b, wholeBlocks), rest);
}

void Decode::finishBlock(Value block, int64_t numHeads) {
  Value zero = createIndex(b, 0);
  Value output = op.getInits().front();
  VectorType narrow = type.clone(getElementTypeOrSelf(output.getType()));
  // As emitValues has loaded them.
  int64_t vectors = lanes / std::min(heads, lanes / 2);
  while (code.valueDim / lanes % vectors != 0)
    --vectors;
  bool split = areSplit(code, op.getValue(), vectors * lanes);
  // What the lanes of two vectors are, in order.
  SmallVector<int64_t> low, high;
  for (int64_t i = 0; i < lanes / 2; ++i) {
    llvm::append_values(low, i, lanes + i);
    llvm::append_values(high, lanes / 2 + i, lanes + lanes / 2 + i);
  }
  bool isMerged = code.mostParts > 1;
  Value state = isMerged ? code.mergedState : code.decodeState;
  Value sums = isMerged ? code.mergedSums : code.decodeSums;
  Value row = mulIndex(b, block, 2);
  Value maximum = loadVector(b, type, state, {row, zero});
  Value total =
      acrossKeys(loadVector(b, type, state, {addIndex(b, row, 1), zero}),
                 [&](Value x, Value y) -> Value {
                   return arith::AddFOp::create(b, x, y);
                 });
  AttentionResult result = emitResult(b, maximum, total);
  for (int64_t head = 0; head < numHeads; ++head) {
    SmallVector<Value> at = getRowIndices(
        task.batch, addIndex(b, task.queryHead, getHead(block, head)),
        task.firstToken, op.getQueryHeadDim());
    if (Value logSum = op.getLogSumInit())
      memref::StoreOp::create(
          b, vector::ExtractOp::create(b, result.logSum, head), logSum, at);
    Value factor = ofHead(result.factor, head);
    int64_t step = split ? 2 * lanes : lanes;
    createLoop(b, zero, createIndex(b, code.valueDim), step, [&](Value d) {
      SmallVector<Value> parts;
      for (int64_t i = 0; i < step; i += lanes)
        parts.push_back(loadVector(
            b, type, sums, {getRowOfHead(block, head), addIndex(b, d, i)}));
      if (split)
        parts = {vector::ShuffleOp::create(b, parts[0], parts[1], low),
                 vector::ShuffleOp::create(b, parts[0], parts[1], high)};
      for (auto [i, part] : llvm::enumerate(parts)) {
        Value value = arith::MulFOp::create(b, part, factor);
        if (narrow != type)
          value = arith::TruncFOp::create(b, narrow, value);
        SmallVector<Value> place(at);
        place.push_back(addIndex(b, d, i * lanes));
        storeVector(b, value, output, place);
      }
    });
  }
}

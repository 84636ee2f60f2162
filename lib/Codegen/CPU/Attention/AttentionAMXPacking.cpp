//===- AttentionAMXPacking.cpp - tiles of queries, keys and values --------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionAMXSteps.h"
#include "AttentionBF16Dots.h"

#include "posenc/Numerics/BF16Weights.h"
#include "posenc/Numerics/Softmax.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::posenc;

void mlir::posenc::allocateAMXSteps(AttentionCode &code,
                                    ImplicitLocOpBuilder &builder,
                                    AttentionScratch &scratch) {
  const AttentionTiles &tiles = code.tiles;
  auto allocate = [&](ArrayRef<int64_t> shape) {
    return scratch.allocate(builder, code.op, shape);
  };
  auto allocateTiles = [&](ArrayRef<int64_t> shape) {
    SmallVector<int64_t> all(shape);
    llvm::append_values(all, kTileRows, kTileRows);
    return allocate(all);
  };
  int64_t queryTiles = code.getNumQueryTiles();
  int64_t channels = getRowParts(code.op), columns = getNumParts(code.valueDim);
  int64_t steps = tiles.keys / kStepKeys;
  int64_t rows = tiles.getQueryTile(), halves = rows / kTileRows;
  TileStepBuffers &buffers = code.steps;
  buffers.acc = allocateTiles({queryTiles, columns, halves, 2});
  buffers.queries = allocateTiles({queryTiles, channels, halves});
  buffers.keys = allocateTiles({steps, channels, 2});
  buffers.values =
      allocateTiles({steps / tiles.blockSteps, columns, tiles.blockSteps, 2});
  for (Value &weights : buffers.weights)
    weights = allocateTiles({tiles.blockSteps, halves});
  for (Value &scores : buffers.scores)
    scores = allocateTiles({halves, 2});
  int64_t numSums = code.hasExactSums() ? 2 : 1;
  buffers.sums = allocate({queryTiles, rows, numSums, tiles.lanes});
  buffers.sumsBefore = allocate({rows, numSums, tiles.lanes});
  buffers.largest = allocate({rows, tiles.lanes});
  buffers.offsets = allocate({queryTiles, rows});
  buffers.factors = allocate({rows});
  AttentionOp op = code.op;
  if (tiles.maxSplits > 1) {
    buffers.mergedAcc = allocateTiles({queryTiles, columns, halves, 2});
    buffers.mergedState = allocate({queryTiles, kTileStateVectors, rows});
    code.partials = scratch.allocate(builder, op, getSharedBytes(op) / 4,
                                     /*isShared=*/true);
  }
  if (op.getLogSumInit())
    buffers.logSums = allocate({rows});
  // The relative positions of the pairs of a step.
  if (int64_t count = getRelativeValues(op).size())
    code.relativeValues = allocate({count, 2 * kStepKeys});
  code.keys = allocate({kTileRows, getRowSize(channels * kTileRows)});
  code.rows = allocate({1, getRowSize(code.dim)});
}

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

/// Stores words of bf16 from `lane` on of a row of queries.
static void storeQueryWords(OpBuilder &b, Location loc,
                            const AttentionCode &code, Value queryTile,
                            Value row, Value lane, Value narrow) {
  ImplicitLocOpBuilder builder(loc, b);
  auto type = cast<VectorType>(narrow.getType());
  Value words = vector::BitCastOp::create(
      builder,
      VectorType::get({type.getNumElements() / 2}, builder.getF32Type()),
      narrow);
  Value part = createIndex(builder, kStepKeys),
        size = createIndex(builder, kTileRows);
  Value word = builder.createOrFold<arith::DivUIOp>(
      builder.createOrFold<arith::RemUIOp>(lane, part),
      createIndex(builder, 2));
  storeVector(builder, words, code.steps.queries,
              {queryTile, builder.createOrFold<arith::DivUIOp>(lane, part),
               builder.createOrFold<arith::DivUIOp>(row, size),
               builder.createOrFold<arith::RemUIOp>(row, size), word});
}

/// Copies a row of queries, in bf16.
static void emitQueryRow(ImplicitLocOpBuilder &builder,
                         const AttentionCode &code, const AttentionRows &rows,
                         ValueRange at, Value queryTile, Value row,
                         Value slot) {
  AttentionOp op = code.op;
  Value zero = createIndex(builder, 0);
  if (!rows.isPlain())
    rows.emitRow(builder, op.getQuery(), at, code.dim, code.rows, zero, slot);
  forEachVector(
      builder, builder.getLoc(), code.dim, 2 * code.tiles.lanes,
      [&](OpBuilder &b, Location loc, Value lane, int64_t length) {
        auto type = VectorType::get({length}, b.getBF16Type());
        auto wideType = type.clone(b.getF32Type());
        auto store = [&](Value narrow, int64_t part) {
          Value offset = arith::ConstantIndexOp::create(
              b, loc, part * kStepKeys * getNumParts(code.dim));
          storeQueryWords(b, loc, code, queryTile, row,
                          b.createOrFold<arith::AddIOp>(loc, lane, offset),
                          narrow);
        };
        bool isSplit = keepsRemainders(op);
        Value narrow, wide;
        if (rows.isPlain()) {
          SmallVector<Value> from(at);
          from.push_back(lane);
          narrow = vector::LoadOp::create(b, loc, type, op.getQuery(), from);
          if (isSplit)
            wide = arith::ExtFOp::create(b, loc, wideType, narrow);
        } else {
          wide = vector::LoadOp::create(b, loc, wideType, code.rows,
                                        ValueRange{zero, lane});
        }
        if (!isSplit) {
          if (!narrow)
            narrow = arith::TruncFOp::create(b, loc, type, wide);
          return store(narrow, 0);
        }
        SplitRow split = splitRow(b, loc, wide);
        store(split.rounded, 0);
        store(split.remainder, 1);
        store(split.finite, 2);
      });
}

/// Stores `value` to all vectors of a buffer's part at the indices `at`.
static void fill(ImplicitLocOpBuilder &builder, Value memory, ValueRange at,
                 Value value) {
  auto type = cast<MemRefType>(memory.getType());
  int64_t dim = at.size();
  auto lanes = cast<VectorType>(value.getType()).getNumElements();
  bool isLast = dim + 1 == type.getRank();
  createLoop(builder, createIndex(builder, 0),
             createIndex(builder, type.getDimSize(dim)), isLast ? lanes : 1,
             [&](Value index) {
               SmallVector<Value> inner(at);
               inner.push_back(index);
               if (isLast)
                 storeVector(builder, value, memory, inner);
               else
                 fill(builder, memory, inner, value);
             });
}

AttentionBlock mlir::posenc::emitStackedBlock(ImplicitLocOpBuilder &builder,
                                              const AttentionCode &code,
                                              const AttentionTask &task,
                                              Value number, Value &count) {
  int64_t heads = code.tiles.heads, rows = code.tiles.getQueryTile();
  Value first = mulIndex(builder, number, rows);
  count = minIndex(
      builder, createIndex(builder, rows),
      subIndex(builder, mulIndex(builder, task.numTokens, heads), first));
  Value token = divIndex(builder, first, heads);
  Value last = divIndex(
      builder, addIndex(builder, first, addIndex(builder, count, -1)), heads);
  AttentionBlock block;
  block.batch = task.batch;
  block.queryStart = task.queryStart;
  block.queryHead = task.queryHead;
  block.queryTile = number;
  block.firstHead = rows % heads == 0 ? createIndex(builder, 0)
                                      : remIndex(builder, first, heads);
  block.token = addIndex(builder, task.firstToken, token);
  block.position = addIndex(builder, task.firstPosition, token);
  block.lastToken = addIndex(builder, task.firstToken, last);
  block.lastPosition = addIndex(builder, task.firstPosition, last);
  return block;
}

/// Initializes the state of a query tile, and its queries with zeros.
static void emitNoQueries(ImplicitLocOpBuilder &builder,
                          const AttentionCode &code, Value queryTile) {
  Value none = createSplat(builder, code.getVectorType(), 0);
  fill(builder, code.steps.queries, queryTile, none);
  fill(builder, code.steps.acc, queryTile, none);
  fill(builder, code.steps.sums, queryTile, none);
  fill(builder, code.steps.offsets, queryTile,
       createSplat(builder, code.getVectorType(), getNoOffset()));
}

/// Copies the queries of a task with stacked heads.
static void emitStackedQueries(ImplicitLocOpBuilder &builder,
                               const AttentionCode &code,
                               const AttentionRows &rows,
                               const AttentionTask &task) {
  Value zero = createIndex(builder, 0);
  int64_t heads = code.tiles.heads, size = code.tiles.getQueryTile();
  createLoop(builder, zero, task.numQueryTiles, 1,
             [&](Value queryTile) { emitNoQueries(builder, code, queryTile); });
  createLoop(builder, zero, task.numTokens, 1, [&](Value number) {
    Value token = addIndex(builder, task.firstToken, number);
    rows.prepareQuery(builder, task, token,
                      addIndex(builder, task.firstPosition, number), number);
    createLoop(builder, zero, createIndex(builder, heads), 1, [&](Value head) {
      Value row = addIndex(builder, mulIndex(builder, number, heads), head);
      emitQueryRow(
          builder, code, rows,
          getQueryIndices(builder, code.op, task.batch, task.queryStart,
                          addIndex(builder, task.queryHead, head), token),
          divIndex(builder, row, size), remIndex(builder, row, size), number);
    });
  });
}

void mlir::posenc::emitQueryTiles(ImplicitLocOpBuilder &builder,
                                  const AttentionCode &code,
                                  const AttentionRows &rows,
                                  const AttentionTask &task) {
  AttentionOp op = code.op;
  const AttentionTiles &tiles = code.tiles;
  if (tiles.areHeadsStacked())
    return emitStackedQueries(builder, code, rows, task);
  Value zero = createIndex(builder, 0);
  Value heads = createIndex(builder, tiles.heads);
  Value slots = createIndex(builder, tiles.lanes);
  createLoop(builder, zero, task.numQueryTiles, 1, [&](Value number) {
    Value first = mulIndex(builder, number, kStepKeys);
    Value count = minIndex(builder, createIndex(builder, kStepKeys),
                           subIndex(builder, task.numTokens, first));
    auto getQueryTile = [&](Value head) {
      return addIndex(builder,
                      mulIndex(builder, head, tiles.getQueryTilesPerHead()),
                      number);
    };
    createLoop(builder, zero, heads, 1, [&](Value head) {
      emitNoQueries(builder, code, getQueryTile(head));
    });
    createLoop(builder, zero, count, 1, [&](Value row) {
      Value slot = builder.createOrFold<arith::RemUIOp>(row, slots);
      Value inTask = addIndex(builder, first, row);
      Value token = addIndex(builder, task.firstToken, inTask);
      rows.prepareQuery(builder, task, token,
                        addIndex(builder, task.firstPosition, inTask), slot);
      createLoop(builder, zero, heads, 1, [&](Value head) {
        emitQueryRow(builder, code, rows,
                     getQueryIndices(builder, op, task.batch, task.queryStart,
                                     addIndex(builder, task.queryHead, head),
                                     token),
                     getQueryTile(head), row, slot);
      });
    });
  });
}

//===----------------------------------------------------------------------===//
// Keys and values
//===----------------------------------------------------------------------===//

/// Copies keys to tiles: squares of 16 keys by 16 words are transposed.
static void emitKeyWords(ImplicitLocOpBuilder &builder,
                         const AttentionCode &code, const AttentionRows &rows,
                         const AttentionTask &task, Value first, Value count) {
  VectorType type = code.getVectorType();
  Value zero = createIndex(builder, 0), size = createIndex(builder, kTileRows);
  Value steps = builder.createOrFold<arith::CeilDivUIOp>(
      count, createIndex(builder, kStepKeys));
  Value end = mulIndex(builder, steps, kStepKeys);
  createLoop(builder, zero, end, kTileRows, [&](Value key) {
    Value some = maxIndex(
        builder, zero, minIndex(builder, size, subIndex(builder, count, key)));
    emitKeyRows(builder, code, rows, task, addIndex(builder, first, key), some);
    emitZeros(builder, code, code.keys, some, size);
    Value step = builder.createOrFold<arith::DivUIOp>(
        key, createIndex(builder, kStepKeys));
    Value half = builder.createOrFold<arith::RemUIOp>(
        builder.createOrFold<arith::DivUIOp>(key, size),
        createIndex(builder, 2));
    createLoop(builder, zero, createIndex(builder, getRowParts(code.op)), 1,
               [&](Value part) {
                 SmallVector<Value> words;
                 Value word = mulIndex(builder, part, kTileRows);
                 for (int64_t i = 0; i < kTileRows; ++i)
                   words.push_back(loadVector(builder, type, code.keys,
                                              {createIndex(builder, i), word}));
                 words = transpose(builder, words);
                 for (int64_t i = 0; i < kTileRows; ++i)
                   storeVector(
                       builder, words[i], code.steps.keys,
                       {step, part, half, createIndex(builder, i), zero});
               });
  });
}

static constexpr uint16_t kExponentBits = 0x7f80;

/// The columns of values that are packed at once: those of one vector.
static constexpr int64_t kPackedColumns = 2 * kTileRows;

namespace {
/// Bits of `kPackedColumns` bf16 values.
struct ValueBits {
  /// 0 where the value is infinite or NaN.
  Value bits;
  /// The exponent fields of the values.
  Value exponents;
};
} // namespace

/// Loads `length` values, followed by zeros; all are 0 unless `exists` (i1
/// lanes).
static ValueBits loadValueBits(ImplicitLocOpBuilder &builder,
                               const AttentionCode &code, ValueRange at,
                               Value column, Value exists, int64_t length) {
  AttentionOp op = code.op;
  SmallVector<Value> from(at);
  from.push_back(column);
  Value narrow = vector::LoadOp::create(
      builder, VectorType::get({length}, builder.getBF16Type()), op.getValue(),
      from);
  Value bits = vector::BitCastOp::create(
      builder, VectorType::get({length}, builder.getI16Type()), narrow);
  if (length < kPackedColumns) {
    SmallVector<int64_t> lanes(kPackedColumns, length);
    for (int64_t i = 0; i < length; ++i)
      lanes[i] = i;
    Value none = arith::ConstantOp::create(
        builder, builder.getZeroAttr(cast<VectorType>(bits.getType())));
    bits = vector::ShuffleOp::create(builder, bits, none, lanes);
  }
  ElementwiseBuilder b(builder, builder.getLoc(), bits);
  bits = b.select(exists, bits, b.i16(0));
  Value exponents = b.andi(bits, b.i16(kExponentBits));
  Value isFinite =
      b.compare(arith::CmpIPredicate::ne, exponents, b.i16(kExponentBits));
  return {b.select(isFinite, bits, b.i16(0)), exponents};
}

/// Copies values to tiles: a word is a column of two keys. Returns whether a
/// value is infinite or NaN.
static Value emitValueWords(ImplicitLocOpBuilder &builder,
                            const AttentionCode &code,
                            const AttentionTask &task, Value first,
                            Value count) {
  AttentionOp op = code.op;
  int64_t blockSteps = code.tiles.blockSteps;
  Value zero = createIndex(builder, 0);
  auto halves = VectorType::get({kPackedColumns}, builder.getI16Type());
  Value none = arith::ConstantOp::create(builder, builder.getZeroAttr(halves));
  Value last = addIndex(builder, count, -1);
  Value blockKeys = createIndex(builder, blockSteps * kStepKeys);
  Value end = builder.createOrFold<arith::MulIOp>(
      builder.createOrFold<arith::CeilDivUIOp>(count, blockKeys), blockKeys);
  auto emitPair = [&](Value key, Value before) {
    SmallVector<SmallVector<Value>> at;
    SmallVector<Value> exist;
    for (Value one : {key, addIndex(builder, key, 1)}) {
      Value isKey =
          arith::CmpIOp::create(builder, arith::CmpIPredicate::slt, one, count);
      exist.push_back(vector::BroadcastOp::create(
          builder, halves.clone(builder.getI1Type()), isKey));
      at.push_back(getKeyIndices(
          builder, op, task,
          addIndex(builder, first, minIndex(builder, one, last))));
    }
    Value step = divIndex(builder, key, kStepKeys);
    Value row = divIndex(builder, remIndex(builder, key, kStepKeys), 2);
    // Packs `length` columns of a part of `kStepKeys`.
    auto emitPart = [&](Value part, Value carried, int64_t length) {
      Value column = mulIndex(builder, part, kStepKeys);
      ValueBits even =
          loadValueBits(builder, code, at[0], column, exist[0], length);
      ValueBits odd =
          loadValueBits(builder, code, at[1], column, exist[1], length);
      for (int64_t half = 0; half < length / kTileRows; ++half) {
        SmallVector<int64_t> lanes;
        for (int64_t i = half * kTileRows; i < (half + 1) * kTileRows; ++i)
          llvm::append_values(lanes, i, kPackedColumns + i);
        Value pairs =
            vector::ShuffleOp::create(builder, even.bits, odd.bits, lanes);
        storeVector(
            builder,
            vector::BitCastOp::create(builder, code.getVectorType(), pairs),
            code.steps.values,
            {divIndex(builder, step, blockSteps), part,
             remIndex(builder, step, blockSteps), createIndex(builder, half),
             row, zero});
      }
      ElementwiseBuilder b(builder, builder.getLoc(), none);
      return b.binary<arith::MaxUIOp>(
          carried, b.binary<arith::MaxUIOp>(even.exponents, odd.exponents));
    };
    int64_t wholeParts = code.valueDim / kStepKeys;
    Value exponents =
        createLoop(builder, zero, createIndex(builder, wholeParts), 1, before,
                   [&](Value part, ValueRange carried) -> SmallVector<Value> {
                     return {emitPart(part, carried[0], kPackedColumns)};
                   })[0];
    if (int64_t rest = code.valueDim % kStepKeys)
      exponents = emitPart(createIndex(builder, wholeParts), exponents, rest);
    return exponents;
  };
  Value exponents =
      createLoop(builder, zero, end, 2, none,
                 [&](Value key, ValueRange carried) -> SmallVector<Value> {
                   return {emitPair(key, carried[0])};
                 })[0];
  Value largest = vector::ReductionOp::create(
      builder, vector::CombiningKind::MAXUI, exponents);
  return arith::CmpIOp::create(
      builder, arith::CmpIPredicate::eq, largest,
      arith::ConstantIntOp::create(builder, kExponentBits, 16));
}

Value mlir::posenc::emitKeyTiles(ImplicitLocOpBuilder &builder,
                                 const AttentionCode &code,
                                 const AttentionRows &rows,
                                 const AttentionTask &task, Value first,
                                 Value count) {
  emitKeyWords(builder, code, rows, task, first, count);
  return emitValueWords(builder, code, task, first, count);
}

void mlir::posenc::emitUnsafeValues(ImplicitLocOpBuilder &builder,
                                    const AttentionCode &code,
                                    const AttentionTask &task, Value queryTile,
                                    Value weights, Value first, Value count) {
  AttentionOp op = code.op;
  VectorType type = code.getVectorType();
  Location loc = builder.getLoc();
  Value zero = createIndex(builder, 0);
  // Returns a value's part and whether it is infinite or NaN.
  auto load = [&](ValueRange at, Value column) {
    Value value =
        loadF32(builder, loc, op.getValue(), at, column, code.tiles.lanes);
    ElementwiseBuilder b(builder, loc, value);
    Value none = b.sub(value, value);
    return std::pair(
        value, Value(arith::CmpFOp::create(builder, arith::CmpFPredicate::UNE,
                                           none, b.f32(0))));
  };
  auto addRow = [&](Value key, ValueRange at, Value row) {
    Value word = memref::LoadOp::create(
        builder, weights,
        ValueRange{divIndex(builder, key, kStepKeys),
                   divIndex(builder, row, kTileRows),
                   remIndex(builder, row, kTileRows),
                   divIndex(builder, remIndex(builder, key, kStepKeys), 2)});
    ElementwiseBuilder b(builder, loc, word);
    Value bits = b.cast<arith::BitcastOp>(builder.getI32Type(), word);
    Value isOdd = arith::CmpIOp::create(builder, arith::CmpIPredicate::ne,
                                        remIndex(builder, key, 2), zero);
    bits = b.select(isOdd, b.andi(bits, b.i32(0xffff0000)),
                    b.shl(bits, b.i32(16)));
    Value weight = b.cast<arith::BitcastOp>(builder.getF32Type(), bits);
    auto branch = scf::IfOp::create(
        builder,
        arith::CmpFOp::create(builder, arith::CmpFPredicate::UNE, weight,
                              b.f32(0)),
        /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    Value all = broadcast(builder, type, weight);
    createLoop(builder, zero, createIndex(builder, code.valueDim), kTileRows,
               [&](Value column) {
                 auto [value, isUnsafe] = load(at, column);
                 SmallVector<Value> to{
                     queryTile,
                     divIndex(builder, column, kStepKeys),
                     divIndex(builder, row, kTileRows),
                     divIndex(builder, remIndex(builder, column, kStepKeys),
                              kTileRows),
                     remIndex(builder, row, kTileRows),
                     zero};
                 Value acc = loadVector(builder, type, code.steps.acc, to);
                 ElementwiseBuilder math(builder, loc, acc);
                 Value sum = math.fma(all, value, acc);
                 storeVector(builder, math.select(isUnsafe, sum, acc),
                             code.steps.acc, to);
               });
  };
  createLoop(builder, zero, count, 1, [&](Value key) {
    SmallVector<Value> at =
        getKeyIndices(builder, op, task, addIndex(builder, first, key));
    createLoop(builder, zero, createIndex(builder, code.tiles.getQueryTile()),
               1, [&](Value row) { addRow(key, at, row); });
  });
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

Value mlir::posenc::emitRowSums(ImplicitLocOpBuilder &builder,
                                const AttentionCode &code, Value queryTile,
                                Value firstRow, int64_t number) {
  SmallVector<Value> sums;
  for (int64_t i = 0; i < kTileRows; ++i)
    sums.push_back(
        loadVector(builder, code.getVectorType(), code.steps.sums,
                   {queryTile, addIndex(builder, firstRow, i),
                    createIndex(builder, number), createIndex(builder, 0)}));
  sums = transpose(builder, sums);
  for (size_t count = sums.size(); count > 1; count /= 2)
    for (size_t i = 0; i < count / 2; ++i)
      sums[i] = arith::AddFOp::create(builder, sums[i], sums[i + count / 2]);
  return sums.front();
}

void mlir::posenc::emitTileResults(ImplicitLocOpBuilder &builder,
                                   const AttentionCode &code,
                                   const AttentionBlock &block, Value count) {
  AttentionOp op = code.op;
  VectorType type = code.getVectorType();
  Value zero = createIndex(builder, 0);
  auto loadSinks = [&](Value firstRow) -> Value {
    auto load = [&](Value head) -> Value {
      return memref::LoadOp::create(builder, op.getSinks(), ValueRange{head});
    };
    if (!code.tiles.areHeadsStacked())
      return broadcast(builder, type, load(block.queryHead));
    SmallVector<Value> sinks;
    for (int64_t i = 0; i < kTileRows; ++i)
      sinks.push_back(
          load(getRowQuery(builder, code, block, addIndex(builder, firstRow, i))
                   .head));
    return vector::FromElementsOp::create(builder, type, sinks);
  };
  for (int64_t half = 0; half < code.tiles.getQueryTile(); half += kTileRows) {
    Value firstRow = createIndex(builder, half);
    Value sink;
    if (op.getSinks())
      sink = loadSinks(firstRow);
    Base2Softmax b(builder, builder.getLoc(), type);
    // Accumulators are sums of products with rounded weights.
    auto loadMerged = [&](int64_t number) {
      return loadVector(
          builder, type, code.steps.mergedState,
          {block.queryTile, createIndex(builder, number), firstRow});
    };
    bool isMerged = code.tiles.maxSplits > 1;
    Value rounded = isMerged ? loadMerged(1)
                             : emitRowSums(builder, code, block.queryTile,
                                           firstRow, /*number=*/0);
    Value factor = emitQuotient(b, b.number(1), rounded);
    if (code.hasExactSums()) {
      SoftmaxState state;
      if (isMerged)
        state = {loadMerged(0), loadMerged(2)};
      else
        state =
            getWeightState(b,
                           loadVector(builder, type, code.steps.offsets,
                                      {block.queryTile, firstRow}),
                           emitRowSums(builder, code, block.queryTile, firstRow,
                                       /*number=*/1));
      if (sink) {
        SinkMerge merge = emitSinkMerge(b, state, sink);
        factor = b.mul(factor, merge.share);
        state = merge.state;
      }
      if (code.steps.logSums)
        storeVector(builder, emitLogSum(b, state, sink), code.steps.logSums,
                    firstRow);
    }
    storeVector(builder, factor, code.steps.factors, firstRow);
  }
  Value output = op.getInits().front();
  Type element = getElementTypeOrSelf(output.getType());
  Value size = createIndex(builder, kTileRows);
  Value acc = code.tiles.maxSplits > 1 ? code.steps.mergedAcc : code.steps.acc;
  createLoop(builder, zero, count, 1, [&](Value row) {
    RowQuery query = getRowQuery(builder, code, block, row);
    SmallVector<Value> at = getQueryIndices(
        builder, op, block.batch, block.queryStart, query.head, query.token);
    if (Value logSum = op.getLogSumInit())
      memref::StoreOp::create(
          builder, memref::LoadOp::create(builder, code.steps.logSums, row),
          logSum, at);
    Value factor =
        broadcast(builder, type,
                  memref::LoadOp::create(builder, code.steps.factors, row));
    for (int64_t column = 0; column < code.valueDim; column += kTileRows) {
      SmallVector<Value> from{
          block.queryTile,
          createIndex(builder, column / kStepKeys),
          builder.createOrFold<arith::DivUIOp>(row, size),
          createIndex(builder, column % kStepKeys / kTileRows),
          builder.createOrFold<arith::RemUIOp>(row, size),
          zero};
      Value value = arith::MulFOp::create(
          builder, loadVector(builder, type, acc, from), factor);
      if (type.getElementType() != element)
        value = arith::TruncFOp::create(builder, type.clone(element), value);
      SmallVector<Value> to(at);
      to.push_back(createIndex(builder, column));
      storeVector(builder, value, output, to);
    }
  });
}

//===- AttentionRows.cpp - norm and rotation of attention rows ------------===//
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
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::posenc;

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

AttentionRows::AttentionRows(ImplicitLocOpBuilder &builder,
                             const AttentionCode &code, bool isKey,
                             int64_t numSlots)
    : op(code.op), target(code.target),
      positions(isKey ? op.getKeyPositions() : op.getQueryPositions()),
      norm(isKey ? op.getKeyNorm() : op.getQueryNorm()),
      headDim(isKey ? op.getKeyHeadDim() : op.getQueryHeadDim()) {
  if (isKey ? op.normsAllKeyHeads() : op.normsAllQueryHeads())
    normedHeads =
        cast<ShapedType>((isKey ? op.getKey() : op.getQuery()).getType())
            .getDimSize(headDim);
  std::optional<RotationAttr> attribute =
      isKey ? op.getKeyRotation() : op.getQueryRotation();
  if (!attribute)
    return;
  rotation.emplace(builder, op, attribute->getPairing(),
                   attribute->getFrequencies().getDim(), attribute->getOffset(),
                   builder.getF32Type(), numSlots, target);
  Angles angles{attribute->getFrequencies(), attribute->getAxes(),
                op.getTurns(), /*inverse=*/false,
                positions && areFloats(positions)};
  table.emplace(builder, op, angles, builder.getF32Type(), TableUse::Rotation,
                rotation->getOrder());
}

void AttentionRows::preparePosition(ImplicitLocOpBuilder &builder, Value batch,
                                    Value token, Value position,
                                    Value slot) const {
  if (!rotation)
    return;
  Location loc = builder.getLoc();
  SmallVector<Value> at{token};
  if (batch)
    at.insert(at.begin(), batch);
  PositionTable::Position loaded =
      positions ? table->loadPosition(builder, loc, positions, at)
                : table->loadPosition(builder, loc, position,
                                      Value(createIndex(builder, 0)));
  RowRotation one = rotation->at(slot);
  table->forEachElement(builder, loc, loaded, table->getAll(builder, loc),
                        2 * one.getLanes(),
                        [&](OpBuilder &b, Location l, Value first,
                            const PositionTable::CosSin &cosSin) {
                          one.store(b, l, first, cosSin.cos, cosSin.sin);
                        });
}

void AttentionRows::prepareQuery(ImplicitLocOpBuilder &builder,
                                 const AttentionTask &task, Value token,
                                 Value position, Value slot) const {
  if (task.queryStart)
    token = addIndex(builder, task.queryStart, token);
  preparePosition(builder, task.queryStart ? Value() : task.batch, token,
                  position, slot);
}

Value mlir::posenc::loadF32(OpBuilder &builder, Location loc, Value memref,
                            ValueRange row, Value lane, int64_t length) {
  SmallVector<Value> at(row);
  at.push_back(lane);
  auto type = VectorType::get({length}, getElementTypeOrSelf(memref.getType()));
  Value value = vector::LoadOp::create(builder, loc, type, memref, at);
  VectorType f32 = type.clone(builder.getF32Type());
  if (type.getElementType().isInteger())
    return arith::SIToFPOp::create(builder, loc, f32, value);
  return type == f32 ? value : arith::ExtFOp::create(builder, loc, f32, value);
}

/// Copies a row to f32, multiplied by `scale` unless that is null. The copy is
/// unrolled: LLVM would turn a loop into a call of memcpy.
static void copyRow(OpBuilder &builder, Location loc, Value from,
                    ValueRange row, Value to, Value toRow, int64_t dim,
                    int64_t lanes, Value scale) {
  // Emits several loads before their stores, so that none waits for another.
  constexpr size_t max = 8;
  SmallVector<std::pair<int64_t, int64_t>> parts = splitIntoVectors(dim, lanes);
  for (ArrayRef rest(parts); !rest.empty();) {
    ArrayRef some = rest.take_front(max);
    rest = rest.drop_front(some.size());
    SmallVector<Value> at, values;
    for (auto [first, length] : some) {
      at.push_back(arith::ConstantIndexOp::create(builder, loc, first));
      Value value = loadF32(builder, loc, from, row, at.back(), length);
      if (scale)
        value = arith::MulFOp::create(
            builder, loc, value,
            vector::BroadcastOp::create(builder, loc, value.getType(), scale));
      values.push_back(value);
    }
    for (auto [value, lane] : llvm::zip_equal(values, at))
      vector::StoreOp::create(builder, loc, value, to, ValueRange{toRow, lane});
  }
}

/// Adds the squares of a row's channels to the partial sums.
Value AttentionRows::emitSquareSum(ImplicitLocOpBuilder &builder, Value tensor,
                                   ValueRange row, int64_t dim,
                                   Value sums) const {
  Location loc = builder.getLoc();
  for (int64_t first = 0; first < dim; first += kSumLanes) {
    int64_t length = std::min(kSumLanes, dim - first);
    Value x =
        loadF32(builder, loc, tensor, row, createIndex(builder, first), length);
    if (length < kSumLanes)
      x = vector::InsertStridedSliceOp::create(
          builder, x, createSplat(builder, cast<VectorType>(sums.getType()), 0),
          ArrayRef<int64_t>{0}, ArrayRef<int64_t>{1});
    sums = math::FmaOp::create(builder, x, x, sums);
  }
  return sums;
}

/// Emits 1 / sqrt(mean(x^2) + eps) of a row, or of all heads of its token.
Value AttentionRows::emitNormFactor(ImplicitLocOpBuilder &builder, Value tensor,
                                    ValueRange at, int64_t dim) const {
  auto type = VectorType::get({kSumLanes}, builder.getF32Type());
  Value sums = createSplat(builder, type, 0);
  if (normedHeads == 1)
    sums = emitSquareSum(builder, tensor, at, dim, sums);
  else
    sums = createRolledLoop(
        builder, createIndex(builder, 0), createIndex(builder, normedHeads), 1,
        sums, [&](Value head, ValueRange carried) -> SmallVector<Value> {
          SmallVector<Value> row(at);
          row[headDim] = head;
          return {emitSquareSum(builder, tensor, row, dim, carried[0])};
        })[0];
  for (int64_t half = kSumLanes / 2; half > 0; half /= 2) {
    auto take = [&](int64_t first) -> Value {
      return vector::ExtractStridedSliceOp::create(
          builder, sums, ArrayRef<int64_t>{first}, ArrayRef<int64_t>{half},
          ArrayRef<int64_t>{1});
    };
    sums = arith::AddFOp::create(builder, take(0), take(half));
  }
  Value sum = vector::ExtractOp::create(builder, sums, ArrayRef<int64_t>{0});
  ElementwiseBuilder b(builder, builder.getLoc(), sum);
  Value mean = b.mul(sum, b.f32(1.0 / double(normedHeads * dim)));
  double epsilon = AttentionOp(op).getNormEps()->convertToDouble();
  Value root = math::SqrtOp::create(builder, b.add(mean, b.f32(epsilon)));
  return b.binary<arith::DivFOp>(b.f32(1), root);
}

/// Normalizes a row that was copied from `tensor` to f32.
void AttentionRows::emitNorm(ImplicitLocOpBuilder &builder, Value tensor,
                             ValueRange at, int64_t dim, Value to,
                             Value row) const {
  Location loc = builder.getLoc();
  bool isOwn = normedHeads == 1;
  Value factor = emitNormFactor(builder, isOwn ? to : tensor,
                                isOwn ? ValueRange(row) : at, dim);
  Value firstWeight = isOwn ? Value() : mulIndex(builder, at[headDim], dim);
  double offset = AttentionOp(op).getNormWeightOffset();
  forEachVector(
      builder, loc, dim, target.vectorBytes / 4,
      [&](OpBuilder &nested, Location l, Value lane, int64_t length) {
        Value x = loadF32(nested, l, to, row, lane, length);
        Value at =
            firstWeight
                ? nested.createOrFold<arith::AddIOp>(l, firstWeight, lane)
                : lane;
        Value weights = loadF32(nested, l, norm, {}, at, length);
        ElementwiseBuilder b(nested, l, x);
        if (offset != 0)
          weights = b.add(weights, b.f32(offset));
        Value all = vector::BroadcastOp::create(nested, l, x.getType(), factor);
        vector::StoreOp::create(nested, l, b.mul(b.mul(x, all), weights), to,
                                ValueRange{row, lane});
      });
}

void AttentionRows::emitRow(ImplicitLocOpBuilder &builder, Value tensor,
                            ValueRange at, int64_t dim, Value to, Value row,
                            Value slot, Value scale) const {
  Location loc = builder.getLoc();
  copyRow(builder, loc, tensor, at, to, row, dim, target.vectorBytes / 4,
          scale);
  if (norm)
    emitNorm(builder, tensor, at, dim, to, row);
  if (rotation)
    rotation->at(slot).rotateRow(builder, loc, to, to, row, Access::Cached);
}

/// Copies a row that is neither normed nor rotated. The last vector is padded
/// with zeros.
static void emitPlainRow(ImplicitLocOpBuilder &builder,
                         const AttentionCode &code, Value tensor, ValueRange at,
                         int64_t dim, Value to, Value row, Value scale) {
  if (int64_t rest = dim % code.tiles.lanes)
    storeVector(builder, createSplat(builder, code.getVectorType(), 0), to,
                {row, createIndex(builder, dim - rest)});
  copyRow(builder, builder.getLoc(), tensor, at, to, row, dim, code.tiles.lanes,
          scale);
}

void mlir::posenc::emitZeros(ImplicitLocOpBuilder &builder,
                             const AttentionCode &code, Value to, Value from,
                             Value end) {
  Value zero = createSplat(builder, code.getVectorType(), 0);
  int64_t size = cast<MemRefType>(to.getType()).getShape().back();
  createLoop(builder, from, end, 1, [&](Value row) {
    createLoop(builder, createIndex(builder, 0), createIndex(builder, size),
               code.tiles.lanes, [&](Value lane) {
                 storeVector(builder, zero, to, {row, lane});
               });
  });
}

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

/// Transposes rows to the lanes of a register tile if `toPanel`, else back: for
/// each of `lanes`, as many rows as a vector has lanes. `body` maps each
/// vector.
static void
transposeQueries(ImplicitLocOpBuilder &builder, const AttentionCode &code,
                 int64_t dim, Value panel, Value queryTile, ValueRange lanes,
                 bool toPanel,
                 function_ref<Value(Value value, size_t number)> body) {
  VectorType type = code.getVectorType();
  int64_t size = code.tiles.lanes;
  int64_t pair = toPanel ? code.getDotWidth() : 1;
  createLoop(
      builder, createIndex(builder, 0), createIndex(builder, dim), size,
      [&](Value d) {
        Value first =
            builder.createOrFold<arith::DivUIOp>(d, createIndex(builder, pair));
        for (auto [number, lane] : llvm::enumerate(lanes)) {
          SmallVector<SmallVector<Value>> rows, dims;
          for (int64_t j = 0; j < size; ++j)
            rows.push_back({addIndex(builder, lane, j), d});
          for (int64_t j = 0; j < size / pair; ++j)
            dims.push_back({queryTile, addIndex(builder, first, j), lane});
          Value from = toPanel ? code.rows : panel;
          Value to = toPanel ? panel : code.rows;
          SmallVector<Value> vectors;
          for (ArrayRef<Value> at : toPanel ? rows : dims) {
            Value value = loadVector(builder, type, from, at);
            vectors.push_back(toPanel ? value : body(value, number));
          }
          vectors = transpose(builder, vectors);
          if (toPanel)
            for (Value &vector : vectors)
              vector = body(vector, number);
          if (pair == 2)
            vectors = packPairs(builder, vectors);
          for (auto [vector, at] :
               llvm::zip_equal(vectors, toPanel ? dims : rows))
            storeVector(builder, vector, to, at);
        }
      });
}

void mlir::posenc::emitQueries(ImplicitLocOpBuilder &builder,
                               const AttentionCode &code,
                               const AttentionRows &rows,
                               const AttentionTask &task) {
  AttentionOp op = code.op;
  const AttentionTiles &tiles = code.tiles;
  Value zero = createIndex(builder, 0);
  Value queryTile = createIndex(builder, tiles.getQueryTile());
  // Rows of bf16 are not rounded again if scores are scaled instead.
  double scale = code.exactSum ? 1 : code.getExponentScale();
  Value factor = createSplat(builder, code.getVectorType(), scale);
  createLoop(builder, zero, task.numQueryTiles, 1, [&](Value number) {
    Value first = mulIndex(builder, number, tiles.getQueryTile());
    Value count =
        minIndex(builder, queryTile, subIndex(builder, task.numTokens, first));
    Value token = addIndex(builder, task.firstToken, first);
    Value position = addIndex(builder, task.firstPosition, first);
    emitZeros(builder, code, code.rows, count, queryTile);
    // One vector after the other, so that there are tables for its lanes only.
    createLoop(builder, zero, queryTile, tiles.lanes, [&](Value lane) {
      Value end =
          minIndex(builder, count, addIndex(builder, lane, tiles.lanes));
      createLoop(builder, lane, end, 1, [&](Value row) {
        rows.prepareQuery(builder, task, addIndex(builder, token, row),
                          addIndex(builder, position, row),
                          subIndex(builder, row, lane));
      });
      createLoop(
          builder, zero, createIndex(builder, tiles.heads), 1, [&](Value head) {
            createLoop(builder, lane, end, 1, [&](Value row) {
              SmallVector<Value> at =
                  getQueryIndices(builder, op, task.batch, task.queryStart,
                                  addIndex(builder, task.queryHead, head),
                                  addIndex(builder, token, row));
              rows.emitRow(builder, op.getQuery(), at, code.dim, code.rows, row,
                           subIndex(builder, row, lane));
            });
            Value panel = addIndex(
                builder, mulIndex(builder, head, tiles.getQueryTilesPerHead()),
                number);
            transposeQueries(
                builder, code, code.dim, code.queries, panel, lane,
                /*toPanel=*/true, [&](Value value, size_t) -> Value {
                  return arith::MulFOp::create(builder, value, factor);
                });
          });
    });
  });
}

void mlir::posenc::emitResults(ImplicitLocOpBuilder &builder,
                               const AttentionCode &code,
                               const AttentionBlock &block, Value count) {
  AttentionOp op = code.op;
  VectorType type = code.getVectorType();
  Location loc = builder.getLoc();
  SmallVector<Value> factors;
  for (int64_t i = 0; i < code.tiles.vectors; ++i) {
    SmallVector<Value> at{block.queryTile,
                          createIndex(builder, i * code.tiles.lanes)};
    Value total = loadVector(builder, type, code.rowSum, at);
    Value maximum = loadVector(builder, type, code.rowMax, at);
    Value sinks;
    if (op.getSinks() && (op.getLogSumInit() || code.exactSum))
      sinks = broadcast(builder, type,
                        memref::LoadOp::create(builder, op.getSinks(),
                                               ValueRange{block.queryHead}));
    Base2Softmax softmax(builder, loc, type);
    factors.push_back(emitQuotient(softmax, softmax.number(1), total));
    if (code.exactSum) {
      Value exact = loadVector(builder, type, code.exactSum, at);
      SinkMerge merge = emitSinkMerge(softmax, {maximum, exact}, sinks);
      factors.back() = softmax.mul(factors.back(), merge.share);
    }
    if (op.getLogSumInit())
      storeVector(builder, emitLogSum(softmax, {maximum, total}, sinks),
                  code.rowMax, at);
  }
  SmallVector<Value> lanes;
  for (int64_t i = 0; i < code.tiles.vectors; ++i)
    lanes.push_back(createIndex(builder, i * code.tiles.lanes));
  transposeQueries(
      builder, code, code.valueDim, code.acc, block.queryTile, lanes,
      /*toPanel=*/false, [&](Value value, size_t number) -> Value {
        return arith::MulFOp::create(builder, value, factors[number]);
      });
  Value output = op.getInits().front();
  Type element = getElementTypeOrSelf(output.getType());
  createLoop(builder, createIndex(builder, 0), count, 1, [&](Value row) {
    SmallVector<Value> at =
        getQueryIndices(builder, op, block.batch, block.queryStart,
                        block.queryHead, addIndex(builder, block.token, row));
    if (Value logSum = op.getLogSumInit())
      memref::StoreOp::create(
          builder,
          memref::LoadOp::create(builder, code.rowMax,
                                 ValueRange{block.queryTile, row}),
          logSum, at);
    forEachVector(builder, loc, code.valueDim, code.tiles.lanes,
                  [&](OpBuilder &b, Location l, Value lane, int64_t length) {
                    Value value = loadF32(b, l, code.rows, row, lane, length);
                    auto narrow =
                        cast<VectorType>(value.getType()).clone(element);
                    if (narrow != value.getType())
                      value = arith::TruncFOp::create(b, l, narrow, value);
                    SmallVector<Value> position(at);
                    position.push_back(lane);
                    vector::StoreOp::create(b, l, value, output, position);
                  });
  });
}

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

void mlir::posenc::emitKeyRows(ImplicitLocOpBuilder &builder,
                               const AttentionCode &code,
                               const AttentionRows &rows,
                               const AttentionTask &task, Value first,
                               Value count) {
  AttentionOp op = code.op;
  Value zero = createIndex(builder, 0);
  createLoop(builder, zero, count, 1, [&](Value row) {
    Value key = addIndex(builder, first, row);
    SmallVector<Value> at = getKeyIndices(builder, op, task, key);
    if (task.keyStart)
      rows.preparePosition(builder, /*batch=*/nullptr,
                           addIndex(builder, task.keyStart, key), key, zero);
    else
      rows.preparePosition(builder, task.batch, key, key, zero);
    if (code.hasBF16Dots)
      return emitKeyPairs(builder, code, rows, at, row);
    rows.emitRow(builder, op.getKey(), at, code.dim, code.keys, row, zero,
                 loadScale(builder, op, op.getKeyScales(), at));
  });
}

void mlir::posenc::emitKeys(ImplicitLocOpBuilder &builder,
                            const AttentionCode &code,
                            const AttentionRows &rows,
                            const AttentionTask &task, Value first,
                            Value count) {
  AttentionOp op = code.op;
  Value zero = createIndex(builder, 0);
  emitKeyRows(builder, code, rows, task, first, count);
  if (code.hasBF16Dots)
    emitValuePairs(builder, code, task, first, count);
  if (!code.hasBF16Dots)
    createLoop(builder, zero, count, 1, [&](Value row) {
      SmallVector<Value> at =
          getKeyIndices(builder, op, task, addIndex(builder, first, row));
      emitPlainRow(builder, code, op.getValue(), at, code.valueDim, code.values,
                   row, loadScale(builder, op, op.getValueScales(), at));
    });
  // Scores are computed for multiples of `scoreRows` rows.
  int64_t step = code.tiles.scoreRows;
  Value rounded = builder.createOrFold<arith::CeilDivUIOp>(
      count, createIndex(builder, step));
  emitZeros(builder, code, code.keys, count, mulIndex(builder, rounded, step));
}

/// Prefetches part number `part` of a key and of its value, which are divided
/// into `numParts` parts.
static void prefetchKeyPart(ImplicitLocOpBuilder &builder,
                            const AttentionCode &code,
                            const AttentionTask &task, Value key, Value part,
                            int64_t numParts) {
  AttentionOp op = code.op;
  SmallVector<Value> at = getKeyIndices(builder, op, task, key);
  for (auto [tensor, dim] : {std::pair(op.getKey(), code.dim),
                             std::pair(op.getValue(), code.valueDim)}) {
    int64_t step =
        kLineBytes * 8 /
        getElementTypeOrSelf(tensor.getType()).getIntOrFloatBitWidth();
    // Whole lines; a row may have fewer lines than parts.
    int64_t lines = llvm::divideCeil(dim, step);
    int64_t size = llvm::divideCeil(lines, numParts) * step;
    Value start =
        builder.createOrFold<arith::MulIOp>(part, createIndex(builder, size));
    for (int64_t lane = 0; lane < std::min(size, dim); lane += step) {
      SmallVector<Value> element(at);
      // Parts after the end of the row prefetch its last line again.
      element.push_back(minIndex(builder, createIndex(builder, dim - 1),
                                 addIndex(builder, start, lane)));
      memref::PrefetchOp::create(builder, tensor, element, /*isWrite=*/false,
                                 /*localityHint=*/2, /*isDataCache=*/true);
    }
  }
}

void mlir::posenc::prefetchKey(ImplicitLocOpBuilder &builder,
                               const AttentionCode &code,
                               const AttentionTask &task, Value key) {
  prefetchKeyPart(builder, code, task, key, createIndex(builder, 0),
                  /*numParts=*/1);
}

void mlir::posenc::prefetchKeys(ImplicitLocOpBuilder &builder,
                                const AttentionCode &code,
                                const AttentionTask &task, Value queryTile,
                                Value columns, Value first, Value end) {
  // Each register tile of queries has several of columns. All of them prefetch
  // as many keys, or as large a part of one key.
  int64_t columnTiles = 1;
  Value number = queryTile;
  if (columns) {
    columnTiles =
        std::max<int64_t>(code.getNumColumns() / code.tiles.valueColumns, 1);
    number =
        addIndex(builder, mulIndex(builder, queryTile, columnTiles), columns);
  }
  int64_t steps = code.getNumQueryTiles() * columnTiles;
  int64_t numParts = 1;
  if (columns)
    numParts = std::max<int64_t>(
        llvm::bit_floor(uint64_t(steps / code.tiles.keys)), 1);
  int64_t count = llvm::divideCeil(code.tiles.keys * numParts, steps);
  Value parts = createIndex(builder, numParts);
  for (int64_t i = 0; i < count; ++i) {
    Value part = addIndex(builder, mulIndex(builder, number, count), i);
    Value key = addIndex(builder, first,
                         builder.createOrFold<arith::DivUIOp>(part, parts));
    OpBuilder::InsertionGuard guard(builder);
    if (!columns) {
      // The block table has pages for existing keys only.
      prefetchKeyPart(builder, code, task,
                      minIndex(builder, addIndex(builder, end, -1), key),
                      createIndex(builder, 0), numParts);
      continue;
    }
    // The last register tiles may have nothing to prefetch.
    Value limit =
        minIndex(builder, end, addIndex(builder, first, code.tiles.keys));
    auto isNext = scf::IfOp::create(
        builder,
        arith::CmpIOp::create(builder, arith::CmpIPredicate::slt, key, limit),
        /*withElseRegion=*/false);
    builder.setInsertionPointToStart(isNext.thenBlock());
    prefetchKeyPart(builder, code, task, key,
                    builder.createOrFold<arith::RemUIOp>(part, parts),
                    numParts);
  }
}

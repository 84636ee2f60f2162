//===- AttentionScores.cpp - products with keys and values ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionBF16Dots.h"
#include "AttentionCode.h"

#include "posenc/Numerics/Softmax.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::posenc;

/// Returns rows [row, row + numRows) and columns [column, column + numColumns)
/// of a buffer, whose dimensions before those are at `outer`.
static Value createPanel(ImplicitLocOpBuilder &builder, Value memory,
                         ArrayRef<Value> outer, OpFoldResult row,
                         OpFoldResult numRows, OpFoldResult column,
                         OpFoldResult numColumns) {
  OpFoldResult one = builder.getIndexAttr(1);
  SmallVector<OpFoldResult> offsets(outer), sizes(outer.size(), one);
  offsets.append({row, column});
  sizes.append({numRows, numColumns});
  SmallVector<OpFoldResult> strides(sizes.size(), one);
  SmallVector<int64_t> shape;
  for (OpFoldResult size : {numRows, numColumns})
    shape.push_back(getConstantIntValue(size).value_or(ShapedType::kDynamic));
  auto type = cast<MemRefType>(memref::SubViewOp::inferRankReducedResultType(
      shape, cast<MemRefType>(memory.getType()), offsets, sizes, strides));
  return memref::SubViewOp::create(builder, type, memory, offsets, sizes,
                                   strides);
}

/// Returns the product of two panels, a register tile of `numRows` rows, as
/// vectors: those of the first row, then those of the next one.
static SmallVector<Value> emitProduct(ImplicitLocOpBuilder &builder,
                                      const AttentionCode &code, Value a,
                                      Value b, int64_t numRows, bool transposed,
                                      bool skipsZeros) {
  const AttentionTiles &tiles = code.tiles;
  auto type = VectorType::get({numRows, tiles.vectors, tiles.lanes},
                              builder.getF32Type());
  Value product =
      TileProductOp::create(builder, a, b, createSplat(builder, type, 0),
                            code.hasBF16Dots ? ProductElements::BF16Pairs
                                             : ProductElements::Floats,
                            transposed, skipsZeros)
          .getResult();
  SmallVector<Value> vectors;
  for (int64_t row = 0; row < numRows; ++row)
    for (int64_t i = 0; i < tiles.vectors; ++i)
      vectors.push_back(vector::ExtractOp::create(builder, product,
                                                  ArrayRef<int64_t>{row, i}));
  return vectors;
}

SmallVector<Value> mlir::posenc::emitScores(ImplicitLocOpBuilder &builder,
                                            const AttentionCode &code,
                                            const AttentionBlock &block,
                                            bool isPartial, bool appliesWhere) {
  const AttentionTiles &tiles = code.tiles;
  VectorType type = code.getVectorType();
  Base2Softmax softmax(builder, builder.getLoc(), type);
  SmallVector<Value> rowMax;
  for (int64_t i = 0; i < tiles.vectors; ++i)
    rowMax.push_back(
        loadVector(builder, type, code.rowMax,
                   {block.queryTile, createIndex(builder, i * tiles.lanes)}));
  auto emitRows = [&](Value row, ValueRange before) {
    SmallVector<Value> rows, scores;
    for (int64_t i = 0; i < tiles.scoreRows; ++i)
      rows.push_back(addIndex(builder, row, i));
    OpFoldResult first = builder.getIndexAttr(0),
                 depth = builder.getIndexAttr(code.dim / code.getDotWidth());
    Value keys =
        createPanel(builder, code.keys, {}, row,
                    builder.getIndexAttr(tiles.scoreRows), first, depth);
    Value queries =
        createPanel(builder, code.queries, block.queryTile, first, depth, first,
                    builder.getIndexAttr(tiles.getQueryTile()));
    scores = emitProduct(builder, code, keys, queries, tiles.scoreRows,
                         /*transposed=*/false, /*skipsZeros=*/false);
    if (code.exactSum)
      for (Value &score : scores)
        score = softmax.mul(score, softmax.number(code.getExponentScale()));
    emitMasks(builder, code, block, row, isPartial, appliesWhere, scores);
    SmallVector<Value> largest(before);
    for (auto [number, score] : llvm::enumerate(scores)) {
      int64_t vector = number % tiles.vectors;
      storeVector(builder, score, code.scores,
                  {rows[number / tiles.vectors],
                   createIndex(builder, vector * tiles.lanes)});
      largest[vector] = softmax.max(score, largest[vector]);
    }
    return largest;
  };
  return createLoop(builder, block.firstRow, block.endRow, tiles.scoreRows,
                    rowMax, emitRows);
}

Value mlir::posenc::emitIsUnsafe(ImplicitLocOpBuilder &builder,
                                 const AttentionCode &code, Value count) {
  // Adds 0 * value, which is NaN for an infinity or NaN. Several sums, so that
  // none waits for another.
  constexpr int64_t max = 8;
  VectorType type = code.getVectorType();
  Value none = createSplat(builder, type, 0);
  int64_t lanes = code.tiles.lanes;
  int64_t vectors = (code.valueDim + lanes - 1) / lanes;
  SmallVector<Value> sums(std::min(vectors, max), none);
  Value end = builder.createOrFold<arith::CeilDivUIOp>(
      count, createIndex(builder, code.getDotWidth()));
  sums = createLoop(
      builder, createIndex(builder, 0), end, 1, sums,
      [&](Value row, ValueRange before) {
        SmallVector<Value> next(before);
        for (int64_t i = 0; i < vectors; ++i) {
          Value x = loadVector(builder, type, code.values,
                               {row, createIndex(builder, i * lanes)});
          Value &sum = next[i % next.size()];
          sum = code.hasBF16Dots
                    ? addUnsafePairs(builder, x, sum)
                    : Value(math::FmaOp::create(builder, x, none, sum));
        }
        return next;
      });
  Value all = sums.front();
  for (Value sum : ArrayRef(sums).drop_front())
    all = arith::AddFOp::create(builder, all, sum);
  Value sum =
      vector::ReductionOp::create(builder, vector::CombiningKind::ADD, all);
  return arith::CmpFOp::create(builder, arith::CmpFPredicate::UNO, sum, sum);
}

/// Adds the weighted values of `numColumns` columns from `d` on.
static void emitColumns(ImplicitLocOpBuilder &builder,
                        const AttentionCode &code, const AttentionBlock &block,
                        ValueRange factors, bool onlyVisible, Value d,
                        int64_t numColumns) {
  const AttentionTiles &tiles = code.tiles;
  VectorType type = code.getVectorType();
  SmallVector<Value> columns;
  for (int64_t i = 0; i < numColumns; ++i)
    columns.push_back(addIndex(builder, d, i));
  Value pair = createIndex(builder, code.getDotWidth());
  Value from = builder.createOrFold<arith::DivUIOp>(block.firstRow, pair);
  Value end = builder.createOrFold<arith::CeilDivUIOp>(block.endRow, pair);
  Value count = subIndex(builder, end, from);
  Value values = createPanel(builder, code.values, {}, from, count, d,
                             builder.getIndexAttr(numColumns));
  Value weights = createPanel(builder, code.scores, {}, from, count,
                              builder.getIndexAttr(0),
                              builder.getIndexAttr(tiles.getQueryTile()));
  // Each tile's sum starts at 0, so the rounding error grows with the number of
  // tiles, not of keys.
  SmallVector<Value> sums =
      emitProduct(builder, code, values, weights, numColumns,
                  /*transposed=*/true, /*skipsZeros=*/onlyVisible);
  for (auto [number, sum] : llvm::enumerate(sums)) {
    int64_t vector = number % tiles.vectors;
    SmallVector<Value> at{block.queryTile, columns[number / tiles.vectors],
                          createIndex(builder, vector * tiles.lanes)};
    Value before = loadVector(builder, type, code.acc, at);
    storeVector(builder,
                math::FmaOp::create(builder, before, factors[vector], sum),
                code.acc, at);
  }
}

/// Adds the weighted values of all columns. If `onlyVisible`, values whose
/// weight is 0 are left out, as they may be NaN.
static void emitValues(ImplicitLocOpBuilder &builder, const AttentionCode &code,
                       const AttentionBlock &block, ValueRange factors,
                       bool onlyVisible, function_ref<void(Value)> prefetch) {
  // Each step takes the columns that fill the registers; the remainder is taken
  // four at a time.
  constexpr int64_t fewer = 4;
  int64_t max = onlyVisible ? 1 : code.tiles.valueColumns;
  int64_t all = onlyVisible ? code.valueDim : code.getNumColumns(), few = 0;
  while ((all - few * fewer) % max != 0)
    ++few;
  Value end = createIndex(builder, all - few * fewer);
  createLoop(builder, createIndex(builder, 0), end, max, [&](Value d) {
    if (!onlyVisible)
      prefetch(
          builder.createOrFold<arith::DivUIOp>(d, createIndex(builder, max)));
    emitColumns(builder, code, block, factors, onlyVisible, d, max);
  });
  if (few > 0)
    createLoop(builder, end, createIndex(builder, all), fewer, [&](Value d) {
      emitColumns(builder, code, block, factors, onlyVisible, d, fewer);
    });
}

void mlir::posenc::emitValues(ImplicitLocOpBuilder &builder,
                              const AttentionCode &code,
                              const AttentionBlock &block, ValueRange factors,
                              function_ref<void(Value)> prefetch) {
  if (!block.isUnsafe)
    return ::emitValues(builder, code, block, factors, /*onlyVisible=*/false,
                        prefetch);
  // A masked key has the weight 0, but 0 times infinity or NaN is NaN.
  auto isUnsafe =
      scf::IfOp::create(builder, block.isUnsafe, /*withElseRegion=*/true);
  for (bool onlyVisible : {true, false}) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(onlyVisible ? isUnsafe.thenBlock()
                                                 : isUnsafe.elseBlock());
    ::emitValues(builder, code, block, factors, onlyVisible, prefetch);
  }
}

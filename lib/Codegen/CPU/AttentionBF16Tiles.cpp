//===- AttentionBF16Tiles.cpp - bf16 attention with AMX -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionBF16Tiles.h"

#include "posenc/Numerics/ElementwiseBuilder.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::posenc;

bool mlir::posenc::usesBF16Tiles(AttentionOp op, const VectorTarget &target) {
  int64_t valueDim =
      cast<ShapedType>(op.getValue().getType()).getShape().back();
  return target.hasBF16Tiles && usesBF16Dots(op, target) &&
         valueDim % kTileRows == 0;
}

void mlir::posenc::emitTileScores(ImplicitLocOpBuilder &builder,
                                  const AttentionCode &code,
                                  const AttentionBlock &block) {
  Value zero = createIndex(builder, 0);
  createLoop(builder, block.firstRow, block.endRow, code.tiles.getRowStep(),
             [&](Value row) {
               emitTileProducts(builder, {code.keys, {}, row, zero},
                                {code.queries, {block.queryTile}, zero, zero},
                                {code.scores, {}, row, zero},
                                {code.tiles.getRowStep(),
                                 code.tiles.getQueryTile(), code.getNumWords()},
                                /*accumulates=*/false);
             });
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// Returns the pairs of `keys` keys, rounded up to a multiple of
/// `tiles.getRowStep()`.
static Value roundPairs(ImplicitLocOpBuilder &builder,
                        const AttentionCode &code, Value keys) {
  Value steps = builder.createOrFold<arith::CeilDivUIOp>(
      keys, createIndex(builder, code.tiles.getRowStep()));
  return mulIndex(builder, steps, code.tiles.getRowStep() / code.getDotWidth());
}

/// Fills the rows of words after those of `keys` keys with 0, up to a multiple
/// of `tiles.getRowStep()`.
static void emitZeroPairs(ImplicitLocOpBuilder &builder,
                          const AttentionCode &code, Value memory, Value keys) {
  Value from = builder.createOrFold<arith::CeilDivUIOp>(
      keys, createIndex(builder, code.getDotWidth()));
  emitZeros(builder, code, memory, from, roundPairs(builder, code, keys));
}

void mlir::posenc::emitValueTiles(ImplicitLocOpBuilder &builder,
                                  const AttentionCode &code, Value count) {
  emitZeroPairs(builder, code, code.values, count);
  VectorType type = code.getVectorType();
  Value zero = createIndex(builder, 0);
  auto transposeTile = [&](Value pair, Value column) {
    SmallVector<Value> words;
    for (int64_t i = 0; i < kTileRows; ++i)
      words.push_back(loadVector(builder, type, code.values,
                                 {addIndex(builder, pair, i), column}));
    words = transpose(builder, words);
    for (int64_t i = 0; i < kTileRows; ++i)
      storeVector(builder, words[i], code.valueTiles,
                  {addIndex(builder, column, i), pair});
  };
  createLoop(builder, zero, roundPairs(builder, code, count), kTileRows,
             [&](Value pair) {
               createLoop(builder, zero, createIndex(builder, code.valueDim),
                          kTileRows,
                          [&](Value column) { transposeTile(pair, column); });
             });
}

/// Adds the weighted values of `numColumns` columns from `column` on.
static void emitWeighted(ImplicitLocOpBuilder &builder,
                         const AttentionCode &code, const AttentionBlock &block,
                         Value column, int64_t numColumns) {
  const AttentionTiles &tiles = code.tiles;
  Value zero = createIndex(builder, 0);
  Value pair = builder.createOrFold<arith::DivUIOp>(
      block.firstRow, createIndex(builder, code.getDotWidth()));
  Value steps = builder.createOrFold<arith::CeilDivUIOp>(
      subIndex(builder, block.endRow, block.firstRow),
      createIndex(builder, tiles.getRowStep()));
  emitForCount(
      builder, steps, tiles.keys / tiles.getRowStep(), [&](int64_t count) {
        emitTileProducts(builder, {code.valueTiles, {}, column, pair},
                         {code.scores, {}, pair, zero},
                         {code.acc, {block.queryTile}, column, zero},
                         {numColumns, tiles.getQueryTile(), count * kTileRows},
                         /*accumulates=*/true);
      });
}

/// Multiplies the accumulators by `factors`, one for each vector, unless all of
/// them are 1.
static void emitRescale(ImplicitLocOpBuilder &builder,
                        const AttentionCode &code, const AttentionBlock &block,
                        ValueRange factors) {
  VectorType type = code.getVectorType();
  Value one = createSplat(builder, type, 1), isAny;
  for (Value factor : factors) {
    Value isOther =
        arith::CmpFOp::create(builder, arith::CmpFPredicate::UNE, factor, one);
    isAny =
        isAny ? Value(arith::OrIOp::create(builder, isAny, isOther)) : isOther;
  }
  isAny =
      vector::ReductionOp::create(builder, vector::CombiningKind::OR, isAny);
  auto branch = scf::IfOp::create(builder, isAny, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  createLoop(builder, createIndex(builder, 0),
             createIndex(builder, code.valueDim), 1, [&](Value column) {
               for (auto [vector, factor] : llvm::enumerate(factors)) {
                 SmallVector<Value> at{
                     block.queryTile, column,
                     createIndex(builder, vector * code.tiles.lanes)};
                 Value before = loadVector(builder, type, code.acc, at);
                 storeVector(builder,
                             arith::MulFOp::create(builder, before, factor),
                             code.acc, at);
               }
             });
}

void mlir::posenc::emitWeightedTiles(ImplicitLocOpBuilder &builder,
                                     const AttentionCode &code,
                                     const AttentionBlock &block,
                                     ValueRange factors) {
  emitZeroPairs(builder, code, code.scores, block.endRow);
  emitRescale(builder, code, block, factors);
  int64_t rest = code.valueDim % kColumnsOfTiles;
  Value end = createIndex(builder, code.valueDim - rest);
  createLoop(builder, createIndex(builder, 0), end, kColumnsOfTiles,
             [&](Value column) {
               emitWeighted(builder, code, block, column, kColumnsOfTiles);
             });
  if (rest > 0)
    emitWeighted(builder, code, block, end, rest);
}

Value mlir::posenc::delayMax(ImplicitLocOpBuilder &builder, Value before,
                             Value maximum) {
  ElementwiseBuilder b(builder, builder.getLoc(), maximum);
  constexpr double most = 8;
  Value isFar = arith::CmpFOp::create(builder, arith::CmpFPredicate::OGT,
                                      maximum, b.add(before, b.f32(most)));
  return b.select(isFar, maximum, before);
}

//===- AttentionBF16Tiles.cpp - bf16 attention with AMX -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionBF16Tiles.h"

#include "posenc/Numerics/ElementwiseBuilder.h"

#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::posenc;

bool mlir::posenc::usesBF16Tiles(AttentionOp op, const VectorTarget &target) {
  int64_t valueDim =
      cast<ShapedType>(op.getValue().getType()).getShape().back();
  return target.hasBF16Tiles && usesBF16Dots(op, target) &&
         valueDim % kTileRows == 0;
}

//===----------------------------------------------------------------------===//
// Products of tiles
//===----------------------------------------------------------------------===//

namespace {
/// A place in a buffer of words or f32: the indices of its last two dimensions,
/// and those before them.
struct Place {
  Value memory;
  SmallVector<Value> outer;
  Value row, column;

  SmallVector<Value> at(ImplicitLocOpBuilder &builder, int64_t rows,
                        int64_t columns) const {
    SmallVector<Value> indices(outer);
    indices.push_back(addIndex(builder, row, rows));
    indices.push_back(addIndex(builder, column, columns));
    return indices;
  }
};
} // namespace

static Value loadTile(ImplicitLocOpBuilder &builder, const Place &place,
                      int64_t row, int64_t column) {
  auto type =
      amx::TileType::get({kTileRows, 2 * kTileRows}, builder.getBF16Type());
  return amx::TileLoadOp::create(builder, type, place.memory,
                                 place.at(builder, row, column));
}

/// Stores the product of `numRows` rows of `a`, each of `depth` words, and
/// `depth` rows of `b`, each of `code.tiles.vectors` vectors; if `accumulates`,
/// adds it to what is there. A tile register has one shape in a function, so all
/// tiles have the same.
static void emitProducts(ImplicitLocOpBuilder &builder,
                         const AttentionCode &code, const Place &a,
                         const Place &b, const Place &result, int64_t numRows,
                         int64_t depth, bool accumulates) {
  int64_t vectors = code.tiles.vectors;
  auto sumType =
      amx::TileType::get({kTileRows, kTileRows}, builder.getF32Type());
  SmallVector<SmallVector<Value>> places;
  SmallVector<Value> sums;
  for (int64_t i = 0; i < numRows; i += kTileRows)
    for (int64_t j = 0; j < vectors; ++j) {
      places.push_back(result.at(builder, i, j * kTileRows));
      sums.push_back(accumulates
                         ? Value(amx::TileLoadOp::create(
                               builder, sumType, result.memory, places.back()))
                         : Value(amx::TileZeroOp::create(builder, sumType)));
    }
  for (int64_t k = 0; k < depth; k += kTileRows) {
    SmallVector<Value> right;
    for (int64_t j = 0; j < vectors; ++j)
      right.push_back(loadTile(builder, b, k, j * kTileRows));
    for (int64_t i = 0; i < numRows; i += kTileRows) {
      Value left = loadTile(builder, a, i, k);
      for (int64_t j = 0; j < vectors; ++j) {
        Value &sum = sums[i / kTileRows * vectors + j];
        sum = amx::TileMulFOp::create(builder, sumType, left, right[j], sum);
      }
    }
  }
  for (auto [place, sum] : llvm::zip_equal(places, sums))
    amx::TileStoreOp::create(builder, result.memory, place, sum);
}

void mlir::posenc::emitTileScores(ImplicitLocOpBuilder &builder,
                                  const AttentionCode &code,
                                  const AttentionBlock &block) {
  Value zero = createIndex(builder, 0);
  createLoop(builder, block.firstRow, block.endRow, code.tiles.getRowStep(),
             [&](Value row) {
               emitProducts(builder, code, {code.keys, {}, row, zero},
                            {code.queries, {block.queryTile}, zero, zero},
                            {code.scores, {}, row, zero}, code.tiles.getRowStep(),
                            code.getNumWords(), /*accumulates=*/false);
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
  // The number of tiles of keys selects code without a loop over them, because
  // values of tiles cannot be carried by a loop.
  Value steps = builder.createOrFold<arith::CeilDivUIOp>(
      subIndex(builder, block.endRow, block.firstRow),
      createIndex(builder, tiles.getRowStep()));
  auto cases = llvm::to_vector(
      llvm::seq_inclusive<int64_t>(1, tiles.keys / tiles.getRowStep()));
  OpBuilder::InsertionGuard guard(builder);
  auto choice = scf::IndexSwitchOp::create(builder, TypeRange(), steps, cases,
                                           cases.size());
  for (auto [region, count] : llvm::zip_equal(choice.getCaseRegions(), cases)) {
    builder.setInsertionPointToStart(&region.emplaceBlock());
    emitProducts(builder, code, {code.valueTiles, {}, column, pair},
                 {code.scores, {}, pair, zero},
                 {code.acc, {block.queryTile}, column, zero}, numColumns,
                 count * kTileRows, /*accumulates=*/true);
    scf::YieldOp::create(builder);
  }
  builder.setInsertionPointToStart(&choice.getDefaultRegion().emplaceBlock());
  scf::YieldOp::create(builder);
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

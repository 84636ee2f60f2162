//===- AttentionScores.cpp - the products of attention ----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionCode.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::posenc;

/// `factors`, of a key or a value each, times the vectors of a row of `panel`,
/// added to the sums.
static SmallVector<Value> addProducts(ImplicitLocOpBuilder &builder,
                                      const AttentionCode &code,
                                      ArrayRef<Value> factors, Value panel,
                                      ArrayRef<Value> row, ValueRange sums) {
  VectorType type = code.getVectorType();
  SmallVector<Value> vectors, result;
  for (int64_t i = 0; i < code.tiles.vectors; ++i) {
    SmallVector<Value> at(row);
    at.push_back(createIndex(builder, i * code.tiles.lanes));
    vectors.push_back(loadVector(builder, type, panel, at));
  }
  for (auto [number, factor] : llvm::enumerate(factors)) {
    Value all = broadcast(builder, type, factor);
    for (auto [i, vector] : llvm::enumerate(vectors))
      result.push_back(math::FmaOp::create(builder, all, vector,
                                           sums[number * vectors.size() + i]));
  }
  return result;
}

SmallVector<Value> mlir::posenc::emitScores(ImplicitLocOpBuilder &builder,
                                            const AttentionCode &code,
                                            const AttentionBlock &block,
                                            bool isPartial) {
  const AttentionTiles &tiles = code.tiles;
  VectorType type = code.getVectorType();
  Value zero = createIndex(builder, 0);
  Value none = createSplat(builder, type, 0);
  SmallVector<Value> maxima;
  for (int64_t i = 0; i < tiles.vectors; ++i)
    maxima.push_back(
        loadVector(builder, type, code.maxima,
                   {block.group, createIndex(builder, i * tiles.lanes)}));
  auto emitRows = [&](Value row, ValueRange before) {
    SmallVector<Value> rows;
    for (int64_t i = 0; i < tiles.scoreRows; ++i)
      rows.push_back(addIndex(builder, row, i));
    SmallVector<Value> start(tiles.scoreRows * tiles.vectors, none);
    SmallVector<Value> scores =
        createLoop(builder, zero, createIndex(builder, code.dim), 1, start,
                   [&](Value d, ValueRange sums) {
                     SmallVector<Value> keys;
                     for (Value key : rows)
                       keys.push_back(memref::LoadOp::create(
                           builder, code.keys, ValueRange{key, d}));
                     return addProducts(builder, code, keys, code.queries,
                                        {block.group, d}, sums);
                   });
    emitMasks(builder, code, block, row, isPartial, scores);
    SmallVector<Value> largest(before);
    for (auto [number, score] : llvm::enumerate(scores)) {
      int64_t vector = number % tiles.vectors;
      storeVector(builder, score, code.scores,
                  {rows[number / tiles.vectors],
                   createIndex(builder, vector * tiles.lanes)});
      // A score that is not a number shows in the sums.
      largest[vector] = createMax(builder, score, largest[vector]);
    }
    return largest;
  };
  return createLoop(builder, block.firstRow, block.endRow, tiles.scoreRows,
                    maxima, emitRows);
}

void mlir::posenc::emitValues(ImplicitLocOpBuilder &builder,
                              const AttentionCode &code,
                              const AttentionBlock &block, ValueRange factors) {
  const AttentionTiles &tiles = code.tiles;
  VectorType type = code.getVectorType();
  // From 0: the error of a long sum is that of its blocks, not of all.
  SmallVector<Value> start(tiles.valueColumns * tiles.vectors,
                           createSplat(builder, type, 0));
  auto emitColumns = [&](Value d) {
    SmallVector<Value> columns;
    for (int64_t i = 0; i < tiles.valueColumns; ++i)
      columns.push_back(addIndex(builder, d, i));
    ValueRange sums = createLoop(
        builder, block.firstRow, block.endRow, 1, start,
        [&](Value row, ValueRange before) {
          SmallVector<Value> values;
          for (Value column : columns)
            values.push_back(memref::LoadOp::create(builder, code.values,
                                                    ValueRange{row, column}));
          return addProducts(builder, code, values, code.scores, {row}, before);
        });
    for (auto [number, sum] : llvm::enumerate(sums)) {
      int64_t vector = number % tiles.vectors;
      SmallVector<Value> at{block.group, columns[number / tiles.vectors],
                            createIndex(builder, vector * tiles.lanes)};
      Value before = loadVector(builder, type, code.sums, at);
      storeVector(builder,
                  math::FmaOp::create(builder, before, factors[vector], sum),
                  code.sums, at);
    }
  };
  createLoop(builder, createIndex(builder, 0),
             createIndex(builder, code.valueDim), tiles.valueColumns,
             emitColumns);
}

//===- TileProducts.cpp - products with AMX tiles -------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileProducts.h"

#include "posenc/IR/IndexArithmetic.h"

#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::posenc;

SmallVector<Value> TilePlace::at(ImplicitLocOpBuilder &builder, int64_t rows,
                                 int64_t columns) const {
  SmallVector<Value> indices(outer);
  indices.push_back(addIndex(builder, row, rows));
  indices.push_back(addIndex(builder, column, columns));
  return indices;
}

static Value loadWords(ImplicitLocOpBuilder &builder, const TilePlace &place,
                       int64_t row, int64_t column) {
  auto type =
      amx::TileType::get({kTileRows, 2 * kTileRows}, builder.getBF16Type());
  return amx::TileLoadOp::create(builder, type, place.memory,
                                 place.at(builder, row, column));
}

void mlir::posenc::emitTileProducts(ImplicitLocOpBuilder &builder,
                                    const TilePlace &a, const TilePlace &b,
                                    const TilePlace &result,
                                    const TileSizes &sizes, bool accumulates) {
  auto sumType =
      amx::TileType::get({kTileRows, kTileRows}, builder.getF32Type());
  SmallVector<SmallVector<Value>> places;
  SmallVector<Value> sums;
  for (int64_t i = 0; i < sizes.rows; i += kTileRows)
    for (int64_t j = 0; j < sizes.columns; j += kTileRows) {
      places.push_back(result.at(builder, i, j));
      sums.push_back(accumulates
                         ? Value(amx::TileLoadOp::create(
                               builder, sumType, result.memory, places.back()))
                         : Value(amx::TileZeroOp::create(builder, sumType)));
    }
  for (int64_t k = 0; k < sizes.depth; k += kTileRows) {
    SmallVector<Value> right;
    for (int64_t j = 0; j < sizes.columns; j += kTileRows)
      right.push_back(loadWords(builder, b, k, j));
    Value *sum = sums.begin();
    for (int64_t i = 0; i < sizes.rows; i += kTileRows) {
      Value left = loadWords(builder, a, i, k);
      for (Value column : right) {
        *sum = amx::TileMulFOp::create(builder, sumType, left, column, *sum);
        ++sum;
      }
    }
  }
  for (auto [place, sum] : llvm::zip_equal(places, sums))
    amx::TileStoreOp::create(builder, result.memory, place, sum);
}

void mlir::posenc::emitForCount(ImplicitLocOpBuilder &builder, Value count,
                                int64_t most,
                                function_ref<void(int64_t)> body) {
  auto cases = llvm::to_vector(llvm::seq_inclusive<int64_t>(1, most));
  OpBuilder::InsertionGuard guard(builder);
  auto choice = scf::IndexSwitchOp::create(builder, TypeRange(), count, cases,
                                           cases.size());
  for (auto [region, number] :
       llvm::zip_equal(choice.getCaseRegions(), cases)) {
    builder.setInsertionPointToStart(&region.emplaceBlock());
    body(number);
    scf::YieldOp::create(builder);
  }
  builder.setInsertionPointToStart(&choice.getDefaultRegion().emplaceBlock());
  scf::YieldOp::create(builder);
}

//===- AMXProducts.h - tile products by AMX ---------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The instruction tdpbf16ps multiplies a tile of 16 rows of 16 words, pairs of
// bf16, by a tile of 16 rows of words for 16 columns. For each result it adds
// the products of the even elements of 16 words, those of the odd elements,
// both sums, and then the accumulator. It rounds to nearest even whatever MXCSR
// says, and treats subnormal inputs and results as 0.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_CPU_PRODUCTS_AMXPRODUCTS_H
#define POSENC_LIB_CODEGEN_CPU_PRODUCTS_AMXPRODUCTS_H

#include "posenc/IR/Posenc.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <functional>

namespace mlir::posenc {

/// Rows of a tile, and the 32-bit words or f32 numbers of a row.
constexpr int64_t kTileRows = 16;

/// Tiles of a buffer of words or sums. `getIndices` returns the indices of the
/// first element of a tile, which is numbered along the rows and the columns of
/// a matrix.
struct TileMatrix {
  Value memory;
  std::function<SmallVector<Value>(int64_t row, int64_t column)> getIndices;
};

/// Returns tiles side by side in the rows of a matrix of rank 2, from an
/// element on.
TileMatrix getTilesOfRows(ImplicitLocOpBuilder &builder, Value memory,
                          Value row, Value column);
/// Returns tiles of 1 KB each in a buffer of rank n + 4, of which `outer` are
/// the first n indices: the next two are the column and the row of a tile, or,
/// if `isRowMajor`, the row and the column.
TileMatrix getTilesOfBlock(ImplicitLocOpBuilder &builder, Value memory,
                           ValueRange outer, bool isRowMajor);

/// Stores the product of `a`, 32 rows, and `b`, 32 columns, over `depth` tiles
/// of words, pairs of bf16 or quads, to `result`; if `accumulates`, adds it to
/// what is there. All sums are in registers at the same time. Tiles are loaded
/// in an order that needs seven registers, which leaves one for copies. A tile
/// register has one shape in a function, so all tiles have the same.
void emitTileProducts(ImplicitLocOpBuilder &builder, const TileMatrix &a,
                      const TileMatrix &b, const TileMatrix &result,
                      int64_t depth, bool accumulates,
                      ProductElements elements = ProductElements::BF16Pairs);

/// The arguments of a product of pairs of bf16.
struct TileProduct {
  TileMatrix a, b, result;
  int64_t depth;
  bool accumulates;
};
/// Emits products of 16 rows: those of one list, one after the other, in turns
/// with those of the other list. A product of tiles takes 52 cycles and a new
/// one starts every 16, so the two sums of 16 rows would wait for each other.
void emitRowTileProducts(ImplicitLocOpBuilder &builder,
                         ArrayRef<TileProduct> some,
                         ArrayRef<TileProduct> others = {});

/// Emits `body` for each count from 1 to `maxCount`, of which the code for
/// `count` runs. Values of tiles cannot be carried by a loop, so a loop over
/// tiles of the depth is written out.
void emitForCount(ImplicitLocOpBuilder &builder, Value count, int64_t maxCount,
                  function_ref<void(int64_t)> body);

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_CPU_PRODUCTS_AMXPRODUCTS_H

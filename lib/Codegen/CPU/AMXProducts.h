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

#ifndef POSENC_LIB_CODEGEN_CPU_AMXPRODUCTS_H
#define POSENC_LIB_CODEGEN_CPU_AMXPRODUCTS_H

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::posenc {

/// Rows of a tile, and the 32-bit words or f32 numbers of a row.
constexpr int64_t kTileRows = 16;

/// A place in a buffer of words or f32: the indices of its last two dimensions,
/// and those before them.
struct TilePlace {
  Value memory;
  SmallVector<Value> outer;
  Value row, column;

  SmallVector<Value> at(ImplicitLocOpBuilder &builder, int64_t rows,
                        int64_t columns) const;
};

/// The sizes of a product, multiples of kTileRows. `depth` are words.
struct TileSizes {
  int64_t rows, columns, depth;
};

/// Stores the product of `a`, rows x depth words, and `b`, depth x columns
/// words, to `result`; if `accumulates`, adds it to what is there. All sums are
/// in registers at the same time: four tiles, beside those of a row of tiles of
/// `b` and one tile of `a`, are as many as there are. A tile register has one
/// shape in a function, so all tiles have the same.
void emitTileProducts(ImplicitLocOpBuilder &builder, const TilePlace &a,
                      const TilePlace &b, const TilePlace &result,
                      const TileSizes &sizes, bool accumulates);

/// Tiles of 1 KB each in a buffer of rank n + 4, of words or f32: the first n
/// indices of 2 x `depth` tiles, or of 2 x 2 tiles of sums.
struct TileBlock {
  Value memory;
  SmallVector<Value> outer;
};

/// Stores the product of 32 rows and 32 columns over `depth` tiles of the sum.
/// The tiles are a[k][i], b[k][j] and result[i][j], i and j below 2; if
/// `accumulates`, the product is added to those of `result`. Tiles are loaded in
/// an order that needs seven registers, which leaves one for copies.
void emitBlockProducts(ImplicitLocOpBuilder &builder, const TileBlock &a,
                       const TileBlock &b, const TileBlock &result,
                       int64_t depth, bool accumulates);

/// Emits `body` for each count from 1 to `most`, of which the code for `count`
/// runs. Values of tiles cannot be carried by a loop, so a loop over tiles of
/// the depth is written out.
void emitForCount(ImplicitLocOpBuilder &builder, Value count, int64_t most,
                  function_ref<void(int64_t)> body);

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_CPU_AMXPRODUCTS_H

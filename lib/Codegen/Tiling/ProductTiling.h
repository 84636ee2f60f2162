//===- ProductTiling.h - one product of matrices in tiles -------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_TILING_PRODUCTTILING_H
#define POSENC_LIB_CODEGEN_TILING_PRODUCTTILING_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::posenc {

/// The type of sums of this type: those of f16 and bf16 are of f32, and rounded
/// when they are complete.
Type getSumType(Type result);

/// Sizes of register tiles (rows x columns) and of cache blocks. A block of
/// columns consists of whole panels.
struct ContractionTiles {
  int64_t rows, columns;
  int64_t blockRows, blockColumns, blockReduction;
  /// Whether products of two neighbours in the order of the sum are added by
  /// one instruction: both matrices are bf16, and are copied as words of two.
  bool hasDots = false;
};

/// A product of matrices, for each element of a batch, which may be the sum of
/// several products. Dimensions are loops of the operation; those of the
/// result's rows and columns are in this order there.
struct Product {
  linalg::LinalgOp op;
  SmallVector<AffineMap> maps;
  SmallVector<unsigned> batch, sums;
  unsigned m, n, k;
  /// Whether the operation's second operand has the rows.
  bool isReversed = false;
  /// The second matrix as panels x k x columns of one, or null. The columns of
  /// a panel are whole register tiles; what is beyond the last column is read,
  /// and may be anything.
  Value panels = nullptr;

  Value getOperand(unsigned number) const {
    return op->getOperand(getNumber(number));
  }
  AffineMap getMap(unsigned number) const { return maps[getNumber(number)]; }
  /// The dimension of the second matrix that has the columns.
  unsigned getColumnsDim() const {
    return *getMap(1).getResultPosition(getAffineDimExpr(n, op->getContext()));
  }

private:
  unsigned getNumber(unsigned number) const {
    return isReversed && number < 2 ? 1 - number : number;
  }
};

/// The product that an operation is, or failure if it is none that is tiled.
FailureOr<Product> getProduct(linalg::LinalgOp op);

/// How the sum of a product of bf16 is taken by pairs: of each group of so many
/// elements, those of the first half with those of the second.
constexpr int64_t kDotGroup = 64;

/// How many words of pairs so many elements of a sum are.
OpFoldResult getNumDotWords(OpBuilder &builder, Location loc,
                            OpFoldResult depth);

/// Copies a matrix as words of pairs of bf16, to which other elements are
/// rounded, along its dimension `depthDim`, of this size, which becomes
/// `wordsDim` of the destination: a matrix of i32 with as many words, and as
/// large in the other dimension. A missing second half is zero.
Value packDotWords(OpBuilder &builder, Location loc, Value matrix,
                   unsigned depthDim, OpFoldResult depth, Value destination,
                   unsigned wordsDim);

/// Adds the products of one word of each row of `left` (rows x words, or words
/// x rows if it is swapped) and each column of `panel` (words x columns) to the
/// tile.
Value addDots(OpBuilder &builder, Location loc, Value tile, Value left,
              bool leftSwapped, Value firstRow, Value panel, Value word);

/// Emits the product in loops over tiles, before which the rewriter stands. The
/// loop's result is that of the product.
scf::ForallOp tileProduct(RewriterBase &rewriter, const Product &product,
                          const ContractionTiles &tiles);

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_TILING_PRODUCTTILING_H

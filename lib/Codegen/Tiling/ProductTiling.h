//===- ProductTiling.h - tiling of one matrix product -----------*- C++ -*-===//
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

/// Returns the accumulator type for a result type: f32 for f16 and bf16, which
/// are rounded once the sum is complete; otherwise the type itself.
Type getSumType(Type result);

/// Elements along k of a partial sum of f32, which starts with zero and is then
/// added to C. One sum over thousands of elements would lose a digit: its error
/// grows with their number. Part of the promise of equal bits, so no tuning.
constexpr int64_t kSumDepth = 256;

/// The words of a row of an AMX tile.
constexpr int64_t kTileWords = 16;

/// Sizes of register tiles (rows x columns) and of cache blocks, in elements.
/// `blockColumns` is a multiple of `columns`.
struct ContractionTiles {
  int64_t rows, columns;
  int64_t blockRows, blockColumns, blockReduction;
  /// Whether blocks have about equal numbers of rows, `blockRows` at most.
  bool hasEvenBlocks = false;
  /// Rows of A that are copied to scratch at a time, or 0: A is read in place,
  /// unless it must be converted.
  int64_t copiedRows = 0;
  /// Elements from one copied row of A to the next: more than a block is deep,
  /// as rows at a distance of a power of two would share a cache set.
  int64_t getCopiedStride() const { return blockReduction + 16; }
  /// Whether the first block of k is a loop of its own, whose register tiles
  /// start from the initial value of C. Otherwise that value is stored to C
  /// first.
  bool peelsFirst = false;
  /// Whether each block of k is a partial sum. `blockReduction` is kSumDepth.
  bool hasPartialSums = false;
  /// Columns of a vector of sums, a divisor of `columns`: fewer than these if
  /// they are no power of two.
  int64_t vectorColumns = 0;
  /// Whether the product uses bf16 dot products (VDPBF16PS): both matrices are
  /// bf16 and are copied as 32-bit words of two elements along k.
  bool usesBF16Dots = false;
  /// Whether AMX tiles compute these dot products.
  bool usesAMX = false;
  /// Elements from one row to the next of sums in scratch. A tile of sums has
  /// one cache line in each of 32 rows, which must not share a set.
  int64_t getSumsStride() const { return blockColumns + (usesAMX ? 16 : 0); }
  /// The number of words of a row is a multiple of this number.
  int64_t getWordMultiple() const { return usesAMX ? kTileWords : 1; }
};

/// A batch of matrix products C[m, n] += A[m, k] * B[k, n]. Dimensions are
/// loops of the operation. In the result, m comes before n.
struct Product {
  linalg::LinalgOp op;
  SmallVector<AffineMap> maps;
  /// Parallel loops other than m and n, and reduction loops other than k.
  SmallVector<unsigned> batch, sums;
  unsigned m, n, k;
  /// Whether A is the operation's second operand.
  bool isReversed = false;
  /// B prepacked as panels x k x columns of a panel, or null. The panels of a
  /// batch of matrices are one behind the other. The columns of a
  /// panel are a multiple of the register tile's; elements after the last
  /// column of B are read, but their values do not matter.
  Value panels = nullptr;
  /// Whether `panels` are 32-bit words of bf16 pairs: panels x words x columns.
  bool hasPairPanels() const {
    return panels && getElementTypeOrSelf(panels.getType()).isInteger(32);
  }

  /// Returns A, B or the initial C for 0, 1 or 2.
  Value getOperand(unsigned number) const {
    return op->getOperand(getNumber(number));
  }
  AffineMap getMap(unsigned number) const { return maps[getNumber(number)]; }
  /// Returns the dimension of B that is n.
  unsigned getColumnsDim() const {
    return *getMap(1).getResultPosition(getAffineDimExpr(n, op->getContext()));
  }

  /// Whether the last two dimensions of B are k and n, and the others loops of
  /// the batch.
  bool hasLastMatrices() const;

private:
  unsigned getNumber(unsigned number) const {
    return isReversed && number < 2 ? 1 - number : number;
  }
};

/// Returns the operation as a matrix product, or failure if it is not one that
/// can be tiled.
FailureOr<Product> getProduct(linalg::LinalgOp op);

/// Elements along k whose first half is paired with their second half for bf16
/// dot products.
constexpr int64_t kDotBlock = 64;

/// Returns the number of 32-bit words for `depth` elements along k, rounded up
/// to a multiple of `multiple`.
OpFoldResult getNumDotWords(OpBuilder &builder, Location loc,
                            OpFoldResult depth, int64_t multiple = 1);

/// Copies a matrix as 32-bit words of bf16 pairs along its dimension
/// `depthDim`, which has `depth` elements and becomes `wordsDim` of the
/// destination. The destination is a tensor of i32 with at least
/// getNumDotWords(depth, multiple) elements in `wordsDim`, and otherwise with
/// at least the sizes of the matrix. Elements of other types are rounded to
/// bf16. Missing elements are zero.
Value packDotWords(OpBuilder &builder, Location loc, Value matrix,
                   unsigned depthDim, OpFoldResult depth, Value destination,
                   unsigned wordsDim, int64_t multiple = 1);

/// Emits the tiled product at the rewriter's insertion point. The result of the
/// returned loop replaces that of the product.
scf::ForallOp tileProduct(RewriterBase &rewriter, const Product &product,
                          const ContractionTiles &tiles);

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_TILING_PRODUCTTILING_H

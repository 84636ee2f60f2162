//===- BlockSums.h - register tiles of sums of scaled sums ------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_TILING_BLOCKSUMS_H
#define POSENC_LIB_CODEGEN_TILING_BLOCKSUMS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::posenc {

/// A sum whose operand is a sum that nobody else reads.
struct BlockSums {
  linalg::GenericOp outer, inner;
  /// Loops of `outer`: the first and the last dimension of the result, and the
  /// reduction.
  unsigned rows, columns, blocks;
  /// The reduction loop of `inner`.
  unsigned elements;
};

/// The loops of `inner`, and the operand of `outer` that it computes.
struct InnerSum {
  unsigned rows, blocks, columns, elements;
  OpOperand *partial;

  static InnerSum get(const BlockSums &sums);
};

/// The body of an inner sum, divided into values that are the same for all
/// rows, such as codes that are unpacked from a word, and the steps that add
/// their products.
struct BlockSumBody {
  /// A value that depends on the sum so far, the numbers of the unpacked values
  /// that are its operands, and the element of a row that is one, if any.
  struct Step {
    Value sum;
    SmallVector<unsigned> unpacked;
    BlockArgument row;
  };
  SmallVector<Step> steps;
  /// Values that depend on columns and on no row.
  SmallVector<Value> unpacked;
  /// Whether all steps are the same, each with the next element of a row of
  /// `rows`, from the row `firstRow` on, and the next unpacked value.
  bool isUniform = false;
  Value rows;
  OpFoldResult firstRow;

  static BlockSumBody get(linalg::GenericOp inner, const InnerSum &loops);

private:
  void findUniformSteps(linalg::GenericOp inner, const InnerSum &loops);
};

/// How the rows of a cache block are computed.
struct BlockSumTiles {
  /// Rows of register tiles in which codes are unpacked, in decreasing order,
  /// of which the last one is 1.
  SmallVector<int64_t> rows;
  /// Rows and columns of register tiles that read unpacked codes.
  SmallVector<int64_t> unpackedRows;
  int64_t unpackedColumns;
  /// The number of rows from which on codes are unpacked for all rows at once.
  int64_t minUnpackedRows;
  /// Bytes of unpacked codes.
  int64_t bufferBytes;
};

/// Replaces both sums, which have the columns of a panel, by register tiles.
void emitRegisterTiles(RewriterBase &rewriter, const BlockSums &sums,
                       const BlockSumTiles &tiles);

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_TILING_BLOCKSUMS_H

//===- MergePieces.h - results of pieces of the keys ------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Attention over pieces of the keys gives an output o_p and a log-sum-exp l_p
// for each piece p. With L = log(sum of exp(l_p)), the output over all keys is
// the sum of exp(l_p - L) o_p. The pieces are added in their order, so that the
// result does not depend on who computed a piece, or when; one that saw no key
// changes no bit.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_GPU_MERGEPIECES_H
#define POSENC_LIB_CODEGEN_GPU_MERGEPIECES_H

#include "mlir/IR/Builders.h"

namespace mlir::posenc {

/// Memrefs of outputs, and of log-sum-exps without the last dimension.
struct AttentionResults {
  Value output;
  Value logSums;
};

/// The sequences of ragged queries. Those with more than `maxQueries` queries
/// have no pieces, and their results are not written.
struct RaggedPieces {
  /// A memref with the first token of each sequence.
  Value starts;
  /// The dimension of tokens in the results.
  unsigned tokenDim = 0;
  int64_t maxQueries = 0;

  explicit operator bool() const { return starts != nullptr; }
};

/// Emits the kernel and its launch at `host`. The pieces are the first
/// dimension of `pieces`, whose elements have the type of sums. `results` may
/// have no log-sum-exps. With `ragged`, `createPieceRow` says where the pieces
/// have a sequence's rows. The kernel's name begins with that of the function
/// of `op`.
void mergePieces(OpBuilder &host, Operation *op, const AttentionResults &pieces,
                 const AttentionResults &results,
                 const RaggedPieces &ragged = {});

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_GPU_MERGEPIECES_H

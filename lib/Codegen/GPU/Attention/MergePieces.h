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
// the sum of exp(l_p - L) o_p. The pieces of a group, kKeysPerGroup keys, are
// added in their order, and then the groups, so that the result does not depend
// on who computed a piece, or when; one that saw no key changes no bit.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_GPU_ATTENTION_MERGEPIECES_H
#define POSENC_LIB_CODEGEN_GPU_ATTENTION_MERGEPIECES_H

#include "posenc/IR/Posenc.h"

namespace mlir::posenc {

/// Memrefs of outputs, and of log-sum-exps without the last dimension.
struct AttentionResults {
  Value output;
  Value logSums;
};

/// Emits the kernel and its launch at `host`. `op` is an attention on memrefs;
/// the pieces of its keys are the first dimension of `pieces`, whose elements
/// have the type of sums. A row takes the first piece and those with keys that
/// it sees by its position; the others need not be written. `results` may have
/// no log-sum-exps. Of ragged queries, `createPieceRow` says where the pieces
/// have a sequence's rows; sequences with more than `maxQueries` queries have
/// no pieces, and their results are not written.
void mergePieces(OpBuilder &host, AttentionOp op,
                 const AttentionResults &pieces,
                 const AttentionResults &results, int64_t maxQueries);

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_GPU_ATTENTION_MERGEPIECES_H

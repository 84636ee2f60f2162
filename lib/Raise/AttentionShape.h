//===- AttentionShape.h - operands of raised attention ----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Queries, keys and values are found as tensors with indices of the loops of a
// contraction. Here they get the shapes that attention has: (batch, head,
// token, channel) or (batch, token, head, channel).
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RAISE_ATTENTIONSHAPE_H
#define POSENC_RAISE_ATTENTIONSHAPE_H

#include "Elements.h"
#include "posenc/IR/Posenc.h"

namespace mlir::posenc::raise {

/// Queries, keys or values: `scale * tensor[indices]`.
struct RowOperand {
  Value tensor;
  double scale = 1;
  /// Dimensions of a size other than 1, in order, without the channels:
  /// the outer dimensions and their indices.
  SmallVector<const Expr *, 3> outer;
  SmallVector<int64_t, 3> outerSizes;
  int64_t channelDim = 0;
  /// How many outer dimensions precede the tokens.
  unsigned numBeforeTokens = 0;
};

/// Whether the index takes all values of a dimension of the tensor.
bool coversDim(ExprContext &exprs, const Expr *index, Value tensor,
               int64_t dim);

/// Returns the expression without conversions between float types and constant
/// factors, which `scale` is multiplied by.
const Expr *stripScale(const Expr *expr, double &scale);

/// Returns the rows that a contraction reads at the indices, with tokens along
/// one loop and channels along another. `found` is set to the tensor that is
/// read, also if its elements are no such rows.
std::optional<RowOperand> findRows(ExprContext &exprs, Elements &elements,
                                   Value tensor, ArrayRef<const Expr *> indices,
                                   unsigned tokenLoop, unsigned channelLoop,
                                   Value &found);

/// Batch and heads of queries and output.
struct AttentionShape {
  /// The indices of batch and query head, or of batch, key head and the query
  /// head within its group. Those of size 1 are absent.
  SmallVector<const Expr *, 3> coordinates;
  SmallVector<int64_t, 3> coordinateSizes;
  const Expr *batch, *head;
  int64_t batchSize, numHeads, numKeyHeads;
  HeadLayout queryLayout, keyLayout, valueLayout;
};

/// Returns the shape of attention, or nothing, with the reason. Two dimensions
/// of the queries other than tokens and channels are those of a batch and of
/// heads, or with `hasGroups` those of key heads and of the heads of a group.
std::optional<AttentionShape>
getShape(ExprContext &exprs, const RowOperand &queries, const RowOperand &keys,
         const RowOperand &values, bool hasGroups, std::string &reason);

/// Returns the tensor with another shape of the same elements: dimensions of
/// size 1 are added or removed, and neighbours are joined or split.
Value reshape(OpBuilder &builder, Location loc, Value tensor,
              ArrayRef<int64_t> shape);

/// The coordinates that a loop of the contraction joins, by number.
struct LoopCoordinates {
  unsigned loop;
  SmallVector<unsigned, 3> coordinates;
};

/// Returns, for each of the loops, the coordinates that it joins, or fails if
/// they are not indexed by the loops.
FailureOr<SmallVector<LoopCoordinates>>
joinCoordinates(ExprContext &exprs, const AttentionShape &shape,
                ArrayRef<unsigned> loops);

} // namespace mlir::posenc::raise

#endif // POSENC_RAISE_ATTENTIONSHAPE_H

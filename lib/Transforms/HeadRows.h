//===- HeadRows.h - RMS norm and rotation of head rows ----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_TRANSFORMS_HEADROWS_H
#define POSENC_LIB_TRANSFORMS_HEADROWS_H

#include "posenc/IR/Posenc.h"

namespace mlir::posenc {

/// An RMS norm and a rotation that are applied to each row of a tensor.
struct RowTransform {
  Value norm;            ///< Weights of the norm; null for no norm.
  double eps;            ///< Epsilon of the norm.
  double weightOffset;   ///< Constant that is added to the weights.
  RotationAttr rotation; ///< Null for no rotation.
  ValueRange turns;      ///< The turns of the rotation, empty for none.
};

/// Norms and then rotates the rows, and rounds them to their type once.
/// `tokenDim` is the dimension of tokens. `positions` has one position per
/// token, (tokens), or (axes, tokens) if the rotation has axes; or it is an
/// index, the position of the first token. If `keepsSum`, normed rows have the
/// type in which they were computed, for a rotation that follows.
Value transformRows(OpBuilder &builder, Location loc, Value rows,
                    unsigned tokenDim, Value positions,
                    const RowTransform &transform, bool keepsSum = false);

/// Norms the rows of all heads of a token together and rounds them to the
/// tensor's element type. `headDim` is the dimension of heads; the last
/// dimension is channels. `transform.norm` has one weight per head and channel.
Value normalizeHeads(OpBuilder &builder, Location loc, Value tensor,
                     unsigned headDim, const RowTransform &transform);

/// Creates a tensor.empty with the sizes of `tensor` and the type `element`.
Value createEmptyLike(OpBuilder &builder, Location loc, Value tensor,
                      Type element);

/// Transposes the tensor: dimension `i` of the result is dimension `order[i]`
/// of `tensor`.
Value transpose(OpBuilder &builder, Location loc, Value tensor,
                ArrayRef<int64_t> order);

} // namespace mlir::posenc

#endif // POSENC_LIB_TRANSFORMS_HEADROWS_H

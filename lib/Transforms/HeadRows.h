//===- HeadRows.h - norm and rotation of rows of heads ----------*- C++ -*-===//
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

/// The transform of each row of a tensor of heads.
struct RowTransform {
  Value norm;            ///< Weights of a norm of each row, or null.
  double eps;            ///< Of the norm.
  double weightOffset;   ///< Added to its weights.
  RotationAttr rotation; ///< Or null.
};

/// The rows of `rows` normed and then rotated, rounded to their type once.
/// Dimension `tokenDim` counts tokens: `positions` has one for each of them,
/// after a dimension of axes if the rotation has these, or is the index of the
/// first one.
Value transformRows(OpBuilder &builder, Location loc, Value rows,
                    unsigned tokenDim, Value positions,
                    const RowTransform &transform);

/// `tensor` with the rows of all heads of a token normed together, rounded to
/// its type. There is a weight for each channel of each head. `headDim` is the
/// dimension of heads; the last one is that of channels.
Value normalizeHeads(OpBuilder &builder, Location loc, Value tensor,
                     unsigned headDim, const RowTransform &transform);

/// A tensor with the sizes of another.
Value createEmptyLike(OpBuilder &builder, Location loc, Value tensor,
                      Type element);

/// The tensor with its dimensions in another order: dimension `i` of the result
/// is dimension `order[i]`.
Value transpose(OpBuilder &builder, Location loc, Value tensor,
                ArrayRef<int64_t> order);

/// An integer or index of a list, as an index.
Value loadIndex(OpBuilder &builder, Location loc, Value list,
                ValueRange indices);

} // namespace mlir::posenc

#endif // POSENC_LIB_TRANSFORMS_HEADROWS_H

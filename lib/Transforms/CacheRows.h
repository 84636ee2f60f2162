//===- CacheRows.h - conversion of KV cache rows ----------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_TRANSFORMS_CACHEROWS_H
#define POSENC_LIB_TRANSFORMS_CACHEROWS_H

#include "mlir/IR/Builders.h"

namespace mlir::posenc {

/// The keys [first, first + count) of one head, whose scales are read.
struct ScaledKeys {
  Value sequence, head, first; ///< `sequence` is null if keys are ragged.
  OpFoldResult count;
  /// For a paged cache: the block table (sequence, page of the sequence), and
  /// the number of slots of a page.
  Value blockTable, slots;
};

/// Returns the scales of some keys of a head: a tensor of `count` scales, or of
/// rank 0 if all keys share one scale.
Value takeScales(OpBuilder &builder, Location loc, Value scales,
                 const ScaledKeys &keys);

/// Converts elements to the float type `sum` and multiplies them by their
/// scales, which may be null. The dimensions of the scales correspond to the
/// dimensions `dims` of the rows, in order; a static size of 1 is broadcast.
Value widenRows(OpBuilder &builder, Location loc, Value rows, Value scales,
                ArrayRef<unsigned> dims, Type sum);

/// Rounds floats to the type `element`, unless they have it already.
Value narrowRows(OpBuilder &builder, Location loc, Value rows, Type element);

/// Quantizes rows of f32 to `element`, with one f32 scale per row. Returns the
/// quantized rows and the scales, which have the type of `scales`: dimension i
/// of the scales is dimension `order[i]` of the rows. The scales are computed
/// in `scales`, the slice of the result that they become: bufferization
/// confuses two lists of scales that begin as one tensor of zeros.
std::pair<Value, Value> quantizeRows(OpBuilder &builder, Location loc,
                                     Value rows, Type element, Value scales,
                                     ArrayRef<unsigned> order);

/// Quantizes rows of f32 to `element` by scales that are given. The dimensions
/// of the scales correspond to the dimensions `dims` of the rows, as in
/// widenRows.
Value quantizeRowsBy(OpBuilder &builder, Location loc, Value rows, Type element,
                     Value scales, ArrayRef<unsigned> dims);

} // namespace mlir::posenc

#endif // POSENC_LIB_TRANSFORMS_CACHEROWS_H

//===- CacheRows.h - rows of caches of other types --------------*- C++ -*-===//
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

/// The keys of a tile, as far as scales are indexed by them.
struct ScaledKeys {
  Value sequence, head, first; ///< `sequence` is null where keys are packed.
  OpFoldResult count;
  /// For pages: the block table (sequence, page of the sequence), and the slots
  /// of a page.
  Value blockTable, slots;
};

/// The scales of some keys of a head, one for each; of rank 0 if there is one
/// for all.
Value takeScales(OpBuilder &builder, Location loc, Value scales,
                 const ScaledKeys &keys);

/// Converts elements to floats of type `sum` and multiplies them by their
/// scales. The scales, null if there are none, are indexed by the dimensions
/// `dims` of the rows, in order; a static size of 1 is broadcast.
Value widenRows(OpBuilder &builder, Location loc, Value rows, Value scales,
                ArrayRef<unsigned> dims, Type sum);

/// Floats rounded to a narrower type.
Value narrowRows(OpBuilder &builder, Location loc, Value rows, Type element);

/// Rows of f32 as a cache of `element` holds them, and their scales, which have
/// all dimensions but the last one.
std::pair<Value, Value> quantizeRows(OpBuilder &builder, Location loc,
                                     Value rows, Type element);

} // namespace mlir::posenc

#endif // POSENC_LIB_TRANSFORMS_CACHEROWS_H

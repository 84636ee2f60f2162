//===- Tiling.h - shared tiling of the attention operations -----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_IR_TILING_H
#define POSENC_LIB_IR_TILING_H

#include "posenc/IR/Posenc.h"

namespace mlir::posenc {

/// Creates the operation for a tile of heads, queries and keys. `inits` are
/// slices of the destinations with the sizes of the tile.
TilingResult createTile(OpBuilder &builder, OnlineAttentionOp op,
                        ArrayRef<OpFoldResult> offsets,
                        ArrayRef<OpFoldResult> sizes, ValueRange inits);

/// Implements `TilingInterface::generateResultTileValue`: creates the tile that
/// computes a slice of one result. Fails if no tile computes just this slice.
FailureOr<TilingResult> createResultTile(TilingInterface op, OpBuilder &builder,
                                         unsigned resultNumber,
                                         ArrayRef<OpFoldResult> offsets,
                                         ArrayRef<OpFoldResult> sizes);

} // namespace mlir::posenc

#endif // POSENC_LIB_IR_TILING_H

//===- OnlineAttentionTiling.h - tiles of the tile --------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_IR_ONLINEATTENTIONTILING_H
#define POSENC_LIB_IR_ONLINEATTENTIONTILING_H

#include "posenc/IR/Posenc.h"

namespace mlir::posenc {

/// The operation on the given heads, queries and keys, which adds to `inits`:
/// slices of the destinations, of the size of the tile.
TilingResult createTile(OpBuilder &builder, OnlineAttentionOp op,
                        ArrayRef<OpFoldResult> offsets,
                        ArrayRef<OpFoldResult> sizes, ValueRange inits);

} // namespace mlir::posenc

#endif // POSENC_LIB_IR_ONLINEATTENTIONTILING_H

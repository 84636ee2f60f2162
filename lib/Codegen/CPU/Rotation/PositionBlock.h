//===- PositionBlock.h - sizes of blocks and tiles of positions -*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_CPU_ROTATION_POSITIONBLOCK_H
#define POSENC_LIB_CODEGEN_CPU_ROTATION_POSITIONBLOCK_H

#include "posenc/IR/Posenc.h"
#include "posenc/IR/PositionalOp.h"
#include "posenc/TargetInfo/Tuning.h"

namespace mlir::posenc {

/// Returns the number of consecutive positions whose cos and sin are computed
/// before their rows are rotated. Out-of-order execution does not reach far
/// enough to overlap the next position's cos and sin with the rows of this one,
/// which matters most if a position has few rows; and the rows of large blocks
/// can be processed as several streams.
int64_t getPositionsPerBlock(PositionalOpInterface op, const Tuning &tuning);

/// Returns the number of consecutive positions in a tile, the unit of parallel
/// work: a block, or for tables enough rows to amortize the computation of the
/// base position.
int64_t getPositionsPerTile(PositionalOpInterface op, const Tuning &tuning);

/// Whether the rows of a position are not contiguous, but those of neighbouring
/// positions are, as in batch x head x sequence x dim. A block then has enough
/// positions to make each contiguous range of memory long.
bool areRowsApart(PositionalOpInterface op);

/// Checks the block sizes of the tuning; emits an error at the operation if
/// they are out of range.
LogicalResult checkPositionsPerBlock(Operation *op, const Tuning &tuning);

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_CPU_ROTATION_POSITIONBLOCK_H

//===- PositionBlock.h - positions that are computed together ---*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_CPU_POSITIONBLOCK_H
#define POSENC_LIB_CODEGEN_CPU_POSITIONBLOCK_H

#include "posenc/IR/PositionalOp.h"
#include "posenc/TargetInfo/Tuning.h"

namespace mlir::posenc {

/// For how many positions in a row to compute cos and sin before the first row
/// is rotated. The processor does not see far enough ahead to compute those of
/// the next position beside the rows of this one, which with few rows is much
/// of the time; and the rows of large blocks are taken from several places in
/// turn.
int64_t getPositionsPerBlock(PositionalOpInterface op, const Tuning &tuning);

/// How many positions in a row are a part of the work on their own: a block, or
/// so many rows of a table that what they share is little of it.
int64_t getPositionsPerTile(PositionalOpInterface op, const Tuning &tuning);

/// Whether the rows of a position are apart in memory, and those of
/// neighbouring positions side by side, as in tensors of batch, head, sequence
/// and dim. Then a block has so many positions that each stretch of memory is
/// worth going to.
bool areRowsApart(PositionalOpInterface op);

/// Whether there can be such blocks, or an error at the operation.
LogicalResult checkPositionsPerBlock(Operation *op, const Tuning &tuning);

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_CPU_POSITIONBLOCK_H

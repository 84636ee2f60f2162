//===- PositionalOp.h - shared code of PositionalOpInterface ----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tiling, result shapes and memory effects of the dialect's operations, based
// on `PositionalOpInterface::getDimSymbols`.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_IR_POSITIONALOP_H
#define POSENC_IR_POSITIONALOP_H

#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/TilingInterface.h"

namespace mlir::posenc::detail {

/// Implement `TilingInterface`: every loop is parallel and is a dimension of
/// the first destination. Only operations on tensors are tiled.
SmallVector<utils::IteratorType> getLoopIteratorTypes(Operation *op);
SmallVector<Range> getIterationDomain(Operation *op, OpBuilder &builder);
FailureOr<TilingResult> getTiledImplementation(Operation *op,
                                               OpBuilder &builder,
                                               ArrayRef<OpFoldResult> offsets,
                                               ArrayRef<OpFoldResult> sizes);
/// Returns the tile of a result that a tile of the loops computes.
LogicalResult getResultTilePosition(Operation *op, OpBuilder &builder,
                                    unsigned resultNumber,
                                    ArrayRef<OpFoldResult> offsets,
                                    ArrayRef<OpFoldResult> sizes,
                                    SmallVector<OpFoldResult> &resultOffsets,
                                    SmallVector<OpFoldResult> &resultSizes);
/// Generates a tile of a result by tiling the loops that compute it; fails if
/// the tile slices a dimension that is not a loop.
FailureOr<TilingResult> generateResultTileValue(Operation *op,
                                                OpBuilder &builder,
                                                unsigned resultNumber,
                                                ArrayRef<OpFoldResult> offsets,
                                                ArrayRef<OpFoldResult> sizes);
LogicalResult getIterationDomainTileFromResultTile(
    Operation *op, unsigned resultNumber, ArrayRef<OpFoldResult> offsets,
    ArrayRef<OpFoldResult> sizes, SmallVectorImpl<OpFoldResult> &domainOffsets,
    SmallVectorImpl<OpFoldResult> &domainSizes);
/// Results have the sizes of their destinations.
LogicalResult reifyResultShapes(Operation *op, OpBuilder &builder,
                                ReifiedRankedShapedTypeDims &shapes);
/// Memref inputs are read and destinations written; destinations that keep some
/// of their elements are also read.
void getEffects(Operation *op,
                SmallVectorImpl<MemoryEffects::EffectInstance> &effects);
/// Returns NotSpeculatable: mismatched sizes at run time are undefined
/// behavior.
Speculation::Speculatability getSpeculatability(Operation *op);

/// Clones an operation with other operands and result types. Unlike
/// `mlir::clone`, works for regions without blocks.
Operation *cloneWith(OpBuilder &builder, Operation *op, TypeRange resultTypes,
                     ValueRange operands);

/// Emits an error that ends in `constraint` unless all static sizes with the
/// same symbol agree.
LogicalResult verifySymbols(Operation *op, StringRef constraint);
/// Emits an error that ends in `constraint` unless operands are all tensors or
/// all memrefs (scalars aside) and results are those of the tensor inits.
LogicalResult verifyDestinations(Operation *op, StringRef constraint);

} // namespace mlir::posenc::detail

#endif // POSENC_IR_POSITIONALOP_H

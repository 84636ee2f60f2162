//===- Tiling.h - which operations of linalg become vectors -----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_CODEGEN_TILING_H
#define POSENC_CODEGEN_TILING_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::posenc {

/// On a function whose work is all that it reads and writes: with less of one
/// than of the other, as products of matrices have.
constexpr llvm::StringLiteral kByAllAttrName = "by_all";

/// Whether vectors of elements of the type are loaded and stored as they are in
/// memory: i1 is a byte there.
bool isVectorElement(Type type);

/// Whether all that the operation reads and writes are scalars and tensors of
/// such elements, and it computes these by arith and math alone: no element is
/// read at an index that it computes.
bool computesVectors(linalg::LinalgOp op);

/// Whether posenc-tile-contractions tiles the operation: a product of matrices
/// of floats that is summed in f32 or f64.
bool isTiledContraction(linalg::LinalgOp op);

/// Whether posenc-tile-elementwise does: all elements of its results are
/// computed on their own, in an order that suits vectors.
bool isTiledElementwise(linalg::LinalgOp op);

/// Whether posenc-tile-elementwise does, as a reduction of which each step adds
/// rows of the inputs to the result.
bool isTiledColumnReduction(linalg::LinalgOp op);

/// Whether posenc-tile-reductions does: a reduction to f32 or f64 along the
/// rows of an input.
bool isTiledReduction(linalg::LinalgOp op);

/// Returns the input that posenc-reuse-operands makes the destination of an
/// elementwise operation, if nothing reads it afterwards; null if there is
/// none.
OpOperand *findReusableInput(linalg::LinalgOp op);

/// Whether an operation writes its destination whole and does not read it.
bool isUnreadInit(DestinationStyleOpInterface op, OpOperand &init);

/// The input of a function whose memory a destination may have, or null: the
/// destination is an output that the signature allows to be that input.
BlockArgument getInPlaceInput(Value destination);

/// Whether an output may have the memory of the value, an input of a function.
bool isInPlaceInput(Value value);

/// Whether the operation reads an input that an output may overwrite. Such an
/// operation must not move after others.
bool readsInPlaceInput(Operation *op);

/// Whether an elementwise operation may write its result over an input of its
/// function. It must read each element before it writes the same one, and
/// nothing may read the input afterwards.
bool canWriteOver(linalg::LinalgOp op, Value input);

} // namespace mlir::posenc

#endif // POSENC_CODEGEN_TILING_H

//===- Tiling.h - predicates of the linalg tiling passes --------*- C++ -*-===//
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

/// Whether a vector with this element type has the same layout in registers and
/// in memory. i1 does not: it takes one byte in memory.
bool isVectorElement(Type type);

/// Whether all operands are scalars or tensors of `isVectorElement` types and
/// the body consists of arith, math, linalg.index and affine.apply operations
/// only. It then reads no element at an index that it computes.
bool computesVectors(linalg::LinalgOp op);

/// Whether posenc-tile-contractions tiles the operation, a matrix product of
/// floats that is summed in f32 or f64.
bool isTiledContraction(linalg::LinalgOp op);

/// Whether posenc-tile-elementwise tiles the operation: it has no reduction
/// loops, and one loop runs along the contiguous dimension of all results.
bool isTiledElementwise(linalg::LinalgOp op);

/// Whether posenc-tile-elementwise tiles the operation as a column reduction:
/// each step combines rows of the inputs with the result element by element.
bool isTiledColumnReduction(linalg::LinalgOp op);

/// Whether posenc-tile-reductions tiles the operation: a reduction to f32 or
/// f64 along the contiguous dimension of its inputs.
bool isTiledReduction(linalg::LinalgOp op);

/// Returns the loop along which an elementwise operation reads rows of tables:
/// its last index runs over the contiguous dimension of all results, and the
/// other indices of each `tensor.extract` do not depend on it. Returns nullopt
/// if the operation has no `tensor.extract`, or others.
std::optional<unsigned> getRowReadLoop(linalg::LinalgOp op);

/// Replaces the reads of rows along the loop `vector` by inputs that are slices
/// of the tables, and returns the new operation. All other loops of `op` must
/// have one iteration.
linalg::GenericOp readRowsAsInputs(RewriterBase &rewriter, linalg::GenericOp op,
                                   unsigned vector);

/// Returns the input that posenc-reuse-operands makes the destination of an
/// elementwise operation, if nothing reads it afterwards; null if there is
/// none.
OpOperand *findReusableInput(linalg::LinalgOp op);

/// Whether an operation overwrites all of its destination without reading it.
bool isUnreadInit(DestinationStyleOpInterface op, OpOperand &init);

/// Returns the function input that may share its memory with `destination`, or
/// null. `destination` must be a function output; the signature
/// (`posenc.abi`) says which input the caller may pass as that output.
BlockArgument getInPlaceInput(Value destination);

/// Whether the value is a function input that may share its memory with an
/// output.
bool isInPlaceInput(Value value);

/// Whether the operation reads an input that an output may overwrite. Such an
/// operation must not move past the operation that writes the output.
bool readsInPlaceInput(Operation *op);

/// Whether an elementwise operation may overwrite the function input `input`
/// with its result: it reads and writes with the same indexing map, and nothing
/// reads the input afterwards.
bool canWriteOver(linalg::LinalgOp op, Value input);

} // namespace mlir::posenc

#endif // POSENC_CODEGEN_TILING_H

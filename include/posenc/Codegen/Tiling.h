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

/// Whether posenc-tile-reductions does: a reduction to f32 or f64 along the
/// rows of an input.
bool isTiledReduction(linalg::LinalgOp op);

} // namespace mlir::posenc

#endif // POSENC_CODEGEN_TILING_H

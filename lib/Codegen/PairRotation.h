//===- PairRotation.h - rotation of a tile of pairs -------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The arithmetic of a rotation, for CPUs and GPUs: a linalg.generic on views of
// a few lanes, which posenc-vectorize-tiles converts to vectors.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_PAIRROTATION_H
#define POSENC_LIB_CODEGEN_PAIRROTATION_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::posenc {

/// Creates a rank-1 view of `count` elements along the last dimension of a
/// memref, from `indices` on, with a stride of `stride` elements.
Value createLanes(OpBuilder &builder, Location loc, Value memref,
                  ValueRange indices, int64_t count, int64_t stride);

/// The operands of a tile of pairs (x, y), each a view of the same number of
/// lanes.
struct PairLanes {
  /// Inputs, and destinations of the results.
  Value x, y, newX, newY;
  /// cos and sin of the rotation. Those for x and for y are the same values,
  /// unless the sine for x is stored negated.
  Value cosX, sinX, cosY, sinY;
};

/// Emits one linalg.generic that rotates the pairs of all parts, computing in
/// the type `compute`.
linalg::GenericOp createRotation(OpBuilder &builder, Location loc, Type compute,
                                 ArrayRef<PairLanes> parts);

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_PAIRROTATION_H

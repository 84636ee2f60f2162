//===- PairRotation.h - a tile of pairs, rotated by linalg ------*- C++ -*-===//
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

/// Creates a view of `count` elements of the last dimension of a memref, from
/// `indices` on, at a distance of `stride` elements.
Value createLanes(OpBuilder &builder, Location loc, Value memref,
                  ValueRange indices, int64_t count, int64_t stride);

/// The operands of a tile of pairs, each a view of the same number of lanes:
/// both lanes of the pairs, and the constants of their rotation.
struct PairLanes {
  Value x, y, newX, newY;
  /// The constants of x and of y are the same unless the sine of x is negated.
  Value cosX, sinX, cosY, sinY;
};

/// Emits a linalg.generic that rotates the pairs of all parts, in the type
/// `compute`.
linalg::GenericOp createRotation(OpBuilder &builder, Location loc, Type compute,
                                 ArrayRef<PairLanes> parts);

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_PAIRROTATION_H

//===- RopeTables.h - tables of cos and sin of a rope -----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_TRANSFORMS_ROPETABLES_H
#define POSENC_LIB_TRANSFORMS_ROPETABLES_H

#include "posenc/IR/Posenc.h"

namespace mlir::posenc {

/// Emits the tables by which a `posenc.rotate` with the attributes of the rope
/// (its direction among them) computes the same. They are f64 for ropes of f64
/// and f32 for others.
std::pair<Value, Value> createRopeTables(OpBuilder &builder, RopeOp op);

/// Replaces a rope on tensors by a rotation by its tables.
void replaceByRotation(RewriterBase &rewriter, RopeOp op);

} // namespace mlir::posenc

#endif // POSENC_LIB_TRANSFORMS_ROPETABLES_H

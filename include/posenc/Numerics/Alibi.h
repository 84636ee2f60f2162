//===- Alibi.h - the ALiBi bias ---------------------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_NUMERICS_ALIBI_H
#define POSENC_NUMERICS_ALIBI_H

#include "posenc/IR/Posenc.h"
#include "posenc/Numerics/ElementwiseBuilder.h"

namespace mlir::posenc {

/// Returns the slopes of all heads, in f64.
SmallVector<double> getAlibiSlopes(AlibiOp op);
/// Returns the slopes of all heads as a constant memref of f64 in the nearest
/// module around `user`.
Value emitAlibiSlopes(OpBuilder &builder, Operation *user, AlibiOp op);
/// Returns |difference| as a float, for the difference of a query's and a key's
/// position, a signed integer.
Value emitAlibiDistance(ElementwiseBuilder &b, Type element, Value difference);
/// Returns the bias -(slope * distance).
Value emitAlibi(ElementwiseBuilder &b, Value slope, Value distance);

} // namespace mlir::posenc

#endif // POSENC_NUMERICS_ALIBI_H

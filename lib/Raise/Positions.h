//===- Positions.h - tensors of positions -----------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RAISE_POSITIONS_H
#define POSENC_RAISE_POSITIONS_H

#include "Expr.h"

#include "mlir/IR/Builders.h"

namespace mlir::posenc::raise {

/// Creates the tensor of positions of the given sizes, whose dimensions are the
/// loops `dims`, in order; without loops, `sizes` has one element. Integers of
/// other types than i32 become i64. The tensor is a slice where possible.
Value createPositions(OpBuilder &builder, Location loc, ExprContext &exprs,
                      const Expr *position, ArrayRef<int64_t> dims,
                      ArrayRef<OpFoldResult> sizes);

} // namespace mlir::posenc::raise

#endif // POSENC_RAISE_POSITIONS_H

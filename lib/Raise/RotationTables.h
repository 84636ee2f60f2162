//===- RotationTables.h - tables of raised rotations ------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RAISE_ROTATIONTABLES_H
#define POSENC_RAISE_ROTATIONTABLES_H

#include "Expr.h"

#include "mlir/IR/Builders.h"

namespace mlir::posenc::raise {

/// Adds the loops that occur in the expression, without the last one.
void collectLoops(const ExprContext &exprs, const Expr *expr,
                  llvm::SmallBitVector &loops);

/// Creates the tensor of the expression's values. Its dimensions are the loops
/// `dims`, whose sizes are those of `like`, and then `numLanes` lanes, by the
/// last loop. It is a slice of a tensor where possible.
Value createTable(OpBuilder &builder, Location loc, ExprContext &exprs,
                  const Expr *expr, ArrayRef<int64_t> dims, Value like,
                  int64_t numLanes);

} // namespace mlir::posenc::raise

#endif // POSENC_RAISE_ROTATIONTABLES_H

//===- Materialize.h - operations for expressions ---------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RAISE_MATERIALIZE_H
#define POSENC_RAISE_MATERIALIZE_H

#include "Expr.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::posenc::raise {

/// Creates the scalar operations of expressions.
class Materializer {
public:
  /// `loops` has the indices of the loops, of type index, or null for those
  /// that do not occur.
  Materializer(OpBuilder &builder, Location loc, const ExprContext &exprs,
               ArrayRef<Value> loops)
      : builder(builder), loc(loc), exprs(exprs), loops(loops) {}

  /// Uses `value` for the expression.
  void set(const Expr *expr, Value value) { known[expr] = value; }
  Value get(const Expr *expr);

private:
  Value getIndex(const Expr *expr);

  OpBuilder &builder;
  Location loc;
  const ExprContext &exprs;
  SmallVector<Value> loops;
  llvm::DenseMap<const Expr *, Value> known;
};

/// Creates the indices of all loops of the expressions within a linalg
/// operation whose dimensions are the loops `dims`. Other loops, which do not
/// occur, get any of these indices.
SmallVector<Value> createLoopIndices(OpBuilder &builder, Location loc,
                                     const ExprContext &exprs,
                                     ArrayRef<int64_t> dims);

} // namespace mlir::posenc::raise

#endif // POSENC_RAISE_MATERIALIZE_H

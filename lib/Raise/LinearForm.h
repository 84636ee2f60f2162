//===- LinearForm.h - elements as linear functions of a tensor --*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RAISE_LINEARFORM_H
#define POSENC_RAISE_LINEARFORM_H

#include "Expr.h"

#include "llvm/ADT/DenseMap.h"

namespace mlir::posenc::raise {

/// A product `factor * x[indices]`, or its negative.
struct LinearTerm {
  ArrayRef<const Expr *> indices;
  bool isNegative = false;
  /// Null for 1.
  const Expr *factor = nullptr;
};

/// Whether the factors have opposite signs that no LinearTerm shows: they are
/// elements of a constant with two columns that are negatives of each other, or
/// computed from such. Null factors are 1.
bool areOpposite(const Expr *a, const Expr *b);

/// Writes expressions as sums of products with elements of one tensor.
class LinearForm {
public:
  LinearForm(ExprContext &exprs, Value x) : exprs(exprs), x(x) {}

  Value getTensor() const { return x; }

  /// Returns the terms, at most two, with different indices. Conversions
  /// between float types are left out. Fails if the expression is not such a
  /// sum; `reason` then says why.
  FailureOr<SmallVector<LinearTerm, 2>> get(const Expr *expr,
                                            std::string &reason);

  /// Whether an element of the tensor occurs in the expression.
  bool contains(const Expr *expr);

private:
  LogicalResult add(SmallVectorImpl<LinearTerm> &terms, const Expr *expr,
                    bool negative, std::string &reason);
  LogicalResult multiply(SmallVectorImpl<LinearTerm> &terms,
                         const Expr *factor);

  ExprContext &exprs;
  Value x;
  llvm::DenseMap<const Expr *, bool> known;
};

} // namespace mlir::posenc::raise

#endif // POSENC_RAISE_LINEARFORM_H

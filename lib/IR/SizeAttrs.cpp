//===- SizeAttrs.cpp - terms and relations of sizes -----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/IR/Posenc.h"

using namespace mlir;
using namespace mlir::posenc;

/// The depth of the evaluation stack of the kernel support library.
static constexpr int kMaxDepth = 100;

/// Whether the expression consists of sums, products, symbols and constants,
/// with a nesting of at most `depth`.
static bool isPolynomial(AffineExpr expr, int depth) {
  if (isa<AffineConstantExpr, AffineSymbolExpr>(expr))
    return true;
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  return binary && depth > 0 &&
         (expr.getKind() == AffineExprKind::Add ||
          expr.getKind() == AffineExprKind::Mul) &&
         isPolynomial(binary.getLHS(), depth - 1) &&
         isPolynomial(binary.getRHS(), depth - 1);
}

static bool hasPolynomials(AffineMap map) {
  return map.getNumDims() == 0 &&
         llvm::all_of(map.getResults(), [](AffineExpr expr) {
           return isPolynomial(expr, kMaxDepth);
         });
}

LogicalResult TermAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               TermKind kind, AffineMap operands) {
  unsigned expected = kind == TermKind::Value ? 1
                      : kind == TermKind::IfLess || kind == TermKind::IfEqual
                          ? 4
                          : 2;
  if (operands.getNumResults() != expected)
    return emitError() << stringifyTermKind(kind) << " has "
                       << operands.getNumResults() << " operands, expected "
                       << expected << " (term_c1)";
  if (!hasPolynomials(operands))
    return emitError() << "expected sums and products of symbols, nested at "
                          "most 100 deep (term_c2)";
  return success();
}

LogicalResult RelationAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   RelationKind kind, AffineMap sides) {
  if (sides.getNumResults() != 2)
    return emitError() << "a relation has " << sides.getNumResults()
                       << " sides, expected 2 (relation_c1)";
  if (!hasPolynomials(sides))
    return emitError() << "expected sums and products of symbols, nested at "
                          "most 100 deep (relation_c2)";
  return success();
}

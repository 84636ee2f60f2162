//===- LinearForm.cpp - elements as linear functions of a tensor ----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LinearForm.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::posenc::raise;

bool LinearForm::contains(const Expr *expr) {
  if (expr->tensor == x)
    return true;
  if (expr->operands.empty())
    return false;
  auto [it, isNew] = known.try_emplace(expr, false);
  if (!isNew)
    return it->second;
  bool found = llvm::any_of(
      expr->operands, [&](const Expr *operand) { return contains(operand); });
  return known[expr] = found;
}

/// Returns the factor without the signs of its negations and of its constants,
/// also those within products, and changes `isNegative` for each of them.
static const Expr *removeSigns(ExprContext &exprs, const Expr *factor,
                               bool &isNegative) {
  if (factor->is<arith::NegFOp>()) {
    isNegative = !isNegative;
    return removeSigns(exprs, factor->operands[0], isNegative);
  }
  if (auto number = factor->getFloatConstant(); number && *number < 0) {
    isNegative = !isNegative;
    return exprs.getConstant(FloatAttr::get(factor->type, -*number));
  }
  if (!factor
           ->is<arith::MulFOp, arith::DivFOp, arith::ExtFOp, arith::TruncFOp>())
    return factor;
  SmallVector<const Expr *> operands;
  for (const Expr *operand : factor->operands)
    operands.push_back(removeSigns(exprs, operand, isNegative));
  return exprs.getLike(factor, operands);
}

/// Multiplies all terms. Signs are kept apart, so that equal factors are equal
/// expressions.
LogicalResult LinearForm::multiply(SmallVectorImpl<LinearTerm> &terms,
                                   const Expr *factor) {
  bool negative = false;
  factor = removeSigns(exprs, factor, negative);
  bool isOne = factor->getFloatConstant() == 1.0;
  for (LinearTerm &term : terms) {
    term.isNegative ^= negative;
    if (isOne)
      continue;
    if (term.factor && term.factor->type != factor->type)
      return failure();
    term.factor = term.factor
                      ? exprs.getArith<arith::MulFOp>({term.factor, factor})
                      : factor;
  }
  return success();
}

LogicalResult LinearForm::add(SmallVectorImpl<LinearTerm> &terms,
                              const Expr *expr, bool negative,
                              std::string &reason) {
  auto fail = [&](StringRef why) {
    if (reason.empty())
      reason = why.str();
    return failure();
  };
  if (expr->kind == Expr::Kind::Element && expr->tensor == x) {
    for (LinearTerm &term : terms)
      if (term.indices == expr->operands)
        return fail("a lane occurs twice in a sum");
    if (terms.size() == 2)
      return fail("a sum has more than two lanes");
    terms.push_back({expr->operands, negative, nullptr});
    return success();
  }
  if (expr->is<arith::ExtFOp, arith::TruncFOp>())
    return add(terms, expr->operands[0], negative, reason);
  if (expr->is<arith::NegFOp>())
    return add(terms, expr->operands[0], !negative, reason);
  if (expr->is<arith::AddFOp, arith::SubFOp>()) {
    if (failed(add(terms, expr->operands[0], negative, reason)))
      return failure();
    return add(terms, expr->operands[1], negative ^ expr->is<arith::SubFOp>(),
               reason);
  }
  auto addProduct = [&](const Expr *a, const Expr *b) {
    if (contains(a))
      std::swap(a, b);
    if (contains(a))
      return fail("lanes are multiplied by each other");
    SmallVector<LinearTerm> product;
    if (failed(add(product, b, negative, reason)))
      return failure();
    if (failed(multiply(product, a)))
      return fail("factors have different types");
    for (const LinearTerm &term : product) {
      for (LinearTerm &other : terms)
        if (other.indices == term.indices)
          return fail("a lane occurs twice in a sum");
      if (terms.size() == 2)
        return fail("a sum has more than two lanes");
      terms.push_back(term);
    }
    return success();
  };
  if (expr->is<arith::MulFOp>())
    return addProduct(expr->operands[0], expr->operands[1]);
  if (expr->is<math::FmaOp>()) {
    if (failed(addProduct(expr->operands[0], expr->operands[1])))
      return failure();
    return add(terms, expr->operands[2], negative, reason);
  }
  if (!contains(expr))
    return fail("something is added that is not a lane");
  return fail("a lane is not a sum of products");
}

FailureOr<SmallVector<LinearTerm, 2>> LinearForm::get(const Expr *expr,
                                                      std::string &reason) {
  SmallVector<LinearTerm> terms;
  if (failed(add(terms, expr, /*negative=*/false, reason)))
    return failure();
  return SmallVector<LinearTerm, 2>(terms.begin(), terms.end());
}

//===- CommonExpr.cpp - one expression for several ------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Expr.h"

using namespace mlir;
using namespace mlir::posenc::raise;

/// Larger expressions are not compared. A part that is common to several
/// operands counts for each path to it, and is visited as often.
static constexpr unsigned kMaxCompared = 10000;

/// Appends the constant indices of an expression, in a fixed order. Returns
/// false if the expressions differ in more than these, or if they are larger
/// than `budget`, which the visited parts are subtracted from.
static bool collectConstants(const Expr *first, const Expr *expr,
                             SmallVectorImpl<int64_t> &constants,
                             unsigned &budget) {
  if (budget == 0)
    return false;
  --budget;
  std::optional<int64_t> number = expr->getIndexConstant();
  if (number && first->getIndexConstant() && first->type == expr->type) {
    constants.push_back(*number);
    return true;
  }
  if (first->operands.empty() || expr->operands.empty())
    return first == expr;
  if (first->kind != expr->kind || first->type != expr->type ||
      first->tensor != expr->tensor || first->name != expr->name ||
      first->properties != expr->properties ||
      first->operands.size() != expr->operands.size())
    return false;
  for (auto [a, b] : llvm::zip_equal(first->operands, expr->operands))
    if (!collectConstants(a, b, constants, budget))
      return false;
  return true;
}

/// Replaces the constant indices of an expression, in the same order.
static const Expr *replaceConstants(ExprContext &exprs, const Expr *expr,
                                    ArrayRef<AffineExpr> &indices) {
  if (expr->getIndexConstant()) {
    AffineExpr index = indices.front();
    indices = indices.drop_front();
    return exprs.getIndex(index, expr->type);
  }
  if (expr->operands.empty())
    return expr;
  SmallVector<const Expr *> operands;
  for (const Expr *operand : expr->operands)
    operands.push_back(replaceConstants(exprs, operand, indices));
  return exprs.getLike(expr, operands);
}

/// Returns a function of k with the numbers as values, or null: affine in k, in
/// its remainder or in its quotient by a period.
static AffineExpr fit(ArrayRef<int64_t> numbers, AffineExpr k) {
  // Strides of larger numbers may overflow.
  if (llvm::any_of(numbers,
                   [](int64_t number) { return !llvm::isInt<32>(number); }))
    return llvm::all_equal(numbers)
               ? getAffineConstantExpr(numbers[0], k.getContext())
               : AffineExpr();
  int64_t base = numbers[0];
  if (numbers.size() == 1)
    return getAffineConstantExpr(base, k.getContext());
  auto isFit = [&](llvm::function_ref<int64_t(int64_t)> function) {
    for (auto [at, number] : llvm::enumerate(numbers))
      if (number != function(at))
        return false;
    return true;
  };
  int64_t stride = numbers[1] - base;
  if (isFit([&](int64_t at) { return base + at * stride; }))
    return k * stride + base;
  int64_t period = 2;
  while (numbers[period] == base + period * stride)
    ++period;
  if (isFit([&](int64_t at) { return base + at % period * stride; }))
    return k % period * stride + base;
  int64_t step = numbers[period] - base;
  if (isFit([&](int64_t at) { return base + at / period * step; }))
    return k.floorDiv(period) * step + base;
  return {};
}

const Expr *mlir::posenc::raise::getCommonExpr(ExprContext &exprs,
                                               ArrayRef<const Expr *> parts,
                                               AffineExpr number) {
  const Expr *first = parts.front();
  // The constants of each place in the expression, by part.
  SmallVector<SmallVector<int64_t>> numbers;
  for (const Expr *part : parts) {
    SmallVector<int64_t> constants;
    unsigned budget = kMaxCompared;
    if (!collectConstants(first, part, constants, budget))
      return nullptr;
    numbers.resize(constants.size());
    for (auto [position, constant] : llvm::enumerate(constants))
      numbers[position].push_back(constant);
  }
  SmallVector<AffineExpr> indices;
  for (ArrayRef<int64_t> ofPlace : numbers) {
    indices.push_back(fit(ofPlace, number));
    if (!indices.back())
      return nullptr;
  }
  ArrayRef<AffineExpr> rest(indices);
  return replaceConstants(exprs, first, rest);
}

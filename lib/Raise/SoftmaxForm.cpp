//===- SoftmaxForm.cpp - softmax in any spelling --------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SoftmaxForm.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>

using namespace mlir;
using namespace mlir::posenc::raise;

const Expr *mlir::posenc::raise::stripCasts(const Expr *expr) {
  while (expr->is<arith::ExtFOp, arith::TruncFOp>())
    expr = expr->operands[0];
  return expr;
}

bool mlir::posenc::raise::dependsOnLoop(const Expr *expr, unsigned loop) {
  SmallVector<const Expr *> stack{expr};
  llvm::DenseSet<const Expr *> seen;
  while (!stack.empty()) {
    const Expr *next = stack.pop_back_val();
    if (!seen.insert(next).second)
      continue;
    if (next->kind == Expr::Kind::Index && next->index.isFunctionOfDim(loop))
      return true;
    llvm::append_range(stack, next->operands);
  }
  return false;
}

const Expr *mlir::posenc::raise::getExponent(const Expr *term, unsigned loop) {
  term = stripCasts(term);
  if (!term->is<math::ExpOp>())
    return nullptr;
  const Expr *exponent = stripCasts(term->operands[0]);
  if (exponent->is<arith::SubFOp>() &&
      !dependsOnLoop(exponent->operands[1], loop))
    return exponent->operands[0];
  // s + (-m)
  if (exponent->is<arith::AddFOp>())
    for (unsigned side : {0, 1})
      if (exponent->operands[side]->is<arith::NegFOp>() &&
          !dependsOnLoop(exponent->operands[side], loop))
        return exponent->operands[1 - side];
  return exponent;
}

/// Returns what the element of a reduction by the operation combines over the
/// loop, or null if it is none that starts at the neutral element.
template <typename Combiner>
static const Expr *getReducedTerm(ExprContext &exprs, Elements &elements,
                                  const Expr *reduced, unsigned loop) {
  if (reduced->kind != Expr::Kind::Element || dependsOnLoop(reduced, loop))
    return nullptr;
  auto result = dyn_cast<OpResult>(reduced->tensor);
  auto op = result ? dyn_cast<linalg::LinalgOp>(result.getOwner()) : nullptr;
  if (!op || !op.hasPureTensorSemantics() || op.getNumReductionLoops() != 1)
    return nullptr;
  unsigned number = result.getResultNumber();
  OpOperand *init = op.getDpsInitOperand(number);
  // The accumulator is combined with something that does not depend on it.
  auto combined = op.getBlock()
                      ->getTerminator()
                      ->getOperand(number)
                      .template getDefiningOp<Combiner>();
  BlockArgument accumulator = op.getMatchingBlockArgument(init);
  if (!combined || !accumulator.hasOneUse() ||
      *accumulator.getUsers().begin() != combined)
    return nullptr;
  SmallVector<const Expr *> loops(op.getNumLoops(), nullptr);
  for (auto [index, expr] : llvm::zip_equal(
           reduced->operands, op.getMatchingIndexingMap(init).getResults()))
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      loops[dim.getPosition()] = index;
  for (const Expr *&index : loops)
    if (!index)
      index = exprs.getLoop(loop);
  // The sizes of the loops must agree: all terms are combined.
  SmallVector<unsigned> reductions;
  op.getReductionDims(reductions);
  if (op.getStaticLoopRanges()[reductions[0]] != exprs.getSizes()[loop])
    return nullptr;
  // Combined with the neutral element, the term yields itself.
  return elements.getYielded(
      op, number, loops,
      SmallVector<const Expr *>(op.getNumDpsInits(), nullptr));
}

bool mlir::posenc::raise::isSumOver(ExprContext &exprs, Elements &elements,
                                    const Expr *sum, const Expr *term,
                                    unsigned loop) {
  const Expr *summed =
      getReducedTerm<arith::AddFOp>(exprs, elements, stripCasts(sum), loop);
  return summed && stripCasts(summed) == stripCasts(term);
}

/// Returns the negated condition, or null if it is no negation.
static const Expr *getNegated(const Expr *condition) {
  if (condition->is<arith::XOrIOp>())
    for (unsigned side : {0, 1})
      if (condition->operands[side]->getBoolConstant() == true)
        return condition->operands[1 - side];
  return nullptr;
}

/// Whether the condition says that the number is minus infinity, or that it is
/// not.
static bool comparesWithInfinity(const Expr *condition, const Expr *number,
                                 bool isEqual) {
  if (const Expr *negated = getNegated(condition))
    return comparesWithInfinity(negated, number, !isEqual);
  if (!condition->is<arith::CmpFOp>())
    return false;
  auto predicate = cast<DictionaryAttr>(condition->properties)
                       .getAs<arith::CmpFPredicateAttr>("predicate")
                       .getValue();
  bool isKnown = isEqual ? predicate == arith::CmpFPredicate::OEQ
                         : predicate == arith::CmpFPredicate::UNE ||
                               predicate == arith::CmpFPredicate::ONE ||
                               predicate == arith::CmpFPredicate::OGT;
  return isKnown && stripCasts(condition->operands[0]) == number &&
         condition->operands[1]->getFloatConstant() ==
             -std::numeric_limits<double>::infinity();
}

/// Whether the condition says that the number is NaN. A weight is, if all
/// logits of its row are minus infinity.
static bool isNaN(const Expr *condition, const Expr *number) {
  if (!condition->is<arith::CmpFOp>())
    return false;
  auto predicate = cast<DictionaryAttr>(condition->properties)
                       .getAs<arith::CmpFPredicateAttr>("predicate")
                       .getValue();
  return (predicate == arith::CmpFPredicate::UNO ||
          predicate == arith::CmpFPredicate::UNE) &&
         condition->operands[0] == condition->operands[1] &&
         stripCasts(condition->operands[0]) == stripCasts(number);
}

/// Whether the condition holds for the rows whose logits are all minus
/// infinity, and for no others.
static bool isEmptyRow(ExprContext &exprs, Elements &elements,
                       const Expr *condition, const Expr *logits,
                       unsigned loop) {
  logits = stripCasts(logits);
  if (const Expr *any = getNegated(condition)) {
    const Expr *term = getReducedTerm<arith::OrIOp>(exprs, elements, any, loop);
    return term && comparesWithInfinity(term, logits, /*isEqual=*/false);
  }
  const Expr *term =
      getReducedTerm<arith::AndIOp>(exprs, elements, condition, loop);
  return term && comparesWithInfinity(term, logits, /*isEqual=*/true);
}

const Expr *mlir::posenc::raise::getSoftmaxLogits(ExprContext &exprs,
                                                  Elements &elements,
                                                  const Expr *weight,
                                                  unsigned loop,
                                                  std::string &reason) {
  weight = stripCasts(weight);
  // Rows without keys get zeros, as attention gives.
  if (weight->is<arith::SelectOp>())
    for (unsigned zero : {1, 2}) {
      const Expr *condition = weight->operands[0];
      if (weight->operands[zero]->getFloatConstant() != 0.0)
        continue;
      const Expr *logits = getSoftmaxLogits(
          exprs, elements, weight->operands[3 - zero], loop, reason);
      if (!logits)
        return nullptr;
      const Expr *isEmpty = zero == 1 ? condition : getNegated(condition);
      if (isEmpty && (isNaN(isEmpty, weight->operands[3 - zero]) ||
                      isEmptyRow(exprs, elements, isEmpty, logits, loop)))
        return logits;
      reason =
          "weights are replaced under a condition that is not that of rows "
          "without keys";
      return nullptr;
    }
  if (weight->kind == Expr::Kind::Element) {
    auto softmax = weight->tensor.getDefiningOp<linalg::SoftmaxOp>();
    if (!softmax ||
        weight->operands[softmax.getDimension()] != exprs.getLoop(loop))
      return nullptr;
    for (auto [dim, index] : llvm::enumerate(weight->operands))
      if (dim != softmax.getDimension() && dependsOnLoop(index, loop))
        return nullptr;
    return elements.get(softmax.getInput(), weight->operands);
  }
  const Expr *term, *sum;
  if (weight->is<arith::DivFOp>()) {
    term = weight->operands[0];
    sum = weight->operands[1];
  } else if (weight->is<arith::MulFOp>()) {
    // A product with the reciprocal.
    bool isFirst = stripCasts(weight->operands[0])->is<math::ExpOp>();
    term = weight->operands[isFirst ? 0 : 1];
    const Expr *reciprocal = stripCasts(weight->operands[isFirst ? 1 : 0]);
    if (!reciprocal->is<arith::DivFOp>() ||
        reciprocal->operands[0]->getFloatConstant() != 1.0)
      return nullptr;
    sum = reciprocal->operands[1];
  } else {
    return nullptr;
  }
  const Expr *exponent = getExponent(term, loop);
  if (!exponent)
    return nullptr;
  if (!isSumOver(exprs, elements, sum, term, loop)) {
    reason = "exponentials are not divided by their own sum over the keys";
    return nullptr;
  }
  return exponent;
}

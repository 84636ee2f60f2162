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

bool mlir::posenc::raise::isSumOver(ExprContext &exprs, Elements &elements,
                                    const Expr *sum, const Expr *term,
                                    unsigned loop) {
  sum = stripCasts(sum);
  if (sum->kind != Expr::Kind::Element || dependsOnLoop(sum, loop))
    return false;
  auto result = dyn_cast<OpResult>(sum->tensor);
  auto op = result ? dyn_cast<linalg::LinalgOp>(result.getOwner()) : nullptr;
  if (!op || !op.hasPureTensorSemantics() || op.getNumReductionLoops() != 1)
    return false;
  unsigned number = result.getResultNumber();
  OpOperand *init = op.getDpsInitOperand(number);
  // The accumulator is added to something that does not depend on it.
  Block *body = op.getBlock();
  auto add = body->getTerminator()
                 ->getOperand(number)
                 .getDefiningOp<arith::AddFOp>();
  BlockArgument accumulator = op.getMatchingBlockArgument(init);
  if (!add || !accumulator.hasOneUse() ||
      *accumulator.getUsers().begin() != add)
    return false;
  SmallVector<const Expr *> loops(op.getNumLoops(), nullptr);
  for (auto [index, expr] :
       llvm::zip_equal(sum->operands,
                       op.getMatchingIndexingMap(init).getResults()))
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      loops[dim.getPosition()] = index;
  for (const Expr *&index : loops)
    if (!index)
      index = exprs.getLoop(loop);
  // The sizes of the loops must agree: the sum has all terms.
  SmallVector<unsigned> reductions;
  op.getReductionDims(reductions);
  int64_t size = op.getStaticLoopRanges()[reductions[0]];
  if (size != exprs.getSizes()[loop])
    return false;
  // A sum that begins at 0 yields the term itself.
  const Expr *yielded = elements.getYielded(
      op, number, loops,
      SmallVector<const Expr *>(op.getNumDpsInits(), nullptr));
  return yielded && stripCasts(yielded) == stripCasts(term);
}

const Expr *mlir::posenc::raise::getSoftmaxLogits(ExprContext &exprs,
                                                  Elements &elements,
                                                  const Expr *weight,
                                                  unsigned loop,
                                                  std::string &reason) {
  weight = stripCasts(weight);
  if (weight->kind == Expr::Kind::Element) {
    auto softmax = weight->tensor.getDefiningOp<linalg::SoftmaxOp>();
    if (!softmax || weight->operands[softmax.getDimension()] !=
                        exprs.getLoop(loop))
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

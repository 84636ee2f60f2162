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
  return expr->hasPart([&](const Expr *part) {
    return part->kind == Expr::Kind::Index && part->index.isFunctionOfDim(loop);
  });
}

/// Returns s of `s - m`, where m does not depend on the loop, or of several
/// such differences. Appends each m to the shifts.
static const Expr *stripShifts(const Expr *expr, unsigned loop,
                               SmallVectorImpl<const Expr *> *shifts) {
  while (true) {
    expr = stripCasts(expr);
    const Expr *inner = nullptr, *shift = nullptr;
    if (expr->is<arith::SubFOp>() && !dependsOnLoop(expr->operands[1], loop)) {
      inner = expr->operands[0];
      shift = expr->operands[1];
    }
    // s + (-m)
    if (expr->is<arith::AddFOp>())
      for (unsigned side : {0, 1})
        if (expr->operands[side]->is<arith::NegFOp>() &&
            !dependsOnLoop(expr->operands[side], loop)) {
          inner = expr->operands[1 - side];
          shift = expr->operands[side]->operands[0];
        }
    // A row of one key is a shift itself.
    if (!inner || !dependsOnLoop(inner, loop))
      return expr;
    if (shifts)
      shifts->push_back(shift);
    expr = inner;
  }
}

/// Removes the shifts from an expression that does not depend on the loop.
/// Returns null if it has others.
static const Expr *stripShifts(ExprContext &exprs, const Expr *expr,
                               ArrayRef<const Expr *> shifts) {
  for (const Expr *shift : shifts) {
    expr = stripCasts(expr);
    const Expr *inner = nullptr;
    if (expr->is<arith::SubFOp>() && expr->operands[1] == shift)
      inner = expr->operands[0];
    if (expr->is<arith::AddFOp>())
      for (unsigned side : {0, 1})
        if (expr->operands[side]->is<arith::NegFOp>() &&
            expr->operands[side]->operands[0] == shift)
          inner = expr->operands[1 - side];
    // 0 - m
    if (expr->is<arith::NegFOp>() && expr->operands[0] == shift)
      inner = exprs.getConstant(FloatAttr::get(expr->type, 0.0));
    if (!inner)
      return nullptr;
    expr = inner;
  }
  return expr;
}

namespace {
/// An element of a reduction over one loop.
struct Reduction {
  linalg::LinalgOp op;
  unsigned number;
  /// The indices of the loops, null for the reduction.
  SmallVector<const Expr *> loops;
  /// A tensor that the reduction reads, and the dimension it reduces.
  Value tensor;
  int64_t dim;
};
} // namespace

/// Returns the reduction by the operation that the element is the result of, if
/// it starts at the neutral element.
template <typename Combiner>
static std::optional<Reduction> getReduction(const Expr *reduced) {
  if (reduced->kind != Expr::Kind::Element)
    return std::nullopt;
  auto result = dyn_cast<OpResult>(reduced->tensor);
  auto op = result ? dyn_cast<linalg::LinalgOp>(result.getOwner()) : nullptr;
  if (!op || !op.hasPureTensorSemantics() || op.getNumReductionLoops() != 1)
    return std::nullopt;
  Reduction reduction{op, result.getResultNumber(), {}, {}, 0};
  OpOperand *init = op.getDpsInitOperand(reduction.number);
  // The accumulator is combined with something that does not depend on it.
  auto combined = op.getBlock()
                      ->getTerminator()
                      ->getOperand(reduction.number)
                      .template getDefiningOp<Combiner>();
  BlockArgument accumulator = op.getMatchingBlockArgument(init);
  if (!combined || !accumulator.hasOneUse() ||
      *accumulator.getUsers().begin() != combined)
    return std::nullopt;
  reduction.loops.assign(op.getNumLoops(), nullptr);
  for (auto [index, expr] : llvm::zip_equal(
           reduced->operands, op.getMatchingIndexingMap(init).getResults()))
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      reduction.loops[dim.getPosition()] = index;
  if (llvm::count(reduction.loops, nullptr) != 1)
    return std::nullopt;
  unsigned loop =
      llvm::find(reduction.loops, nullptr) - reduction.loops.begin();
  SmallVector<std::pair<Value, unsigned>> dims;
  op.mapIterationSpaceDimToAllOperandDims(loop, dims);
  for (auto [tensor, dim] : dims) {
    auto type = dyn_cast<RankedTensorType>(tensor.getType());
    if (type && (!reduction.tensor || !type.isDynamicDim(dim))) {
      reduction.tensor = tensor;
      reduction.dim = dim;
    }
  }
  return reduction.tensor ? std::optional(reduction) : std::nullopt;
}

/// Returns the term of the reduction at an index, or null.
static const Expr *getTerm(ExprContext &exprs, Elements &elements,
                           Reduction reduction, const Expr *index) {
  *llvm::find(reduction.loops, nullptr) = index;
  // Combined with the neutral element, the term yields itself.
  return elements.getYielded(
      reduction.op, reduction.number, reduction.loops,
      SmallVector<const Expr *>(reduction.op.getNumDpsInits(), nullptr));
}

/// Returns what the element of a reduction by the operation combines over the
/// loop, or null if it is none that starts at the neutral element.
template <typename Combiner>
static const Expr *getReducedTerm(ExprContext &exprs, Elements &elements,
                                  const Expr *reduced, unsigned loop) {
  std::optional<Reduction> reduction = getReduction<Combiner>(reduced);
  // The sizes of the loops must agree: all terms are combined.
  if (!reduction || dependsOnLoop(reduced, loop) ||
      getExcess(exprs, reduction->tensor, reduction->dim, loop) != 0)
    return nullptr;
  return getTerm(exprs, elements, *reduction, exprs.getLoop(loop));
}

/// Returns the index of the column behind those of the loop.
static const Expr *getEnd(ExprContext &exprs, unsigned loop) {
  int64_t size = exprs.getSizes()[loop];
  return ShapedType::isDynamic(size) ? exprs.getLoop(exprs.addEnd(loop))
                                     : exprs.getIndex(size);
}

/// Whether `sum` is the sum of the terms over the loop, and perhaps of one more
/// term, which is then returned in `other`.
static bool isSumOver(ExprContext &exprs, Elements &elements, const Expr *sum,
                      const Expr *term, unsigned loop, const Expr *&other,
                      bool allowsTerm = true) {
  sum = stripCasts(sum);
  term = stripCasts(term);
  // The sum of the others has no such term itself.
  if (sum->is<arith::AddFOp>() && allowsTerm)
    for (unsigned side : {0, 1}) {
      const Expr *none = nullptr;
      if (dependsOnLoop(sum->operands[1 - side], loop) ||
          !isSumOver(exprs, elements, sum->operands[side], term, loop, none,
                     /*allowsTerm=*/false) ||
          none)
        continue;
      other = sum->operands[1 - side];
      return true;
    }
  std::optional<Reduction> reduction = getReduction<arith::AddFOp>(sum);
  if (!reduction || dependsOnLoop(sum, loop))
    return false;
  std::optional<unsigned> excess =
      getExcess(exprs, reduction->tensor, reduction->dim, loop);
  if (!excess)
    return false;
  auto isTerm = [&](AffineExpr index) {
    const Expr *at =
        getTerm(exprs, elements, *reduction, exprs.getIndex(index));
    return at && stripCasts(at) == term;
  };
  AffineExpr index = exprs.getLoop(loop)->index;
  if (*excess == 0)
    return isTerm(index);
  // The other column is the last or the first one.
  if (isTerm(index))
    other = getTerm(exprs, elements, *reduction, getEnd(exprs, loop));
  else if (isTerm(index + 1))
    other = getTerm(exprs, elements, *reduction, exprs.getIndex(0));
  return other && !dependsOnLoop(other, loop);
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
                                 bool isEqual, unsigned loop) {
  if (const Expr *negated = getNegated(condition))
    return comparesWithInfinity(negated, number, !isEqual, loop);
  if (!condition->is<arith::CmpFOp>())
    return false;
  auto predicate = cast<DictionaryAttr>(condition->properties)
                       .getAs<arith::CmpFPredicateAttr>("predicate")
                       .getValue();
  bool isKnown = isEqual ? predicate == arith::CmpFPredicate::OEQ
                         : predicate == arith::CmpFPredicate::UNE ||
                               predicate == arith::CmpFPredicate::ONE ||
                               predicate == arith::CmpFPredicate::OGT;
  return isKnown &&
         stripShifts(condition->operands[0], loop, nullptr) == number &&
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
    return term && comparesWithInfinity(term, logits, /*isEqual=*/false, loop);
  }
  const Expr *term =
      getReducedTerm<arith::AndIOp>(exprs, elements, condition, loop);
  return term && comparesWithInfinity(term, logits, /*isEqual=*/true, loop);
}

/// Returns the index of the column of a linalg.softmax that is no key, or null
/// if all are. Returns nullopt if the keys are other columns.
static std::optional<const Expr *> getOtherColumn(ExprContext &exprs,
                                                  linalg::SoftmaxOp softmax,
                                                  const Expr *index,
                                                  unsigned loop) {
  std::optional<unsigned> excess =
      getExcess(exprs, softmax->getResult(0), softmax.getDimension(), loop);
  AffineExpr ofLoop = exprs.getLoop(loop)->index;
  if (excess == 0 && index->index == ofLoop)
    return nullptr;
  if (excess == 1 && index->index == ofLoop)
    return getEnd(exprs, loop);
  if (excess == 1 && index->index == exprs.getIndex(ofLoop + 1)->index)
    return exprs.getIndex(0);
  return std::nullopt;
}

/// Returns the softmax whose result an element of a linalg.softmax is.
static std::optional<Softmax> getNamedSoftmax(ExprContext &exprs,
                                              Elements &elements,
                                              const Expr *weight, unsigned loop,
                                              std::string &reason) {
  auto op = weight->tensor.getDefiningOp<linalg::SoftmaxOp>();
  if (!op)
    return std::nullopt;
  for (auto [dim, index] : llvm::enumerate(weight->operands))
    if (dim != op.getDimension() && dependsOnLoop(index, loop))
      return std::nullopt;
  const Expr *index = weight->operands[op.getDimension()];
  if (index->kind != Expr::Kind::Index)
    return std::nullopt;
  std::optional<const Expr *> column = getOtherColumn(exprs, op, index, loop);
  if (!column) {
    if (dependsOnLoop(index, loop))
      reason = "the softmax has other columns than the keys";
    return std::nullopt;
  }
  SmallVector<const Expr *> shifts;
  Softmax softmax{stripShifts(elements.get(op.getInput(), weight->operands),
                              loop, &shifts)};
  if (!*column)
    return softmax;
  SmallVector<const Expr *> indices(weight->operands);
  indices[op.getDimension()] = *column;
  softmax.sink =
      stripShifts(exprs, elements.get(op.getInput(), indices), shifts);
  if (softmax.sink)
    return softmax;
  reason = "the column that is no key has another shift than the keys";
  return std::nullopt;
}

std::optional<Softmax> mlir::posenc::raise::getSoftmax(ExprContext &exprs,
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
      std::optional<Softmax> softmax =
          getSoftmax(exprs, elements, weight->operands[3 - zero], loop, reason);
      if (!softmax)
        return std::nullopt;
      const Expr *isEmpty = zero == 1 ? condition : getNegated(condition);
      if (isEmpty &&
          (isNaN(isEmpty, weight->operands[3 - zero]) ||
           isEmptyRow(exprs, elements, isEmpty, softmax->logits, loop)))
        return softmax;
      reason =
          "weights are replaced under a condition that is not that of rows "
          "without keys";
      return std::nullopt;
    }
  if (weight->kind == Expr::Kind::Element)
    return getNamedSoftmax(exprs, elements, weight, loop, reason);
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
      return std::nullopt;
    sum = reciprocal->operands[1];
  } else {
    return std::nullopt;
  }
  const Expr *power = stripCasts(term);
  if (!power->is<math::ExpOp>())
    return std::nullopt;
  SmallVector<const Expr *> shifts;
  Softmax softmax{stripShifts(power->operands[0], loop, &shifts)};
  const Expr *other = nullptr;
  if (!isSumOver(exprs, elements, sum, term, loop, other)) {
    reason = "exponentials are not divided by their own sum over the keys";
    return std::nullopt;
  }
  if (!other)
    return softmax;
  other = stripCasts(other);
  if (other->is<math::ExpOp>())
    softmax.sink = stripShifts(exprs, other->operands[0], shifts);
  else if (shifts.empty() && other->getFloatConstant() == 1.0)
    softmax.sink = exprs.getConstant(FloatAttr::get(other->type, 0.0));
  if (softmax.sink)
    return softmax;
  reason = "the sum of exponentials has a term that is none of them, or has "
           "another shift";
  return std::nullopt;
}

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
#include "mlir/Dialect/Tensor/IR/Tensor.h"

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

/// Whether the operation changes its sign with that of an operand.
static bool isOdd(const Expr *expr) {
  return expr->is<arith::MulFOp, arith::DivFOp, arith::ExtFOp, arith::TruncFOp,
                  math::SinOp>();
}

/// Returns the factor without the signs of its negations and of its constants,
/// also those within products and angles, and changes `isNegative` for each of
/// them.
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
  bool isCos = factor->is<math::CosOp>();
  if (!isOdd(factor) && !isCos)
    return factor;
  bool ofOperands = false;
  SmallVector<const Expr *> operands;
  for (const Expr *operand : factor->operands)
    operands.push_back(removeSigns(exprs, operand, ofOperands));
  isNegative ^= ofOperands && !isCos;
  return exprs.getLike(factor, operands);
}

namespace {
/// Elements of a constant whose indices are equal in some dimensions.
struct ConstantColumn {
  DenseFPElementsAttr constant;
  /// The indices, or nothing for any.
  SmallVector<std::optional<int64_t>> indices;

  /// Returns the positions of the elements in the constant.
  std::vector<int64_t> getPositions() const {
    std::vector<int64_t> positions{0};
    for (auto [index, size] :
         llvm::zip_equal(indices, constant.getType().getShape())) {
      std::vector<int64_t> outer = std::move(positions);
      positions.clear();
      for (int64_t position : outer)
        for (int64_t inner = index.value_or(0), end = index ? *index + 1 : size;
             inner < end; ++inner)
          positions.push_back(position * size + inner);
    }
    return positions;
  }
};
} // namespace

/// Returns the column of a constant, or of a slice of one, whose constant
/// indices the element has.
static std::optional<ConstantColumn> getConstantColumn(const Expr *element) {
  ConstantColumn column;
  for (const Expr *index : element->operands)
    column.indices.push_back(index->getIndexConstant());
  Value tensor = element->tensor;
  while (auto slice = tensor.getDefiningOp<tensor::ExtractSliceOp>()) {
    if (slice.getDroppedDims().any())
      return std::nullopt;
    for (auto [index, offset, stride] :
         llvm::zip_equal(column.indices, slice.getStaticOffsets(),
                         slice.getStaticStrides()))
      if (index) {
        if (ShapedType::isDynamic(offset) || ShapedType::isDynamic(stride))
          return std::nullopt;
        index = offset + *index * stride;
      }
    tensor = slice.getSource();
  }
  auto constant = tensor.getDefiningOp<arith::ConstantOp>();
  if (!constant)
    return std::nullopt;
  column.constant = dyn_cast<DenseFPElementsAttr>(constant.getValue());
  return column.constant ? std::optional(column) : std::nullopt;
}

/// Whether both are elements of a constant, in columns that are negatives of
/// each other. A column of zeros is not.
static bool areOppositeColumns(const Expr *a, const Expr *b) {
  if (a->tensor != b->tensor)
    return false;
  for (auto [ofA, ofB] : llvm::zip_equal(a->operands, b->operands))
    if (ofA != ofB && !(ofA->getIndexConstant() && ofB->getIndexConstant()))
      return false;
  std::optional<ConstantColumn> first = getConstantColumn(a),
                                second = getConstantColumn(b);
  if (!first || !second)
    return false;
  auto numbers = first->constant.value_begin<APFloat>();
  int64_t size = first->constant.getNumElements();
  bool hasNumber = false;
  for (auto [at, other] :
       llvm::zip_equal(first->getPositions(), second->getPositions())) {
    if (at < 0 || at >= size || other < 0 || other >= size)
      return false;
    APFloat number = *(numbers + at);
    if (number.compare(neg(*(numbers + other))) != APFloat::cmpEqual)
      return false;
    hasNumber |= !number.isZero();
  }
  return hasNumber;
}

bool mlir::posenc::raise::areOpposite(const Expr *a, const Expr *b) {
  if (!a || !b || a == b || a->kind != b->kind)
    return false;
  if (a->kind == Expr::Kind::Element)
    return areOppositeColumns(a, b);
  if (!isOdd(a) || a->name != b->name)
    return false;
  bool hasOpposite = false;
  for (auto [ofA, ofB] : llvm::zip_equal(a->operands, b->operands)) {
    if (ofA == ofB)
      continue;
    if (hasOpposite || !areOpposite(ofA, ofB))
      return false;
    hasOpposite = true;
  }
  return hasOpposite;
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

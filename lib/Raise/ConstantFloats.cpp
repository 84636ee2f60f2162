//===- ConstantFloats.cpp - values of constant expressions ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ConstantFloats.h"

#include "posenc/Support/BigFloat.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::posenc::raise;
using llvm::APFloat;
using ::posenc::BigFloat;

/// Larger exponents of exp overflow or underflow in f64.
static constexpr double kMaxExponent = 750;

static APFloat convert(APFloat value, Type type) {
  bool losesInfo;
  value.convert(cast<FloatType>(type).getFloatSemantics(),
                APFloat::rmNearestTiesToEven, &losesInfo);
  return value;
}

static double toDouble(const APFloat &value) {
  bool losesInfo;
  APFloat wide = value;
  wide.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
  return wide.convertToDouble();
}

/// Rounds a result of f32 or f64 once.
static APFloat round(const BigFloat &value, Type type) {
  return type.isF32() ? APFloat(value.toFloat()) : APFloat(value.toDouble());
}

/// Returns base^exponent for a positive base, if it is in the range of f64.
static std::optional<BigFloat> power(const BigFloat &base,
                                     const BigFloat &exponent) {
  if (!(base > BigFloat(0.0)) ||
      std::abs((exponent * log(base)).toDouble()) > kMaxExponent)
    return std::nullopt;
  return pow(base, exponent);
}

/// Returns the value of a function of `math` on f32 or f64.
static std::optional<APFloat> evaluateFunction(const Expr *expr,
                                               ArrayRef<APFloat> operands) {
  if (!expr->type.isF32() && !expr->type.isF64())
    return std::nullopt;
  if (expr->is<math::FloorOp>()) {
    APFloat floor = operands[0];
    floor.roundToIntegral(APFloat::rmTowardNegative);
    return floor;
  }
  SmallVector<BigFloat, 2> numbers;
  for (const APFloat &operand : operands) {
    if (!operand.isFinite())
      return std::nullopt;
    numbers.push_back(toDouble(operand));
  }
  // e is not a double: exp(x) is taken as 2^(x / ln 2).
  BigFloat two(2.0), zero(0.0);
  std::optional<BigFloat> result;
  if (expr->is<math::ExpOp>())
    result = power(two, numbers[0] / log(two));
  else if (expr->is<math::Exp2Op>())
    result = power(two, numbers[0]);
  else if (expr->is<math::PowFOp>())
    result = power(numbers[0], numbers[1]);
  else if (expr->is<math::SqrtOp>())
    result = power(numbers[0], 0.5);
  else if (expr->is<math::RsqrtOp>())
    result = power(numbers[0], -0.5);
  else if (expr->is<math::LogOp>() && numbers[0] > zero)
    result = log(numbers[0]);
  else if (expr->is<math::Log2Op>() && numbers[0] > zero)
    result = log(numbers[0]) / log(two);
  if (!result)
    return std::nullopt;
  return round(*result, expr->type);
}

namespace {
/// Evaluates each expression once: operands may be common to many.
class Evaluator {
public:
  std::optional<APFloat> get(const Expr *expr) {
    if (auto it = known.find(expr); it != known.end())
      return it->second;
    std::optional<APFloat> value = evaluate(expr);
    known.insert({expr, value});
    return value;
  }

private:
  std::optional<APFloat> evaluate(const Expr *expr);

  llvm::DenseMap<const Expr *, std::optional<APFloat>> known;
};
} // namespace

std::optional<APFloat> Evaluator::evaluate(const Expr *expr) {
  auto type = dyn_cast<FloatType>(expr->type);
  if (!type)
    return std::nullopt;
  if (expr->kind == Expr::Kind::Constant)
    return cast<FloatAttr>(expr->constant).getValue();
  if (expr->kind != Expr::Kind::Operation)
    return std::nullopt;
  if (expr->is<arith::SIToFPOp, arith::UIToFPOp>()) {
    std::optional<int64_t> number = expr->operands[0]->getIndexConstant();
    if (!number || (*number < 0 && expr->is<arith::UIToFPOp>()))
      return std::nullopt;
    APFloat value(type.getFloatSemantics());
    value.convertFromAPInt(APInt(64, *number, /*isSigned=*/true),
                           /*IsSigned=*/true, APFloat::rmNearestTiesToEven);
    return value;
  }
  SmallVector<APFloat, 2> operands;
  for (const Expr *operand : expr->operands) {
    std::optional<APFloat> value = get(operand);
    if (!value)
      return std::nullopt;
    operands.push_back(*value);
  }
  if (expr->is<arith::ExtFOp, arith::TruncFOp>())
    return convert(operands[0], type);
  if (expr->is<arith::NegFOp>())
    return -operands[0];
  if (expr->is<arith::AddFOp>())
    return operands[0] + operands[1];
  if (expr->is<arith::SubFOp>())
    return operands[0] - operands[1];
  if (expr->is<arith::MulFOp>())
    return operands[0] * operands[1];
  if (expr->is<arith::DivFOp>())
    return operands[0] / operands[1];
  return evaluateFunction(expr, operands);
}

std::optional<APFloat> mlir::posenc::raise::evaluateFloat(const Expr *expr) {
  return Evaluator().get(expr);
}

std::optional<double> mlir::posenc::raise::evaluateNumber(const Expr *expr) {
  std::optional<APFloat> value = evaluateFloat(expr);
  return value ? std::optional(toDouble(*value)) : std::nullopt;
}

bool mlir::posenc::raise::isExponential(const Expr *expr) {
  return expr->hasPart(
      [](const Expr *part) { return part->is<math::ExpOp, math::Exp2Op>(); });
}

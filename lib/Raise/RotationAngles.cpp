//===- RotationAngles.cpp - angles in tables of cos and sin ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RotationAngles.h"

#include "ConstantFloats.h"
#include "SoftmaxForm.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace mlir;
using namespace mlir::posenc::raise;

namespace {
/// Reads the elements of tables.
class AngleReader {
public:
  AngleReader(ExprContext &exprs, std::string &reason)
      : exprs(exprs), reason(reason) {}

  std::optional<TableAngles> read(ArrayRef<const Expr *> cos,
                                  ArrayRef<const Expr *> sin);

private:
  std::optional<Angle> getAngle(const Expr *expr);
  std::optional<Angle> getConstantAngle(const Expr *expr);
  bool setPosition(const Expr *expr, Angle &angle);
  const Expr *getInteger(const Expr *element);
  const Expr *getRow(const Expr *index);
  std::optional<TableAngles> readColumns(ArrayRef<const Expr *> cos,
                                         ArrayRef<const Expr *> sin,
                                         double factor);
  std::nullopt_t miss(const Twine &why) {
    if (reason.empty())
      reason = why.str();
    return std::nullopt;
  }

  ExprContext &exprs;
  std::string &reason;
  /// Constant tensors of floats as tensors of integers.
  llvm::DenseMap<Value, Value> integers;
};
} // namespace

const Expr *mlir::posenc::raise::stripFactor(const Expr *expr, double &factor) {
  factor = 1;
  while (true) {
    expr = stripCasts(expr);
    if (expr->is<arith::NegFOp>()) {
      factor = -factor;
      expr = expr->operands[0];
      continue;
    }
    bool isProduct = expr->is<arith::MulFOp>();
    if (!isProduct && !expr->is<arith::DivFOp>())
      return expr;
    const Expr *number = expr->operands[1], *rest = expr->operands[0];
    std::optional<APFloat> value = evaluateFloat(number);
    if (!value && isProduct) {
      std::swap(number, rest);
      value = evaluateFloat(number);
    }
    if (!value)
      return expr;
    double constant = FloatAttr::getValueAsDouble(*value);
    factor = isProduct ? factor * constant : factor / constant;
    expr = rest;
  }
}

/// Returns the integer that the number of a row is computed from.
const Expr *AngleReader::getRow(const Expr *index) {
  while (index->is<arith::IndexCastOp>())
    index = index->operands[0];
  return index;
}

/// Returns the element of a constant tensor of floats as one of integers, or
/// null if the tensor has other numbers.
const Expr *AngleReader::getInteger(const Expr *element) {
  if (element->kind != Expr::Kind::Element)
    return nullptr;
  auto constant = element->tensor.getDefiningOp<arith::ConstantOp>();
  auto elements =
      constant ? dyn_cast<DenseFPElementsAttr>(constant.getValue()) : nullptr;
  if (!elements)
    return nullptr;
  SmallVector<int64_t> numbers;
  for (const APFloat &value : elements) {
    double number = FloatAttr::getValueAsDouble(value);
    if (!(std::abs(number) < 0x1p53) || number != std::trunc(number))
      return nullptr;
    numbers.push_back(static_cast<int64_t>(number));
  }
  // One tensor for all lanes, so that they have one position.
  Value &tensor = integers[element->tensor];
  if (!tensor) {
    OpBuilder builder(constant);
    auto type = RankedTensorType::get(elements.getType().getShape(),
                                      builder.getI64Type());
    tensor = arith::ConstantOp::create(
        builder, constant.getLoc(), type,
        DenseElementsAttr::get<int64_t>(type, numbers));
  }
  return exprs.getElement(tensor, element->operands);
}

/// Sets the position of an angle from an operand of its product.
bool AngleReader::setPosition(const Expr *expr, Angle &angle) {
  auto type = cast<FloatType>(expr->type);
  bool isF32 = type.isF32();
  if (!isF32)
    angle.rounding = AngleRounding::Other;
  if (type.getWidth() < 32) {
    miss("positions are rounded to " + llvm::formatv("{0}", type));
    return false;
  }
  while (expr->is<arith::ExtFOp>()) {
    expr = expr->operands[0];
    type = cast<FloatType>(expr->type);
    if (type.getWidth() < 32) {
      miss("positions are rounded to " + llvm::formatv("{0}", type));
      return false;
    }
  }
  angle.position =
      expr->is<arith::SIToFPOp>() ? expr->operands[0] : getInteger(expr);
  if (angle.position)
    return true;
  if (expr->is<arith::MulFOp, arith::DivFOp>() &&
      llvm::any_of(expr->operands, [](const Expr *operand) {
        return evaluateFloat(operand).has_value();
      }))
    miss("positions are scaled");
  else
    miss("angles are not products of integer positions and constants");
  return false;
}

/// Returns the angle of a constant table of angles.
std::optional<Angle> AngleReader::getConstantAngle(const Expr *expr) {
  std::optional<TableColumn> column = getColumn(expr);
  std::optional<float> frequency = getAngleFrequency(*column);
  if (!frequency)
    return miss("the constant angles are not products of their rows' numbers "
                "and frequencies");
  return Angle{getRow(column->row), {*frequency, *frequency}};
}

std::optional<Angle> AngleReader::getAngle(const Expr *expr) {
  auto type = cast<FloatType>(expr->type);
  if (!type.isF32() && !type.isF64())
    return miss("angles are " + llvm::formatv("{0}", type));
  if (expr->is<arith::ExtFOp>() && !expr->operands[0]->is<arith::SIToFPOp>())
    return miss("angles are rounded before cos and sin");
  // A position is the angle itself, if the frequency is 1.
  if (!getInteger(expr) && getColumn(expr))
    return getConstantAngle(expr);
  Angle angle;
  if (type.isF64())
    angle.rounding = AngleRounding::Other;
  auto setFrequency = [&](const Expr *number) {
    std::optional<APFloat> value = evaluateFloat(number);
    if (!value || !value->isFinite())
      return false;
    double frequency = FloatAttr::getValueAsDouble(*value);
    angle.frequency = {frequency, frequency};
    angle.isExponential = isExponential(number);
    return true;
  };
  if (expr->is<arith::DivFOp>() && setFrequency(expr->operands[1])) {
    angle.frequency.min = angle.frequency.max = 1 / angle.frequency.max;
    angle.rounding = AngleRounding::Other;
    if (!std::isfinite(angle.frequency.max))
      return miss("a frequency is infinite");
    if (!setPosition(expr->operands[0], angle))
      return std::nullopt;
    return angle;
  }
  if (expr->is<arith::MulFOp>()) {
    for (unsigned side : {0, 1})
      if (setFrequency(expr->operands[side])) {
        if (!setPosition(expr->operands[1 - side], angle))
          return std::nullopt;
        return angle;
      }
    return miss("frequencies are not constants");
  }
  angle.frequency = {1, 1};
  if (!setPosition(expr, angle))
    return std::nullopt;
  return angle;
}

std::optional<TableAngles> AngleReader::readColumns(ArrayRef<const Expr *> cos,
                                                    ArrayRef<const Expr *> sin,
                                                    double factor) {
  SmallVector<TableColumn> columns[2];
  ArrayRef<const Expr *> both[] = {cos, sin};
  for (auto [table, elements] : llvm::zip_equal(columns, both))
    for (const Expr *element : elements) {
      std::optional<TableColumn> column = getColumn(element);
      if (!column)
        return miss("tables are neither cos and sin of angles nor constants "
                    "of f32");
      table.push_back(std::move(*column));
    }
  TableAngles tables;
  std::optional<SmallVector<FrequencyRange>> frequencies =
      getTableFrequencies(columns[0], columns[1], tables.factor, reason);
  if (!frequencies)
    return std::nullopt;
  tables.factor *= factor;
  for (auto [column, frequency] : llvm::zip_equal(columns[0], *frequencies))
    tables.lanes.push_back({getRow(column.row), frequency});
  return tables;
}

std::optional<TableAngles> AngleReader::read(ArrayRef<const Expr *> cos,
                                             ArrayRef<const Expr *> sin) {
  TableAngles tables;
  SmallVector<const Expr *> inner[2];
  ArrayRef<const Expr *> both[] = {cos, sin};
  for (auto [table, elements] : llvm::zip_equal(inner, both))
    for (const Expr *element : elements) {
      double factor;
      table.push_back(stripFactor(element, factor));
      if (&table == &inner[0] && table.size() == 1)
        tables.factor = factor;
      if (factor != tables.factor)
        return miss("factors of cos and sin differ");
    }
  if (!(tables.factor > 0) || !std::isfinite(tables.factor))
    return miss("the factor of cos and sin is not positive");
  if (!inner[0].front()->is<math::CosOp>())
    return readColumns(inner[0], inner[1], tables.factor);
  for (auto [c, s] : llvm::zip_equal(inner[0], inner[1])) {
    if (!c->is<math::CosOp>() || !s->is<math::SinOp>() ||
        c->operands[0] != s->operands[0])
      return miss("cos and sin have other angles");
    std::optional<Angle> angle = getAngle(c->operands[0]);
    if (!angle)
      return std::nullopt;
    tables.lanes.push_back(*angle);
  }
  return tables;
}

std::optional<TableAngles>
mlir::posenc::raise::getAngles(ExprContext &exprs, ArrayRef<const Expr *> cos,
                               ArrayRef<const Expr *> sin,
                               std::string &reason) {
  return AngleReader(exprs, reason).read(cos, sin);
}

//===- SinusoidalAngles.cpp - angles of a sinusoidal table ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One pair does not tell its position from a scale. The position is the largest
// part of the last angle, whose frequency is not 1, that the others have, too.
//
//===----------------------------------------------------------------------===//

#include "SinusoidalAngles.h"

#include "ConstantFloats.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace mlir;
using namespace mlir::posenc::raise;

/// A scale of the position, the frequency and a scale of the angle.
static constexpr unsigned kMaxFactors = 3;

namespace {
/// A constant that an expression is multiplied or divided by.
struct Factor {
  const Expr *rest = nullptr;
  double value = 1;
  bool isProduct = true, isExponential = false;
};
} // namespace

static std::optional<Factor> splitFactor(const Expr *expr) {
  bool isProduct = expr->is<arith::MulFOp>();
  if (!isProduct && !expr->is<arith::DivFOp>())
    return std::nullopt;
  for (unsigned side : {1, 0}) {
    // A constant is divided by the position.
    if (side == 0 && !isProduct)
      break;
    const Expr *number = expr->operands[side];
    std::optional<llvm::APFloat> constant = evaluateFloat(number);
    if (!constant)
      continue;
    double value = FloatAttr::getValueAsDouble(*constant);
    value = isProduct ? value : 1 / value;
    if (!std::isfinite(value))
      break;
    return Factor{expr->operands[1 - side], value, isProduct,
                  isExponential(number)};
  }
  return std::nullopt;
}

/// Whether products with the number, and with its reciprocal, are not rounded.
static bool isPowerOfTwo(double number) {
  int exponent;
  return std::abs(std::frexp(number, &exponent)) == 0.5;
}

/// Adds the frequency of an angle if it is a multiple of the position.
static bool addFrequency(const Expr *angle, const Expr *position,
                         SinusoidalAngles &angles) {
  double frequency = 1, tolerance = 1;
  unsigned numRounded = 0;
  for (unsigned number = 0; angle != position; ++number) {
    std::optional<Factor> factor =
        number < kMaxFactors ? splitFactor(angle) : std::nullopt;
    if (!factor)
      return false;
    // The reciprocal of a divisor is rounded, too.
    if (!isPowerOfTwo(factor->value))
      numRounded += factor->isProduct ? 1 : 2;
    // An exponent x that is rounded to f32 makes an error of x units. It is the
    // quotient of a product with a logarithm, all of which are rounded.
    if (factor->isExponential && factor->value > 0)
      tolerance += 3 * std::abs(std::log(factor->value));
    frequency *= factor->value;
    angle = factor->rest;
  }
  if (numRounded > 1)
    angles.rounding = AngleRounding::Other;
  angles.frequencies.push_back({{frequency, frequency}, tolerance});
  return std::isfinite(frequency);
}

/// Returns the integer that a position is converted from, if its range is that
/// of positions, or the position.
static const Expr *getInteger(const Expr *position) {
  const Expr *number = position;
  while (number->is<arith::ExtFOp>())
    number = number->operands[0];
  if (!number->is<arith::SIToFPOp>() ||
      cast<FloatType>(number->type).getWidth() < 32)
    return position;
  const Expr *integer = number->operands[0];
  bool isPosition =
      integer->type.isIndex() ||
      (integer->type.isSignlessInteger() && !integer->type.isInteger(1) &&
       integer->type.getIntOrFloatBitWidth() <= 64);
  return isPosition ? integer : position;
}

bool mlir::posenc::raise::hasPhase(const Expr *angle) {
  return angle->is<arith::AddFOp, arith::SubFOp>() &&
         llvm::any_of(angle->operands, [](const Expr *operand) {
           return evaluateFloat(operand).has_value();
         });
}

std::optional<SinusoidalAngles>
mlir::posenc::raise::getSinusoidalAngles(ArrayRef<const Expr *> angles,
                                         std::string &reason) {
  Type type = angles.back()->type;
  if (!type.isF32() && !type.isF64()) {
    reason = llvm::formatv("its angles are {0}", type).str();
    return std::nullopt;
  }
  // The angle of a table with a single pair may be the position itself.
  bool isSingle = angles.size() == 2;
  const Expr *candidate = angles.back();
  bool isProduct = false;
  for (unsigned number = 0; number <= kMaxFactors; ++number) {
    if (evaluateFloat(candidate))
      return std::nullopt;
    SinusoidalAngles found;
    if ((number > 0 || isSingle) &&
        llvm::all_of(angles, [&](const Expr *angle) {
          return addFrequency(angle, candidate, found);
        })) {
      found.position = getInteger(candidate);
      if (!type.isF32())
        found.rounding = AngleRounding::Other;
      // Else the sine and cosine of a float, such as those of a matrix.
      if (!isSingle || !isa<FloatType>(found.position->type))
        return found;
    }
    std::optional<Factor> factor = splitFactor(candidate);
    if (!factor)
      break;
    isProduct = true;
    candidate = factor->rest;
  }
  if (isSingle)
    return std::nullopt;
  if (llvm::any_of(angles, hasPhase))
    reason = "its angles have a phase";
  else if (isProduct && !candidate->is<arith::MulFOp>())
    reason = "its lanes have different positions";
  else
    reason = "its angles are not products of positions and constants";
  return std::nullopt;
}

//===- ScalarBounds.cpp - scalars and how far they may be off ---*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScalarBounds.h"

#include "ScalarFunctions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/StringSwitch.h"

#include <cmath>

using namespace mlir;
using namespace mlir::posenc;
namespace reference = ::posenc::reference;
using reference::DType;

using Bounded = BoundedScalar;
using Operands = ArrayRef<BoundedScalar>;

namespace {
/// How the errors of operands reach the result.
enum Propagation : unsigned {
  /// The largest change is at the ends of the operands' ranges.
  Ends,
  Quotient,
  Remainder,
  /// As far as the operand changes, and by 2 at the most.
  Wave,
  Tangent,
  Angle,
  Power,
  CopySign,
  Select,
  CompareFloats,
  CompareIntegers,
  Classify,
  FromInteger,
  ToInteger,
  IntegerSum,
  IntegerProduct,
  /// One of the operands, or all of it.
  IntegerMove,
  Bits,
};
} // namespace

static Propagation getPropagation(Operation *op) {
  StringRef name = op->getName().getStringRef();
  bool isReal = findRealFunction(name) != nullptr;
  return llvm::StringSwitch<Propagation>(name)
      .Case("arith.divf", Quotient)
      .Case("arith.remf", Remainder)
      .Cases({"math.sin", "math.cos"}, Wave)
      .Case("math.tan", Tangent)
      .Case("math.atan2", Angle)
      .Cases({"math.powf", "math.fpowi"}, Power)
      .Case("math.copysign", CopySign)
      .Case("arith.select", Select)
      .Case("arith.cmpf", CompareFloats)
      .Case("arith.cmpi", CompareIntegers)
      .Cases({"math.isfinite", "math.isinf", "math.isnan"}, Classify)
      .Cases({"arith.sitofp", "arith.uitofp"}, FromInteger)
      .Cases({"arith.fptosi", "arith.fptoui"}, ToInteger)
      .Cases({"arith.addi", "arith.subi"}, IntegerSum)
      .Case("arith.muli", IntegerProduct)
      .Cases({"arith.maxsi", "arith.minsi", "arith.extsi", "arith.trunci",
              "arith.index_cast"},
             IntegerMove)
      .Default(isReal ? Ends : Bits);
}

static Rounding getRounding(Operation *op) {
  StringRef name = op->getName().getStringRef();
  return llvm::StringSwitch<Rounding>(name)
      .Cases({"arith.addf", "arith.subf", "arith.mulf", "arith.divf",
              "arith.truncf", "arith.sitofp", "arith.uitofp", "math.fma"},
             Rounding::Once)
      .Cases({"math.absf", "math.ceil", "math.floor", "math.round",
              "math.roundeven", "math.trunc", "math.copysign", "math.clampf",
              "math.isfinite", "math.isinf", "math.isnan"},
             Rounding::None)
      .Default(name.starts_with("math.") ? Rounding::Function : Rounding::None);
}

/// How far two numbers are apart that a kernel may take for each other.
static double getDistance(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b)))
    return 0;
  double distance = std::fabs(a - b);
  return std::isnan(distance) ? HUGE_VAL : distance;
}

//===----------------------------------------------------------------------===//
// Rounding
//===----------------------------------------------------------------------===//

static double getUnit(DType type, double size) {
  return double(reference::ulp(type, size));
}

Bounded mlir::posenc::roundBounded(Type elementType, double value, double error,
                                   Rounding rounding) {
  Bounded result{Scalar::of(value), error};
  if (std::isnan(error))
    result.error = HUGE_VAL;
  if (!std::isfinite(value) || !(error < HUGE_VAL))
    return result;
  DType type = *getReferenceType(elementType);
  if (rounding == Rounding::None && error == 0)
    return result;
  // What is a number of the type stays what it is. Of f64 the reference's own
  // rounding hides that.
  bool isExact =
      rounding == Rounding::None ||
      (rounding == Rounding::Once && error == 0 && type != DType::F64 &&
       double(reference::roundTo(type, value)) == value);
  double size = std::fabs(value) + error;
  if (!isExact) {
    // Functions of 16 bits are those of f32, rounded once.
    bool isShort = type == DType::F16 || type == DType::BF16;
    double units = rounding == Rounding::Once || isShort ? 0.51 : 4.01;
    if (type == DType::F64)
      units = rounding == Rounding::Once ? 1.01 : 5;
    result.error += units * getUnit(type, size);
    double normal = double(reference::smallestNormal(type));
    // Hardware may flush.
    if (type == DType::BF16 && std::fabs(value) - error < normal)
      result.error += normal;
  }
  if (type == DType::F64)
    return result;
  double bound = double(reference::overflowBound(type));
  if (size + getUnit(type, size) < bound)
    return result;
  double rounded = double(reference::roundTo(type, value));
  bool isCertain = error == 0 || std::fabs(value) - error >= bound;
  if (std::isinf(rounded) && isCertain)
    return {Scalar::of(rounded), 0};
  if (!isCertain)
    result.error = HUGE_VAL;
  return result;
}

Bounded mlir::posenc::multiplyBounded(const Bounded &a, const Bounded &b) {
  double x = a.value.real, y = b.value.real;
  Bounded product{Scalar::of(x * y), 0};
  if (a.error == 0 && b.error == 0)
    return product;
  if (std::isfinite(x) && std::isfinite(y)) {
    product.error =
        std::fabs(x) * b.error + std::fabs(y) * a.error + a.error * b.error;
  } else if (a.error == HUGE_VAL || b.error == HUGE_VAL) {
    product.error = HUGE_VAL;
  } else if (!std::isnan(x * y)) {
    // The sign of an infinity may depend on the other factor.
    bool isCertain = (std::isinf(x) || std::fabs(x) > a.error) &&
                     (std::isinf(y) || std::fabs(y) > b.error);
    product.error = isCertain ? 0 : HUGE_VAL;
  } else if (!std::isnan(x) && !std::isnan(y)) {
    // An infinity times what may be 0.
    product.error = HUGE_VAL;
  }
  if (std::isnan(product.error))
    product.error = HUGE_VAL;
  return product;
}

//===----------------------------------------------------------------------===//
// Propagation
//===----------------------------------------------------------------------===//

/// The largest change at the ends of the ranges of floats.
static double getChangeAtEnds(const ScalarStep &step, Operands operands,
                              double center) {
  double change = 0;
  Scalar ends[kMaxScalarOperands];
  for (unsigned corner = 0; corner < 1u << operands.size(); ++corner) {
    for (auto [i, operand] : llvm::enumerate(operands)) {
      ends[i] = operand.value;
      if (operand.error != 0)
        ends[i].real += corner & 1u << i ? operand.error : -operand.error;
    }
    change = std::fmax(change, getDistance(step.compute(ends).real, center));
  }
  return change;
}

/// Whether a float may be 0 or of either sign.
static bool mayVanish(const Bounded &operand) {
  return std::fabs(operand.value.real) <= operand.error;
}

/// What the errors of floats change at the most.
static double getRealChange(const ScalarStep &step, unsigned propagation,
                            Operands operands, double center) {
  double x = operands[0].value.real, error = operands[0].error;
  const bool isBinary = operands.size() > 1;
  switch (propagation) {
  case Quotient:
    if (operands[1].error != 0 && mayVanish(operands[1]))
      return HUGE_VAL;
    break;
  case Remainder: {
    // Where the quotient's whole part is another one, so is the result.
    double y = operands[1].value.real, slack = operands[1].error;
    double largest = 2 * (std::fabs(y) + slack);
    if (!std::isfinite(center) || slack >= std::fabs(y))
      return HUGE_VAL;
    double first = std::trunc((x - error) / (y - slack));
    for (double numerator : {x - error, x + error})
      for (double denominator : {y - slack, y + slack})
        if (std::trunc(numerator / denominator) != first)
          return largest;
    break;
  }
  case Wave:
    return std::fmin(error, 2);
  case Tangent:
    if (std::nearbyint((x - error) / M_PI) !=
            std::nearbyint((x + error) / M_PI) ||
        error >= 1)
      return HUGE_VAL;
    break;
  case Angle:
    // Around the origin and across the cut it is any angle.
    if (mayVanish(operands[0]) &&
        (operands[1].value.real < 0 || mayVanish(operands[1])))
      return 2 * M_PI;
    break;
  case Power: {
    bool isInteger = isa<IntegerType>(step.op->getOperand(1).getType());
    if (isInteger && operands[1].error != 0)
      return HUGE_VAL;
    if (!isInteger && operands[1].error != 0 && x - error <= 0)
      return HUGE_VAL;
    double exponent =
        isInteger ? double(operands[1].value.integer) : operands[1].value.real;
    if (exponent < 0 && mayVanish(operands[0]))
      return HUGE_VAL;
    break;
  }
  case CopySign:
    if (isBinary && operands[1].error != 0 && mayVanish(operands[1]))
      return 2 * std::fabs(x) + error;
    return error;
  default:
    break;
  }
  return getChangeAtEnds(step, operands, center);
}

static double toReal(Type type, Scalar value) {
  return isa<FloatType>(type) ? value.real : double(value.integer);
}

static unsigned getWidth(Type type) {
  return type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
}

/// The error of a sum and so on of integers, infinite if it may wrap around.
static double checkWidth(Type type, double value, double error) {
  double end = std::ldexp(1.0, int(getWidth(type)) - 1);
  return std::fabs(value) + error < end ? error : HUGE_VAL;
}

/// The errors of integers reach the result if that is known to be near.
static double getIntegerChange(const ScalarStep &step, unsigned propagation,
                               Operands operands, Scalar center) {
  Type type = step.op->getResult(0).getType();
  double a = double(operands[0].value.integer), error = operands[0].error;
  double b = 0, slack = 0;
  if (operands.size() > 1) {
    b = double(operands[1].value.integer);
    slack = operands[1].error;
  }
  if (type.isInteger(1) && step.op->getOperand(0).getType().isInteger(1)) {
    // Bits that are uncertain are tried out.
    Scalar bits[kMaxScalarOperands];
    for (unsigned flips = 0; flips < 1u << operands.size(); ++flips) {
      for (auto [i, operand] : llvm::enumerate(operands)) {
        bits[i] = operand.value;
        if (operand.error != 0 && (flips & 1u << i))
          bits[i].integer = ~bits[i].integer;
      }
      if (step.compute(bits).integer != center.integer)
        return 1;
    }
    return 0;
  }
  switch (propagation) {
  case IntegerSum:
    return checkWidth(type, std::fabs(a) + std::fabs(b), error + slack);
  case IntegerProduct:
    return checkWidth(type, a * b,
                      std::fabs(a) * slack + std::fabs(b) * error +
                          error * slack);
  case IntegerMove:
    return checkWidth(type, std::fmax(std::fabs(a), std::fabs(b)),
                      std::fmax(error, slack));
  default:
    return HUGE_VAL;
  }
}

/// Where a comparison may go either way, the result is either bit.
static double getComparisonError(Operands operands, bool areFloats) {
  double error = operands[0].error + operands[1].error;
  if (!areFloats)
    return std::fabs(double(operands[0].value.integer) -
                     double(operands[1].value.integer)) <= error
               ? 1
               : 0;
  double a = operands[0].value.real, b = operands[1].value.real;
  if (std::isnan(a) || std::isnan(b))
    return error == HUGE_VAL ? 1 : 0;
  return getDistance(a, b) <= error ? 1 : 0;
}

static Bounded select(Type type, Operands operands) {
  bool isTrue = operands[0].value.integer != 0;
  const Bounded &chosen = operands[isTrue ? 1 : 2];
  if (operands[0].error == 0)
    return chosen;
  const Bounded &other = operands[isTrue ? 2 : 1];
  double distance =
      getDistance(toReal(type, chosen.value), toReal(type, other.value));
  return {chosen.value, std::fmax(chosen.error, distance + other.error)};
}

/// What has no number in the type has no meaning, so that any will do.
static double getTruncationError(const ScalarStep &step, const Bounded &operand,
                                 Scalar center) {
  bool isUnsigned = isa<arith::FPToUIOp>(step.op);
  int width = int(getWidth(step.op->getResult(0).getType()));
  double end = std::ldexp(1.0, width - (isUnsigned ? 0 : 1)), change = 0;
  for (double sign : {-1.0, 1.0}) {
    Scalar value = operand.value;
    if (operand.error != 0)
      value.real += sign * operand.error;
    double whole = std::trunc(value.real);
    if (!(whole >= (isUnsigned ? 0 : -end) && whole < end))
      return HUGE_VAL;
    change = std::fmax(change, getDistance(double(step.compute(&value).integer),
                                           double(center.integer)));
  }
  return change;
}

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

Bounded BoundedRun::compute(const Step &bounded, Operands operands) {
  const ScalarStep &step = *bounded.step;
  Type type = step.op->getResult(0).getType();
  if (bounded.propagation == Select)
    return select(type, operands);
  SmallVector<Scalar, 8> values;
  bool isExact = true, isUnknown = false;
  for (const Bounded &operand : operands) {
    values.push_back(operand.value);
    isExact &= operand.error == 0;
    isUnknown |= operand.error == HUGE_VAL;
  }
  Scalar center = step.compute(values.data());
  double error = isUnknown ? HUGE_VAL : 0;
  switch (bounded.propagation) {
  case CompareFloats:
  case CompareIntegers:
    return {center, isExact
                        ? 0
                        : getComparisonError(operands, bounded.propagation ==
                                                           CompareFloats)};
  case Classify:
    return {center, isUnknown ? 1.0 : 0.0};
  case ToInteger:
    return {center,
            isUnknown ? error : getTruncationError(step, operands[0], center)};
  case FromInteger:
    // A number without a sign may wrap around.
    if (isa<arith::UIToFPOp>(step.op) && !isExact &&
        double(operands[0].value.integer) < operands[0].error)
      error = HUGE_VAL;
    return roundBounded(type, center.real, std::fmax(error, operands[0].error),
                        bounded.rounding);
  default:
    break;
  }
  if (!isExact && !isUnknown) {
    if (isa<FloatType>(type) && bounded.propagation <= CopySign)
      error = getRealChange(step, bounded.propagation, operands, center.real);
    else
      error = getIntegerChange(step, bounded.propagation, operands, center);
  } else if (step.error && isExact) {
    error = step.error(values.data());
  }
  if (!isa<FloatType>(type))
    return {center, error};
  return roundBounded(type, center.real, error, bounded.rounding);
}

BoundedRun::BoundedRun(const ScalarProgram &program) : program(program) {
  for (auto [value, error] :
       llvm::zip_equal(program.getInitial(), program.getInitialErrors()))
    registers.push_back({value, error});
  for (const ScalarStep &step : program.getSteps())
    steps.push_back({&step, getPropagation(step.op), getRounding(step.op)});
}

void BoundedRun::run(ArrayRef<int64_t> loopIndices) {
  for (auto [number, loop] : program.getIndices())
    registers[number] = {Scalar::of(loopIndices[size_t(loop)]), 0};
  SmallVector<Bounded, 8> operands;
  for (const Step &step : steps) {
    operands.clear();
    for (unsigned number : step.step->from)
      operands.push_back(registers[number]);
    registers[step.step->to] = compute(step, operands);
  }
}

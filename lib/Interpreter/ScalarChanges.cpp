//===- ScalarChanges.cpp - propagation of errors through scalar ops -------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScalarChanges.h"

#include "ScalarFunctions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/StringSwitch.h"

#include <cmath>

using namespace mlir;
using namespace mlir::posenc;

using Bounded = BoundedScalar;
using Operands = ArrayRef<BoundedScalar>;

Propagation mlir::posenc::getPropagation(Operation *op) {
  StringRef name = op->getName().getStringRef();
  bool isReal = findRealFunction(name) != nullptr;
  return llvm::StringSwitch<Propagation>(name)
      .Case("arith.divf", Propagation::Quotient)
      .Case("arith.remf", Propagation::Remainder)
      .Cases({"math.sin", "math.cos"}, Propagation::Wave)
      .Case("math.tan", Propagation::Tangent)
      .Case("math.atan2", Propagation::Angle)
      .Cases({"math.powf", "math.fpowi"}, Propagation::Power)
      .Case("math.copysign", Propagation::CopySign)
      .Case("arith.select", Propagation::Select)
      .Case("arith.cmpf", Propagation::CompareFloats)
      .Case("arith.cmpi", Propagation::CompareIntegers)
      .Cases({"math.isfinite", "math.isinf", "math.isnan"},
             Propagation::Classify)
      .Cases({"arith.sitofp", "arith.uitofp"}, Propagation::FromInteger)
      .Cases({"arith.fptosi", "arith.fptoui"}, Propagation::ToInteger)
      .Cases({"arith.addi", "arith.subi"}, Propagation::IntegerSum)
      .Case("arith.muli", Propagation::IntegerProduct)
      .Cases({"arith.maxsi", "arith.minsi", "arith.extsi", "arith.trunci",
              "arith.index_cast"},
             Propagation::IntegerMove)
      .Default(isReal ? Propagation::Ends : Propagation::Bits);
}

/// Returns |a - b|. Equal infinities and two NaNs differ by 0, a NaN and a
/// number by infinity.
static double getDifference(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b)))
    return 0;
  double difference = std::fabs(a - b);
  return std::isnan(difference) ? HUGE_VAL : difference;
}

/// Returns the largest change of the result over all corners of the operands'
/// error intervals.
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
    change = std::fmax(change, getDifference(step.compute(ends).real, center));
  }
  return change;
}

/// Whether the error interval of a float contains 0.
static bool mayVanish(const Bounded &operand) {
  return std::fabs(operand.value.real) <= operand.error;
}

/// Returns a bound on the change of a float result by errors of its operands.
static double getRealChange(const ScalarStep &step, Propagation propagation,
                            Operands operands, double center) {
  double x = operands[0].value.real, error = operands[0].error;
  const bool isBinary = operands.size() > 1;
  switch (propagation) {
  case Propagation::Quotient:
    if (operands[1].error != 0 && mayVanish(operands[1]))
      return HUGE_VAL;
    break;
  case Propagation::Remainder: {
    // If the integral part of the quotient may differ, the result jumps.
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
  case Propagation::Wave:
    return std::fmin(error, 2);
  case Propagation::Tangent:
    if (std::nearbyint((x - error) / M_PI) !=
            std::nearbyint((x + error) / M_PI) ||
        error >= 1)
      return HUGE_VAL;
    break;
  case Propagation::Angle:
    // Near the origin and across the branch cut, any angle is possible.
    if (mayVanish(operands[0]) &&
        (operands[1].value.real < 0 || mayVanish(operands[1])))
      return 2 * M_PI;
    break;
  case Propagation::Power: {
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
  case Propagation::CopySign:
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

/// Returns the error of an integer result, or infinity if it may wrap around.
static double checkWidth(Type type, double value, double error) {
  double end = std::ldexp(1.0, int(getScalarWidth(type)) - 1);
  return std::fabs(value) + error < end ? error : HUGE_VAL;
}

/// Returns a bound on the change of an integer result by errors of its
/// operands, or infinity for operations that do not preserve differences.
static double getIntegerChange(const ScalarStep &step, Propagation propagation,
                               Operands operands, Scalar center) {
  Type type = step.op->getResult(0).getType();
  double a = double(operands[0].value.integer), error = operands[0].error;
  double b = 0, slack = 0;
  if (operands.size() > 1) {
    b = double(operands[1].value.integer);
    slack = operands[1].error;
  }
  if (type.isInteger(1) && step.op->getOperand(0).getType().isInteger(1)) {
    // Tries both values of each uncertain bit.
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
  case Propagation::IntegerSum:
    return checkWidth(type, std::fabs(a) + std::fabs(b), error + slack);
  case Propagation::IntegerProduct:
    return checkWidth(type, a * b,
                      std::fabs(a) * slack + std::fabs(b) * error +
                          error * slack);
  case Propagation::IntegerMove:
    return checkWidth(type, std::fmax(std::fabs(a), std::fabs(b)),
                      std::fmax(error, slack));
  default:
    return HUGE_VAL;
  }
}

/// Returns 1 if the errors of the operands may change the result of a
/// comparison, else 0.
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
  return getDifference(a, b) <= error ? 1 : 0;
}

BoundedScalar mlir::posenc::selectBounded(Type type, Operands operands) {
  bool isTrue = operands[0].value.integer != 0;
  const Bounded &chosen = operands[isTrue ? 1 : 2];
  if (operands[0].error == 0)
    return chosen;
  const Bounded &other = operands[isTrue ? 2 : 1];
  double difference =
      getDifference(toReal(type, chosen.value), toReal(type, other.value));
  return {chosen.value, std::fmax(chosen.error, difference + other.error)};
}

/// Returns the error of a conversion to an integer: infinity if the value may
/// be out of range, since the result is then poison.
static double getTruncationError(const ScalarStep &step, const Bounded &operand,
                                 Scalar center) {
  bool isUnsigned = isa<arith::FPToUIOp>(step.op);
  int width = int(getScalarWidth(step.op->getResult(0).getType()));
  double end = std::ldexp(1.0, width - (isUnsigned ? 0 : 1)), change = 0;
  for (double sign : {-1.0, 1.0}) {
    Scalar value = operand.value;
    if (operand.error != 0)
      value.real += sign * operand.error;
    double whole = std::trunc(value.real);
    if (!(whole >= (isUnsigned ? 0 : -end) && whole < end))
      return HUGE_VAL;
    change =
        std::fmax(change, getDifference(double(step.compute(&value).integer),
                                        double(center.integer)));
  }
  return change;
}

double mlir::posenc::getChange(const ScalarStep &step, Propagation propagation,
                               Operands operands, Scalar center) {
  const Bounded &first = operands[0];
  Type type = step.op->getResult(0).getType();
  switch (propagation) {
  case Propagation::CompareFloats:
  case Propagation::CompareIntegers:
    return getComparisonError(operands,
                              propagation == Propagation::CompareFloats);
  case Propagation::Classify:
    return 0;
  case Propagation::ToInteger:
    return getTruncationError(step, first, center);
  case Propagation::FromInteger: {
    // An unsigned number may wrap around below 0.
    bool mayWrap = isa<arith::UIToFPOp>(step.op) &&
                   double(first.value.integer) < first.error;
    return mayWrap ? HUGE_VAL : first.error;
  }
  default:
    break;
  }
  if (!isa<FloatType>(type))
    return getIntegerChange(step, propagation, operands, center);
  // No bound is known for biases and other operations.
  if (propagation == Propagation::Bits)
    return HUGE_VAL;
  return getRealChange(step, propagation, operands, center.real);
}

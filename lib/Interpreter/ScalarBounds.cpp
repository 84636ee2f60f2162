//===- ScalarBounds.cpp - scalars with error bounds -----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScalarBounds.h"

#include "ScalarChanges.h"

#include "llvm/ADT/StringSwitch.h"

#include <cmath>

using namespace mlir;
using namespace mlir::posenc;
namespace reference = ::posenc::reference;
using reference::DType;

using Bounded = BoundedScalar;
using Operands = ArrayRef<BoundedScalar>;

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
  // A value that the type represents exactly is not rounded. For f64 this is
  // unknown, since the reference itself computes in f64.
  bool isExact =
      rounding == Rounding::None ||
      (rounding == Rounding::Once && error == 0 && type != DType::F64 &&
       double(reference::roundTo(type, value)) == value);
  double size = std::fabs(value) + error;
  if (!isExact) {
    // Functions on 16-bit types are computed in f32 and rounded once.
    bool isShort = type == DType::F16 || type == DType::BF16;
    double units = rounding == Rounding::Once || isShort ? 0.51 : 4.01;
    if (type == DType::F64)
      units = rounding == Rounding::Once ? 1.01 : 5;
    result.error += units * getUnit(type, size);
    double normal = double(reference::smallestNormal(type));
    // Hardware may flush subnormals of bf16.
    if (type == DType::BF16 && std::fabs(value) - error < normal)
      result.error += normal;
  }
  if (type == DType::F64)
    return result;
  double bound = double(reference::overflowBound(type));
  // In F8E4M3 the successor of the largest finite number would have the same
  // exponent, so the bound is one unit above that number.
  if (type == DType::F8E4M3)
    bound = double(reference::largestFinite(type)) + getUnit(type, bound);
  if (size + getUnit(type, size) < bound)
    return result;
  double rounded = double(reference::roundTo(type, value));
  bool isCertain = error == 0 || std::fabs(value) - error >= bound;
  if (!std::isfinite(rounded) && isCertain)
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
    // The sign of the infinity is certain only if both signs are.
    bool isCertain = (std::isinf(x) || std::fabs(x) > a.error) &&
                     (std::isinf(y) || std::fabs(y) > b.error);
    product.error = isCertain ? 0 : HUGE_VAL;
  } else if (!std::isnan(x) && !std::isnan(y)) {
    // An infinity times a value that may be 0.
    product.error = HUGE_VAL;
  }
  if (std::isnan(product.error))
    product.error = HUGE_VAL;
  return product;
}

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

Bounded BoundedRun::compute(const Step &bounded, Operands operands) {
  const ScalarStep &step = *bounded.step;
  Type type = step.op->getResult(0).getType();
  if (bounded.propagation == Propagation::Select)
    return selectBounded(type, operands);
  SmallVector<Scalar, 8> values;
  bool isExact = true, isUnknown = false;
  for (const Bounded &operand : operands) {
    values.push_back(operand.value);
    isExact &= operand.error == 0;
    isUnknown |= operand.error == HUGE_VAL;
  }
  Scalar center = step.compute(values.data());
  double error = 0;
  if (isUnknown)
    error = type.isInteger(1) ? 1 : HUGE_VAL;
  // Conversions of unrepresentable values have no defined result, even for
  // exact operands.
  else if (!isExact || bounded.propagation == Propagation::ToInteger)
    error = getChange(step, bounded.propagation, operands, center);
  else if (step.error)
    error = step.error(values.data());
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

//===- MathExpansion.cpp - which functions are expanded ---------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Numerics/MathExpansion.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::posenc;

/// Whether all targets have instructions for an operation on f32 and f64, or on
/// integers.
static bool isInstruction(Operation *op) {
  return isa<math::AbsFOp, math::AbsIOp, math::CeilOp, math::CopySignOp,
             math::CountLeadingZerosOp, math::CountTrailingZerosOp,
             math::CtPopOp, math::FloorOp, math::FmaOp, math::RoundEvenOp,
             math::RoundOp, math::SqrtOp, math::TruncOp>(op);
}

std::optional<int64_t> mlir::posenc::getIntegerExponent(Value exponent) {
  APInt constant;
  if (!matchPattern(exponent, m_ConstantInt(&constant)) ||
      constant.getSignificantBits() > 32)
    return std::nullopt;
  return constant.getSExtValue();
}

bool mlir::posenc::isNarrowFloat(Type type) {
  return isa<Float16Type, BFloat16Type>(type);
}

bool mlir::posenc::hasExpandableTypes(Operation *op) {
  auto isKnown = [](Type type) {
    Type element = getElementTypeOrSelf(type);
    return element.isF32() || element.isF64() || isNarrowFloat(element) ||
           element.isIntOrIndex();
  };
  return llvm::all_of(op->getOperandTypes(), isKnown) &&
         llvm::all_of(op->getResultTypes(), isKnown);
}

bool mlir::posenc::hasMathExpansion(Operation *op) {
  if (!isa_and_nonnull<math::MathDialect>(op->getDialect()) ||
      !hasExpandableTypes(op))
    return false;
  if (auto power = dyn_cast<math::IPowIOp>(op)) {
    std::optional<int64_t> exponent = getIntegerExponent(power.getRhs());
    return exponent && *exponent >= 0 && *exponent <= kMaxConstantPower;
  }
  return isInstruction(op) ||
         isa<math::AcosOp, math::AcoshOp, math::AsinOp, math::AsinhOp,
             math::Atan2Op, math::AtanOp, math::AtanhOp, math::CbrtOp,
             math::ClampFOp, math::CosOp, math::CoshOp, math::ErfOp,
             math::ErfcOp, math::ExpOp, math::Exp2Op, math::ExpM1Op,
             math::FPowIOp, math::IsFiniteOp, math::IsInfOp, math::IsNaNOp,
             math::IsNormalOp, math::Log10Op, math::Log1pOp, math::Log2Op,
             math::LogOp, math::PowFOp, math::RsqrtOp, math::SinOp,
             math::SincosOp, math::SinhOp, math::TanOp, math::TanhOp>(op);
}

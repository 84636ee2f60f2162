//===- ScalingSupport.cpp - parts that scaling rules share ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScalingSupport.h"

#include <cmath>

using namespace mlir;
using ::posenc::BigFloat;

bool mlir::posenc::isPositive(FloatAttr value) {
  return !value || (value.getType().isF64() && std::isfinite(toDouble(value)) &&
                    toDouble(value) > 0);
}

bool mlir::posenc::isDivisor(double value) {
  return std::isfinite(value) && value >= kMinDivisor;
}

bool mlir::posenc::isDivisor(FloatAttr value) {
  return value.getType().isF64() && isDivisor(toDouble(value));
}

LogicalResult mlir::posenc::verifyDivisor(EmitError emitError, FloatAttr value,
                                          StringRef what,
                                          StringRef constraint) {
  if (toDouble(value) < kMinDivisor)
    return emitError() << "expected a " << what << " of at least 2^-64 ("
                       << constraint << ")";
  return success();
}

LogicalResult mlir::posenc::verifyDivisors(EmitError emitError,
                                           DenseF64ArrayAttr values,
                                           int64_t dim, StringRef what,
                                           StringRef countConstraint,
                                           StringRef valueConstraint) {
  if (values.size() != dim / 2)
    return emitError() << "expected " << dim / 2 << " " << what << ", got "
                       << values.size() << " (" << countConstraint << ")";
  if (!llvm::all_of(values.asArrayRef(),
                    [](double value) { return isDivisor(value); }))
    return emitError() << "expected finite " << what << " of at least 2^-64 ("
                       << valueConstraint << ")";
  return success();
}

SmallVector<BigFloat> mlir::posenc::unscaledFrequencies(int64_t dim,
                                                        const BigFloat &base) {
  SmallVector<BigFloat> result;
  for (int64_t i = 0; i < dim / 2; ++i)
    result.push_back(pow(base, BigFloat(-2.0 * i) / BigFloat(dim)));
  return result;
}

void mlir::posenc::divideFrequencies(MutableArrayRef<BigFloat> frequencies,
                                     ArrayRef<double> divisors) {
  for (auto [f, divisor] : llvm::zip_equal(frequencies, divisors))
    f = f / BigFloat(divisor);
}

BigFloat mlir::posenc::scaleBase(const BigFloat &base, const BigFloat &scale,
                                 int64_t dim) {
  return base * pow(scale, BigFloat(dim) / BigFloat(dim - 2.0));
}

bool mlir::posenc::isScaledBase(const BigFloat &base) {
  return !(base < BigFloat(kMinDivisor)) && !(base > BigFloat(0x1p1023));
}

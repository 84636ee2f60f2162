//===- GeometricScaling.cpp - geometric sequences of frequencies ----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttrFields.h"
#include "ScalingSupport.h"

#include <cmath>

using namespace mlir;
using namespace mlir::posenc;
using ::posenc::BigFloat;

/// Beyond this limit, the computed bits of a frequency no longer include the
/// fraction of a turn.
static constexpr double kMaxLog2 = 64;

Attribute GeometricScalingAttr::parse(AsmParser &parser, Type) {
  FloatAttr shift, scale;
  if (failed(mlir::posenc::FieldParser(parser)
                 .real("shift", shift)
                 .real("scale", scale, /*required=*/false)
                 .parse()))
    return {};
  return get(parser.getContext(), shift, scale);
}

void GeometricScalingAttr::print(AsmPrinter &printer) const {
  FieldPrinter(printer).real("shift", getShift()).real("scale", getScale());
}

LogicalResult GeometricScalingAttr::verifyFor(EmitError emitError, int64_t dim,
                                              double base) const {
  int64_t numPairs = dim / 2;
  if (!getShift().getType().isF64() || !std::isfinite(toDouble(getShift())))
    return emitError() << "expected a finite shift (geometric_c1)";
  double shift = toDouble(getShift());
  if (numPairs > 1 && !(shift < numPairs))
    return emitError() << "expected a shift below the number of pairs, "
                       << numPairs << ", got " << shift << " (geometric_c1)";
  if (!isPositive(getScale()))
    return emitError() << "expected a finite, positive scale (geometric_c2)";
  double log2Scale = getScale() ? std::log2(toDouble(getScale())) : 0.0;
  // The first frequency is the largest, unless the base is below 1.
  double log2Max = log2Scale;
  if (numPairs > 1)
    log2Max +=
        std::max(0.0, -(numPairs - 1.0) / (numPairs - shift) * std::log2(base));
  if (!(log2Max <= kMaxLog2))
    return emitError() << "expected frequencies of at most 2^64, got 2^"
                       << log2Max << "; reduce scale or shift, or raise base "
                       << "(geometric_c3)";
  return success();
}

SmallVector<BigFloat>
GeometricScalingAttr::computeFrequencies(int64_t dim,
                                         const BigFloat &base) const {
  int64_t numPairs = dim / 2;
  BigFloat scale(getScale() ? toDouble(getScale()) : 1.0);
  BigFloat divisor = BigFloat(numPairs) - BigFloat(toDouble(getShift()));
  // The first frequency needs no power, so a single pair may have a divisor of
  // 0.
  SmallVector<BigFloat> result{scale};
  for (int64_t i = 1; i < numPairs; ++i)
    result.push_back(scale * pow(base, BigFloat(-1.0 * i) / divisor));
  return result;
}

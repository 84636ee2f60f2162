//===- Llama3Scaling.cpp - #posenc.llama3 ---------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttrFields.h"
#include "ScalingSupport.h"

using namespace mlir;
using namespace mlir::posenc;
using ::posenc::BigFloat;

Attribute Llama3ScalingAttr::parse(AsmParser &parser, Type) {
  FloatAttr factor, low, high, original;
  if (failed(mlir::posenc::FieldParser(parser)
                 .real("factor", factor)
                 .real("low_freq_factor", low)
                 .real("high_freq_factor", high)
                 .real("original_max_position", original)
                 .parse()))
    return {};
  return get(parser.getContext(), factor, low, high, original);
}

void Llama3ScalingAttr::print(AsmPrinter &printer) const {
  FieldPrinter(printer)
      .real("factor", getFactor())
      .real("low_freq_factor", getLowFreqFactor())
      .real("high_freq_factor", getHighFreqFactor())
      .real("original_max_position", getOriginalMaxPosition());
}

LogicalResult Llama3ScalingAttr::verifyFor(EmitError emitError, int64_t,
                                           double) const {
  if (!isPositive(getFactor()))
    return emitError() << "expected a finite, positive factor (llama3_c1)";
  if (!isPositive(getLowFreqFactor()) || !isPositive(getHighFreqFactor()) ||
      toDouble(getLowFreqFactor()) > toDouble(getHighFreqFactor()))
    return emitError() << "expected 0 < low_freq_factor <= high_freq_factor, "
                          "both finite (llama3_c2)";
  if (!isPositive(getOriginalMaxPosition()))
    return emitError()
           << "expected a finite, positive original_max_position (llama3_c3)";
  return verifyDivisor(emitError, getFactor(), "factor", "llama3_c4");
}

SmallVector<BigFloat>
Llama3ScalingAttr::computeFrequencies(int64_t dim, const BigFloat &base) const {
  BigFloat factor(toDouble(getFactor())), low(toDouble(getLowFreqFactor())),
      high(toDouble(getHighFreqFactor())),
      original(toDouble(getOriginalMaxPosition()));
  SmallVector<BigFloat> result = unscaledFrequencies(dim, base);
  for (BigFloat &f : result) {
    // Number of rotations over the original context, `L / lam`.
    BigFloat rotations = original * f / (BigFloat(2.0) * BigFloat::pi());
    if (rotations < low) {
      f = f / factor;
    } else if (!(rotations > high)) {
      // If the factors are equal, the band is a single point.
      BigFloat smooth =
          low == high ? BigFloat(1.0) : (rotations - low) / (high - low);
      f = (BigFloat(1.0) - smooth) * f / factor + smooth * f;
    }
  }
  return result;
}

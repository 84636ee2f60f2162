//===- LongropeScaling.cpp - #posenc.longrope -----------------------------===//
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

Attribute LongropeScalingAttr::parse(AsmParser &parser, Type) {
  DenseF64ArrayAttr shortFactors, longFactors;
  FloatAttr original, length, factor, attention;
  if (failed(mlir::posenc::FieldParser(parser)
                 .reals("short_factors", shortFactors)
                 .reals("long_factors", longFactors)
                 .real("original_max_position", original)
                 .real("length", length, /*required=*/false)
                 .real("factor", factor, /*required=*/false)
                 .real("attention_factor", attention, /*required=*/false)
                 .parse()))
    return {};
  return get(parser.getContext(), shortFactors, longFactors, original, length,
             factor, attention);
}

void LongropeScalingAttr::print(AsmPrinter &printer) const {
  FieldPrinter(printer)
      .reals("short_factors", getShortFactors())
      .reals("long_factors", getLongFactors())
      .real("original_max_position", getOriginalMaxPosition())
      .real("length", getLength())
      .real("factor", getFactor())
      .real("attention_factor", getAttentionFactor());
}

LogicalResult LongropeScalingAttr::verifyFor(EmitError emitError, int64_t dim,
                                             double) const {
  for (auto [values, what] :
       {std::pair(getShortFactors(), StringRef("short_factors")),
        std::pair(getLongFactors(), StringRef("long_factors"))})
    if (failed(verifyDivisors(emitError, values, dim, what, "longrope_c1",
                              "longrope_c2")))
      return failure();
  if (!isPositive(getOriginalMaxPosition()) || !isPositive(getLength()) ||
      toDouble(getOriginalMaxPosition()) <= 1)
    return emitError() << "expected a finite original_max_position greater "
                          "than 1, and a finite, positive length "
                          "(longrope_c3)";
  if (!isPositive(getFactor()) || !isPositive(getAttentionFactor()))
    return emitError() << "expected factor and attention_factor to be finite "
                          "and positive (longrope_c4)";
  return success();
}

DenseF64ArrayAttr LongropeScalingAttr::getSelectedFactors() const {
  return getLength() &&
                 toDouble(getLength()) > toDouble(getOriginalMaxPosition())
             ? getLongFactors()
             : getShortFactors();
}

SmallVector<BigFloat>
LongropeScalingAttr::computeFrequencies(int64_t dim,
                                        const BigFloat &base) const {
  SmallVector<BigFloat> result = unscaledFrequencies(dim, base);
  divideFrequencies(result, getSelectedFactors());
  return result;
}

BigFloat LongropeScalingAttr::computeAttentionFactor() const {
  if (getAttentionFactor())
    return toDouble(getAttentionFactor());
  if (!getFactor() || toDouble(getFactor()) <= 1)
    return 1.0;
  BigFloat factor(toDouble(getFactor()));
  BigFloat original(toDouble(getOriginalMaxPosition()));
  return pow(BigFloat(1.0) + log(factor) / log(original), 0.5);
}

FrequencyScalingInterface LongropeScalingAttr::withUnitAttentionFactor() const {
  return get(getContext(), getShortFactors(), getLongFactors(),
             getOriginalMaxPosition(), getLength(), /*factor=*/{},
             /*attention_factor=*/{});
}

bool LongropeScalingAttr::isIndexedByPair() const { return true; }

bool LongropeScalingAttr::dependsOnLength() const { return !getLength(); }

FrequencyScalingInterface LongropeScalingAttr::withLength(double length) const {
  return get(getContext(), getShortFactors(), getLongFactors(),
             getOriginalMaxPosition(),
             FloatAttr::get(getOriginalMaxPosition().getType(), length),
             getFactor(), getAttentionFactor());
}

//===- DynamicScaling.cpp - #posenc.dynamic -------------------------------===//
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

Attribute DynamicScalingAttr::parse(AsmParser &parser, Type) {
  FloatAttr factor, maxPosition, length;
  if (failed(mlir::posenc::FieldParser(parser)
                 .real("factor", factor)
                 .real("max_position", maxPosition)
                 .real("length", length, /*required=*/false)
                 .parse()))
    return {};
  return get(parser.getContext(), factor, maxPosition, length);
}

void DynamicScalingAttr::print(AsmPrinter &printer) const {
  FieldPrinter(printer)
      .real("factor", getFactor())
      .real("max_position", getMaxPosition())
      .real("length", getLength());
}

/// Returns the scale of the base, 1 up to the maximum length. A length that is
/// only known at run time counts as 2^63.
static BigFloat getDynamicScale(DynamicScalingAttr attr) {
  BigFloat factor(toDouble(attr.getFactor())), one(1.0);
  double length = attr.getLength() ? toDouble(attr.getLength()) : 0x1p63;
  if (length <= toDouble(attr.getMaxPosition()))
    return one;
  BigFloat ratio = BigFloat(length) / BigFloat(toDouble(attr.getMaxPosition()));
  return factor * ratio - (factor - one);
}

LogicalResult DynamicScalingAttr::verifyFor(EmitError emitError, int64_t dim,
                                            double base) const {
  if (!isDivisor(getFactor()))
    return emitError()
           << "expected a finite factor of at least 2^-64 (dynamic_c1)";
  if (!isPositive(getMaxPosition()) || !isPositive(getLength()))
    return emitError() << "expected finite, positive max_position and length "
                          "(dynamic_c2)";
  if (dim < 4)
    return emitError() << "expected a rotary dimension of at least 4, got "
                       << dim << " (dynamic_c3)";
  if (!isScaledBase(scaleBase(base, getDynamicScale(*this), dim)))
    return emitError() << "expected the scaled base to be between 2^-64 and "
                          "2^1023 (dynamic_c4)";
  return success();
}

SmallVector<BigFloat>
DynamicScalingAttr::computeFrequencies(int64_t dim,
                                       const BigFloat &base) const {
  return unscaledFrequencies(dim, scaleBase(base, getDynamicScale(*this), dim));
}

bool DynamicScalingAttr::dependsOnLength() const { return !getLength(); }

FrequencyScalingInterface DynamicScalingAttr::withLength(double length) const {
  return get(getContext(), getFactor(), getMaxPosition(),
             FloatAttr::get(getFactor().getType(), length));
}

//===- LinearScaling.cpp - #posenc.linear ---------------------------------===//
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

Attribute LinearScalingAttr::parse(AsmParser &parser, Type) {
  FloatAttr factor;
  if (failed(mlir::posenc::FieldParser(parser).real("factor", factor).parse()))
    return {};
  return get(parser.getContext(), factor);
}

void LinearScalingAttr::print(AsmPrinter &printer) const {
  FieldPrinter(printer).real("factor", getFactor());
}

LogicalResult LinearScalingAttr::verifyFor(EmitError emitError, int64_t,
                                           double) const {
  if (!isPositive(getFactor()))
    return emitError() << "expected a finite, positive factor (linear_c1)";
  return verifyDivisor(emitError, getFactor(), "factor", "linear_c2");
}

SmallVector<BigFloat>
LinearScalingAttr::computeFrequencies(int64_t dim, const BigFloat &base) const {
  SmallVector<BigFloat> result = unscaledFrequencies(dim, base);
  for (BigFloat &f : result)
    f = f / BigFloat(toDouble(getFactor()));
  return result;
}

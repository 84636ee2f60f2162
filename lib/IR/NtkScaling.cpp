//===- NtkScaling.cpp - #posenc.ntk ---------------------------------------===//
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

Attribute NtkScalingAttr::parse(AsmParser &parser, Type) {
  FloatAttr factor, mixed;
  if (failed(mlir::posenc::FieldParser(parser)
                 .real("factor", factor)
                 .real("mixed_b", mixed, /*required=*/false)
                 .parse()))
    return {};
  return get(parser.getContext(), factor, mixed);
}

void NtkScalingAttr::print(AsmPrinter &printer) const {
  FieldPrinter(printer)
      .real("factor", getFactor())
      .real("mixed_b", getMixedB());
}

LogicalResult NtkScalingAttr::verifyFor(EmitError emitError, int64_t dim,
                                        double base) const {
  if (!isDivisor(getFactor()))
    return emitError() << "expected a finite factor of at least 2^-64 (ntk_c1)";
  if (!isPositive(getMixedB()))
    return emitError() << "expected a finite, positive mixed_b (ntk_c3)";
  if (getMixedB())
    return success();
  if (dim < 4)
    return emitError() << "expected a rotary dimension of at least 4, got "
                       << dim << " (ntk_c2)";
  if (!isScaledBase(scaleBase(base, toDouble(getFactor()), dim)))
    return emitError() << "expected the base times the factor to be between "
                          "2^-64 and 2^1023 (ntk_c4)";
  return success();
}

SmallVector<BigFloat>
NtkScalingAttr::computeFrequencies(int64_t dim, const BigFloat &base) const {
  BigFloat factor(toDouble(getFactor()));
  if (!getMixedB())
    return unscaledFrequencies(dim, scaleBase(base, factor, dim));
  SmallVector<BigFloat> result = unscaledFrequencies(dim, base);
  for (auto [i, f] : llvm::enumerate(result)) {
    BigFloat part = BigFloat(i + 1.0) / BigFloat(dim / 2.0);
    f = f / pow(factor, pow(part, BigFloat(toDouble(getMixedB()))));
  }
  return result;
}

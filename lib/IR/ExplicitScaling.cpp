//===- ExplicitScaling.cpp - #posenc.explicit -----------------------------===//
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

Attribute ExplicitScalingAttr::parse(AsmParser &parser, Type) {
  DenseF64ArrayAttr values;
  FloatAttr attention;
  if (failed(mlir::posenc::FieldParser(parser)
                 .reals("values", values)
                 .real("attention_factor", attention, /*required=*/false)
                 .parse()))
    return {};
  return get(parser.getContext(), values, attention);
}

void ExplicitScalingAttr::print(AsmPrinter &printer) const {
  FieldPrinter(printer)
      .reals("values", getValues())
      .real("attention_factor", getAttentionFactor());
}

LogicalResult ExplicitScalingAttr::verifyFor(EmitError emitError, int64_t dim,
                                             double) const {
  if (getValues().size() != dim / 2)
    return emitError() << "expected " << dim / 2 << " values, got "
                       << getValues().size() << " (explicit_c1)";
  if (!llvm::all_of(getValues().asArrayRef(),
                    [](double value) { return std::isfinite(value); }))
    return emitError() << "expected finite values (explicit_c2)";
  if (!isPositive(getAttentionFactor()))
    return emitError()
           << "expected a finite, positive attention_factor (explicit_c3)";
  return success();
}

SmallVector<BigFloat>
ExplicitScalingAttr::computeFrequencies(int64_t dim, const BigFloat &) const {
  return llvm::map_to_vector(getValues().asArrayRef(),
                             [](double value) { return BigFloat(value); });
}

BigFloat ExplicitScalingAttr::computeAttentionFactor() const {
  return BigFloat(getAttentionFactor() ? toDouble(getAttentionFactor()) : 1.0);
}

FrequencyScalingInterface ExplicitScalingAttr::withUnitAttentionFactor() const {
  return get(getContext(), getValues(), /*attention_factor=*/{});
}

bool ExplicitScalingAttr::isIndexedByPair() const { return true; }

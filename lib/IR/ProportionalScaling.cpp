//===- ProportionalScaling.cpp - #posenc.proportional ---------------------===//
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

Attribute ProportionalScalingAttr::parse(AsmParser &parser, Type) {
  int64_t pairs = 0;
  FloatAttr factor = parser.getBuilder().getF64FloatAttr(1.0);
  if (failed(mlir::posenc::FieldParser(parser)
                 .integer("rotated_pairs", pairs)
                 .real("factor", factor, /*required=*/false)
                 .parse()))
    return {};
  return get(parser.getContext(), pairs, factor);
}

void ProportionalScalingAttr::print(AsmPrinter &printer) const {
  FieldPrinter fields(printer);
  fields.integer("rotated_pairs", getRotatedPairs());
  if (toDouble(getFactor()) != 1.0)
    fields.real("factor", getFactor());
}

LogicalResult ProportionalScalingAttr::verifyFor(EmitError emitError,
                                                 int64_t dim, double) const {
  if (getRotatedPairs() < 1 || getRotatedPairs() > dim / 2)
    return emitError() << "expected between 1 and " << dim / 2
                       << " rotated_pairs, got " << getRotatedPairs()
                       << " (proportional_c1)";
  if (!isDivisor(getFactor()))
    return emitError()
           << "expected a finite factor of at least 2^-64 (proportional_c2)";
  return success();
}

SmallVector<BigFloat>
ProportionalScalingAttr::computeFrequencies(int64_t dim,
                                            const BigFloat &base) const {
  SmallVector<BigFloat> result = unscaledFrequencies(dim, base);
  for (auto [i, f] : llvm::enumerate(result))
    f = static_cast<int64_t>(i) < getRotatedPairs()
            ? f / BigFloat(toDouble(getFactor()))
            : BigFloat(0.0);
  return result;
}

bool ProportionalScalingAttr::isIndexedByPair() const { return true; }

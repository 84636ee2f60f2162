//===- DivisorsScaling.cpp - #posenc.divisors -----------------------------===//
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

Attribute DivisorsScalingAttr::parse(AsmParser &parser, Type) {
  DenseF64ArrayAttr values;
  if (failed(mlir::posenc::FieldParser(parser).reals("values", values).parse()))
    return {};
  return get(parser.getContext(), values);
}

void DivisorsScalingAttr::print(AsmPrinter &printer) const {
  FieldPrinter(printer).reals("values", getValues());
}

LogicalResult DivisorsScalingAttr::verifyFor(EmitError emitError, int64_t dim,
                                             double) const {
  return verifyDivisors(emitError, getValues(), dim, "values", "divisors_c1",
                        "divisors_c2");
}

SmallVector<BigFloat>
DivisorsScalingAttr::computeFrequencies(int64_t dim,
                                        const BigFloat &base) const {
  SmallVector<BigFloat> result = unscaledFrequencies(dim, base);
  divideFrequencies(result, getValues());
  return result;
}

bool DivisorsScalingAttr::isIndexedByPair() const { return true; }

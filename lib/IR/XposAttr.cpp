//===- XposAttr.cpp - factors of positions --------------------------------===//
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

Attribute XposAttr::parse(AsmParser &parser, Type) {
  llvm::SMLoc loc = parser.getCurrentLocation();
  FloatAttr base, gamma;
  int64_t origin = 0;
  bool reciprocal = false;
  if (failed(mlir::posenc::FieldParser(parser)
                 .real("base", base)
                 .real("gamma", gamma)
                 .custom("origin", /*required=*/false,
                         [&] { return parser.parseInteger(origin); })
                 .boolean("reciprocal", reciprocal)
                 .parse()))
    return {};
  return parser.getChecked<XposAttr>(loc, parser.getContext(), base, gamma,
                                     origin, reciprocal);
}

void XposAttr::print(AsmPrinter &printer) const {
  FieldPrinter fields(printer);
  fields.real("base", getBase()).real("gamma", getGamma());
  if (getOrigin() != 0)
    fields.integer("origin", getOrigin());
  if (getReciprocal())
    fields.boolean("reciprocal", true);
}

LogicalResult XposAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               FloatAttr base, FloatAttr gamma, int64_t, bool) {
  if (!isPositive(base) || toDouble(base) < 1)
    return emitError() << "expected a finite base of at least 1 (xpos_c1)";
  if (!isPositive(gamma))
    return emitError() << "expected a finite, positive gamma (xpos_c2)";
  return success();
}

SmallVector<BigFloat> XposAttr::computeExponents(int64_t pairs) const {
  BigFloat gamma(toDouble(getGamma())), one(1.0);
  BigFloat base(toDouble(getBase()) * (getReciprocal() ? -1 : 1));
  SmallVector<BigFloat> result;
  for (int64_t i = 0; i < pairs; ++i) {
    BigFloat part = BigFloat(double(i)) / BigFloat(double(pairs));
    result.push_back(log((part + gamma) / (one + gamma)) / log(BigFloat(2.0)) /
                     base);
  }
  return result;
}

//===- RotationAttr.cpp - #posenc.rotation --------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttrFields.h"
#include "PositionalVerify.h"
#include "posenc/IR/Posenc.h"

using namespace mlir;
using namespace mlir::posenc;

Attribute RotationAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  Pairing pairing = Pairing::Half;
  FrequenciesAttr frequencies;
  int64_t offset = 0;
  AxesAttr axes;
  auto readPairing = [&]() -> ParseResult {
    FailureOr<Pairing> value = mlir::FieldParser<Pairing>::parse(parser);
    if (failed(value))
      return failure();
    pairing = *value;
    return success();
  };
  if (failed(mlir::posenc::FieldParser(parser)
                 .custom("pairing", /*required=*/true, readPairing)
                 .custom("frequencies", /*required=*/true,
                         [&] {
                           return parser.parseCustomAttributeWithFallback(
                               frequencies);
                         })
                 .custom("offset", /*required=*/false,
                         [&] { return parser.parseInteger(offset); })
                 .custom("axes", /*required=*/false,
                         [&] {
                           return parser.parseCustomAttributeWithFallback(axes);
                         })
                 .parse()))
    return {};
  return parser.getChecked<RotationAttr>(loc, parser.getContext(), pairing,
                                         frequencies, offset, axes);
}

void RotationAttr::print(AsmPrinter &printer) const {
  FieldPrinter fields(printer);
  fields.keyword("pairing", stringifyPairing(getPairing()))
      .stripped("frequencies", getFrequencies());
  if (getOffset() != 0)
    fields.integer("offset", getOffset());
  if (getAxes())
    fields.stripped("axes", getAxes());
}

LogicalResult RotationAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   Pairing, FrequenciesAttr frequencies,
                                   int64_t offset, AxesAttr axes) {
  if (offset < 0)
    return emitError() << "expected an offset that is not negative, got "
                       << offset << " (rotation_c1)";
  if (axes && axes.getNumPairs() != frequencies.getNumPairs())
    return emitError() << "sections add up to " << axes.getNumPairs()
                       << " pairs of " << frequencies.getNumPairs()
                       << " (rotation_c2)";
  return verifyAxisFrequencies(emitError, frequencies, axes);
}

//===- BoundAttr.cpp - bounds on the elements of kernel inputs ------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttrFields.h"
#include "posenc/IR/Posenc.h"

using namespace mlir;
using namespace mlir::posenc;

LogicalResult BoundAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                BoundKind kind, int64_t input,
                                ArrayRef<int64_t> limit, ArrayRef<int64_t> each,
                                int64_t lengths) {
  if (input < 0 || limit.empty() || limit.size() > 2 || each.size() > 1)
    return emitError() << "expected an input, one or two factors of the limit "
                          "and at most one of each part (bound_c1)";
  bool needsEach = kind == BoundKind::Pages || kind == BoundKind::Heads;
  if (needsEach ? each.empty() : kind != BoundKind::Starts && !each.empty())
    return emitError() << (needsEach ? "expected" : "unexpected")
                       << " 'each' for " << stringifyBoundKind(kind)
                       << " (bound_c2)";
  bool needsLengths = kind == BoundKind::Pages;
  if (needsLengths ? lengths < 0 : lengths != -1)
    return emitError() << (needsLengths ? "expected" : "unexpected")
                       << " 'lengths' for " << stringifyBoundKind(kind)
                       << " (bound_c3)";
  return success();
}

Attribute BoundAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  BoundKind kind = BoundKind::Lengths;
  int64_t input = 0, lengths = -1;
  SmallVector<int64_t> limit, each;
  auto readKind = [&]() -> ParseResult {
    FailureOr<BoundKind> value = mlir::FieldParser<BoundKind>::parse(parser);
    if (failed(value))
      return failure();
    kind = *value;
    return success();
  };
  auto readFactors = [&](SmallVector<int64_t> &factors) {
    return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
      return parser.parseInteger(factors.emplace_back());
    });
  };
  if (failed(mlir::posenc::FieldParser(parser)
                 .custom("kind", /*required=*/true, readKind)
                 .custom("input", /*required=*/true,
                         [&] { return parser.parseInteger(input); })
                 .custom("limit", /*required=*/true,
                         [&] { return readFactors(limit); })
                 .custom("each", /*required=*/false,
                         [&] { return readFactors(each); })
                 .custom("lengths", /*required=*/false,
                         [&] { return parser.parseInteger(lengths); })
                 .parse()))
    return {};
  return parser.getChecked<BoundAttr>(loc, parser.getContext(), kind, input,
                                      ArrayRef(limit), ArrayRef(each), lengths);
}

void BoundAttr::print(AsmPrinter &printer) const {
  auto printFactors = [&](StringRef key, ArrayRef<int64_t> factors) {
    printer << ", " << key << " = [";
    llvm::interleaveComma(factors, printer.getStream());
    printer << ']';
  };
  printer << "<kind = " << stringifyBoundKind(getKind())
          << ", input = " << getInput();
  printFactors("limit", getLimit());
  if (!getEach().empty())
    printFactors("each", getEach());
  if (getLengths() != -1)
    printer << ", lengths = " << getLengths();
  printer << '>';
}

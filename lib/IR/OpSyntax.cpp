//===- OpSyntax.cpp - custom directives of the assembly formats -*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpSyntax.h"

using namespace mlir;
using namespace mlir::posenc;

ParseResult
mlir::posenc::parseDestinations(OpAsmParser &parser, UnresolvedOperands &inits,
                                SmallVectorImpl<Type> &initTypes,
                                SmallVectorImpl<Type> &resultTypes) {
  if (parser.parseKeyword("outs") || parser.parseLParen() ||
      parser.parseOperandList(inits) || parser.parseColonTypeList(initTypes) ||
      parser.parseRParen())
    return failure();
  llvm::copy_if(initTypes, std::back_inserter(resultTypes),
                [](Type type) { return isa<RankedTensorType>(type); });
  return success();
}

void mlir::posenc::printDestinations(OpAsmPrinter &printer, Operation *,
                                     OperandRange inits, TypeRange initTypes,
                                     TypeRange) {
  printer << "outs(" << inits << " : " << initTypes << ")";
}

/// Parses a case of an enumeration and says which cases there are.
template <typename Enum, typename EnumAttr>
static ParseResult parseCase(OpAsmParser &parser, EnumAttr &attr,
                             std::optional<Enum> (*symbolize)(StringRef),
                             StringRef cases) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef keyword;
  if (parser.parseKeyword(&keyword))
    return failure();
  std::optional<Enum> value = symbolize(keyword);
  if (!value)
    return parser.emitError(loc, "expected ")
           << cases << ", got '" << keyword << "'";
  attr = EnumAttr::get(parser.getContext(), *value);
  return success();
}

ParseResult mlir::posenc::parsePairing(OpAsmParser &parser,
                                       PairingAttr &pairing) {
  return parseCase<Pairing>(parser, pairing, symbolizePairing,
                            "half or interleaved");
}

void mlir::posenc::printPairing(OpAsmPrinter &printer, Operation *,
                                PairingAttr pairing) {
  printer << stringifyPairing(pairing.getValue());
}

ParseResult mlir::posenc::parseTableOrder(OpAsmParser &parser,
                                          TableOrderAttr &order) {
  return parseCase<TableOrder>(parser, order, symbolizeTableOrder,
                               "interleaved, sin_cos or cos_sin");
}

void mlir::posenc::printTableOrder(OpAsmPrinter &printer, Operation *,
                                   TableOrderAttr order) {
  printer << stringifyTableOrder(order.getValue());
}

ParseResult mlir::posenc::parseTableTypes(OpAsmParser &parser, Type &cos,
                                          Type &sin) {
  if (parser.parseType(cos))
    return failure();
  if (failed(parser.parseOptionalComma())) {
    sin = cos;
    return success();
  }
  return parser.parseType(sin);
}

void mlir::posenc::printTableTypes(OpAsmPrinter &printer, Operation *, Type cos,
                                   Type sin) {
  printer << cos;
  if (sin != cos)
    printer << ", " << sin;
}

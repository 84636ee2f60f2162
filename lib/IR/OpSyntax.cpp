//===- OpSyntax.cpp - custom directives of the assembly formats -----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpSyntax.h"

#include "AttentionVerify.h"
#include "AttrFields.h"

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

/// Parses an enumerator. The error for an unknown one lists all of them.
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

ParseResult mlir::posenc::parseTileSums(OpAsmParser &parser,
                                        OpAsmParser::UnresolvedOperand &sums,
                                        Type &sumsType, Type &resultType) {
  if (parser.parseKeyword("sums") || parser.parseLParen() ||
      parser.parseOperand(sums) || parser.parseColonType(sumsType) ||
      parser.parseRParen())
    return failure();
  if (!isa<MemRefType>(sumsType))
    resultType = sumsType;
  return success();
}

void mlir::posenc::printTileSums(OpAsmPrinter &printer, Operation *, Value sums,
                                 Type sumsType, Type) {
  printer << "sums(" << sums << " : " << sumsType << ")";
}

ParseResult mlir::posenc::parseProductElements(OpAsmParser &parser,
                                               ProductElementsAttr &elements) {
  return parseCase<ProductElements>(parser, elements, symbolizeProductElements,
                                    "floats, bf16_pairs, f16_pairs, u8s8_quads "
                                    "or s8u8_quads");
}

void mlir::posenc::printProductElements(OpAsmPrinter &printer, Operation *,
                                        ProductElementsAttr elements) {
  printer << stringifyProductElements(elements.getValue());
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

ParseResult mlir::posenc::parseHeadLayout(OpAsmParser &parser,
                                          HeadLayoutAttr &layout) {
  return parseCase<HeadLayout>(parser, layout, symbolizeHeadLayout,
                               "token_major or head_major");
}

void mlir::posenc::printHeadLayout(OpAsmPrinter &printer, Operation *,
                                   HeadLayoutAttr layout) {
  printer << stringifyHeadLayout(layout.getValue());
}

ParseResult mlir::posenc::parseRotation(OpAsmParser &parser,
                                        RotationAttr &rotation) {
  return parser.parseCustomAttributeWithFallback(rotation);
}

void mlir::posenc::printRotation(OpAsmPrinter &printer, Operation *,
                                 RotationAttr rotation) {
  printer.printStrippedAttrOrType(rotation);
}

ParseResult mlir::posenc::parseReal(OpAsmParser &parser, FloatAttr &value) {
  double number;
  if (parseReal(static_cast<AsmParser &>(parser), number))
    return failure();
  value = parser.getBuilder().getF64FloatAttr(number);
  return success();
}

void mlir::posenc::printReal(OpAsmPrinter &printer, Operation *,
                             FloatAttr value) {
  printer.printFloat(value.getValue());
}

ParseResult mlir::posenc::parseInteger(OpAsmParser &parser,
                                       IntegerAttr &value) {
  int64_t number;
  if (parser.parseInteger(number))
    return failure();
  value = parser.getBuilder().getI64IntegerAttr(number);
  return success();
}

void mlir::posenc::printInteger(OpAsmPrinter &printer, Operation *,
                                IntegerAttr value) {
  printer << value.getInt();
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

/// Parses an optional keyword, followed by the names of arguments of the given
/// types and a region.
static ParseResult parseScalarRegion(OpAsmParser &parser, Region &region,
                                     StringRef keyword, ArrayRef<Type> types) {
  if (failed(parser.parseOptionalKeyword(keyword)))
    return success();
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<OpAsmParser::Argument> arguments;
  if (parser.parseArgumentList(arguments, OpAsmParser::Delimiter::Paren))
    return failure();
  if (arguments.size() != types.size())
    return parser.emitError(loc, "expected ")
           << types.size() << " arguments of '" << keyword << "', got "
           << arguments.size();
  for (auto [argument, type] : llvm::zip_equal(arguments, types))
    argument.type = type;
  return parser.parseRegion(region, arguments);
}

ParseResult mlir::posenc::parseScoreRegions(OpAsmParser &parser, Region &score,
                                            Region &where, Type query) {
  MLIRContext *context = parser.getContext();
  return failure(
      parseScalarRegion(parser, score, "score", getScoreArguments(query)) ||
      parseScalarRegion(parser, where, "where", getWhereArguments(context)));
}

void mlir::posenc::printScoreRegions(OpAsmPrinter &printer, Operation *,
                                     Region &score, Region &where, Type) {
  auto print = [&](Region &region, StringRef keyword) {
    if (region.empty())
      return;
    printer.printNewline();
    printer << keyword << '(';
    llvm::interleaveComma(
        region.getArguments(), printer.getStream(),
        [&](BlockArgument argument) { printer.printOperand(argument); });
    printer << ") ";
    printer.printRegion(region, /*printEntryBlockArgs=*/false);
  };
  print(score, "score");
  print(where, "where");
}

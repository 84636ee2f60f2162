//===- Syntax.cpp - syntax of StableHLO, TTIR and tm_tensor ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The dialects are registered without operations, so MLIR's parser reads the
// generic form of any operation. It asks the dialect for a parser of other
// forms, which is here: it sets the attributes that the generic form has.
// Attributes of the dialects are kept as strings of their text.
//
//===----------------------------------------------------------------------===//

#include "posenc/Import/Hlo.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Transforms/InliningUtils.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace mlir::posenc;

namespace {
/// The parser of one operation in its pretty form.
class PrettyParser {
public:
  PrettyParser(OpAsmParser &parser, OperationState &state)
      : parser(parser), builder(parser.getBuilder()), state(state),
        name(state.name.getStringRef()) {
    name = name.split('.').second;
  }

  ParseResult parse();

private:
  using Operands = SmallVector<OpAsmParser::UnresolvedOperand>;

  ParseResult parseConstant();
  ParseResult parseReduce();
  ParseResult parseWhile();
  ParseResult parseConvolution();
  ParseResult parseTopK();
  ParseResult parseOperands();
  ParseResult parseClauses();
  ParseResult parseClause(StringRef keyword);
  ParseResult parseSliceRanges();
  ParseResult parseTypes();
  ParseResult parseReducer(ArrayRef<Type> types);
  ParseResult parseNumbers(SmallVectorImpl<int64_t> &numbers);

  void set(StringRef key, Attribute value) { state.addAttribute(key, value); }
  void setNumbers(StringRef key, ArrayRef<int64_t> numbers) {
    set(key, builder.getDenseI64ArrayAttr(numbers));
  }

  OpAsmParser &parser;
  Builder &builder;
  OperationState &state;
  StringRef name;
  Operands operands;
  SMLoc operandsLoc;
};
} // namespace

/// Parses `[a, b, ...]`.
ParseResult PrettyParser::parseNumbers(SmallVectorImpl<int64_t> &numbers) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
    return parser.parseInteger(numbers.emplace_back());
  });
}

/// Parses `attr-dict? value`, or `attr-dict? : type` for the generic spelling.
ParseResult PrettyParser::parseConstant() {
  TypedAttr value;
  if (parser.parseOptionalAttrDict(state.attributes) ||
      parser.parseAttribute(value))
    return failure();
  set("value", value);
  state.addTypes(value.getType());
  return success();
}

ParseResult PrettyParser::parseOperands() {
  operandsLoc = parser.getCurrentLocation();
  while (true) {
    OpAsmParser::UnresolvedOperand operand;
    OptionalParseResult parsed = parser.parseOptionalOperand(operand);
    if (!parsed.has_value())
      return success();
    if (*parsed)
      return failure();
    operands.push_back(operand);
    if (failed(parser.parseOptionalComma()))
      return success();
  }
}

/// Parses `[begin:limit:stride, ...]` of a slice.
ParseResult PrettyParser::parseSliceRanges() {
  SmallVector<int64_t> begins, limits, strides;
  auto parseRange = [&]() -> ParseResult {
    if (parser.parseInteger(begins.emplace_back()) || parser.parseColon() ||
        parser.parseInteger(limits.emplace_back()))
      return failure();
    strides.push_back(1);
    if (succeeded(parser.parseOptionalColon()))
      return parser.parseInteger(strides.back());
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseRange))
    return failure();
  setNumbers("start_indices", begins);
  setNumbers("limit_indices", limits);
  setNumbers("strides", strides);
  return success();
}

/// Parses what follows a keyword such as `dims`, and sets the attribute that it
/// stands for.
ParseResult PrettyParser::parseClause(StringRef keyword) {
  if (parser.parseEqual())
    return failure();
  if (keyword == "dim") {
    int64_t dim;
    if (parser.parseInteger(dim))
      return failure();
    StringRef key = name == "iota" || name == "dynamic_iota" ? "iota_dimension"
                                                             : "dimension";
    set(key, builder.getI64IntegerAttr(dim));
    return success();
  }
  if (keyword == "batching_dims" || keyword == "contracting_dims") {
    SmallVector<int64_t> lhs, rhs;
    if (parseNumbers(lhs) || parser.parseKeyword("x") || parseNumbers(rhs))
      return failure();
    StringRef kind = keyword == "batching_dims" ? "batching" : "contracting";
    setNumbers(("lhs_" + kind + "_dimensions").str(), lhs);
    setNumbers(("rhs_" + kind + "_dimensions").str(), rhs);
    return success();
  }
  if (keyword == "precision")
    return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
      StringRef precision;
      return parser.parseKeyword(&precision);
    });
  StringRef key =
      llvm::StringSwitch<StringRef>(keyword)
          .Case("dims", name == "transpose" ? "permutation"
                        : name == "reverse" ? "dimensions"
                                            : "broadcast_dimensions")
          .Case("sizes", "slice_sizes")
          .Case("low", "edge_padding_low")
          .Case("high", "edge_padding_high")
          .Case("interior", "interior_padding")
          .Default("");
  if (key.empty())
    return parser.emitError(parser.getNameLoc())
           << "unknown clause '" << keyword << "' of stablehlo." << name;
  SmallVector<int64_t> numbers;
  if (parseNumbers(numbers))
    return failure();
  setNumbers(key, numbers);
  return success();
}

/// Parses clauses `keyword = value`, separated by commas.
ParseResult PrettyParser::parseClauses() {
  while (true) {
    StringRef keyword;
    if (failed(parser.parseOptionalKeyword(&keyword)))
      return success();
    if (parseClause(keyword))
      return failure();
    if (failed(parser.parseOptionalComma()))
      return success();
  }
}

/// Parses `: type`, `: type, type` or `: (types) -> types`.
ParseResult PrettyParser::parseTypes() {
  if (parser.parseOptionalAttrDict(state.attributes) || parser.parseColon())
    return failure();
  SmallVector<Type> types, results;
  if (succeeded(parser.parseOptionalLParen())) {
    if (failed(parser.parseOptionalRParen()) &&
        (parser.parseTypeList(types) || parser.parseRParen()))
      return failure();
    if (parser.parseArrowTypeList(results))
      return failure();
  } else {
    if (parser.parseTypeList(types))
      return failure();
    // chlo has an arrow without parentheses.
    if (succeeded(parser.parseOptionalArrow())) {
      if (parser.parseTypeList(results))
        return failure();
    } else if (name == "optimization_barrier") {
      results = types;
    } else {
      // A single type is that of all operands and of the result; a select has
      // the type of its condition first, and numbers become complex.
      results = {types.back()};
      if (name == "select" && types.size() == 2) {
        types.push_back(types.back());
      } else {
        Type type = types.back();
        auto tensor = dyn_cast<RankedTensorType>(type);
        if (auto element = dyn_cast_or_null<ComplexType>(
                tensor ? tensor.getElementType() : Type());
            element && name == "complex")
          type = tensor.clone(element.getElementType());
        types.assign(operands.size(), type);
      }
    }
  }
  state.addTypes(results);
  return parser.resolveOperands(operands, types, operandsLoc, state.operands);
}

/// Parses `reducer(%a: type, %b: type) { ... }`.
ParseResult PrettyParser::parseReducer(ArrayRef<Type> types) {
  SmallVector<OpAsmParser::Argument> accumulators, values;
  // Pairs of arguments: those of the accumulators come first in the region.
  do {
    if (parser.parseLParen() ||
        parser.parseArgument(accumulators.emplace_back(), /*allowType=*/true) ||
        parser.parseComma() ||
        parser.parseArgument(values.emplace_back(), /*allowType=*/true) ||
        parser.parseRParen())
      return failure();
  } while (accumulators.size() < types.size() / 2);
  accumulators.append(values);
  return parser.parseRegion(*state.addRegion(), accumulators);
}

/// Parses `(%x init: %y) applies stablehlo.add across dimensions = [0] : types`
/// or `(%x init: %y), ... across dimensions = [0] : types reducer...`.
ParseResult PrettyParser::parseReduce() {
  Operands inits;
  operandsLoc = parser.getCurrentLocation();
  do {
    if (parser.parseLParen() || parser.parseOperand(operands.emplace_back()) ||
        parser.parseKeyword("init") || parser.parseColon() ||
        parser.parseOperand(inits.emplace_back()) || parser.parseRParen())
      return failure();
  } while (succeeded(parser.parseOptionalComma()));
  operands.append(inits);
  if (succeeded(parser.parseOptionalKeyword("applies"))) {
    FailureOr<OperationName> applied = parser.parseCustomOperationName();
    if (failed(applied))
      return failure();
    set("applies", applied->getIdentifier());
  }
  SmallVector<int64_t> dims;
  if (parser.parseKeyword("across") || parser.parseKeyword("dimensions") ||
      parser.parseEqual() || parseNumbers(dims) || parseTypes())
    return failure();
  setNumbers("dimensions", dims);
  if (succeeded(parser.parseOptionalKeyword("reducer")))
    return parseReducer(SmallVector<Type>(llvm::map_range(
        state.operands, [](Value value) { return value.getType(); })));
  return success();
}

/// Parses `(%iterArg = %x, ...) : types cond { ... } do { ... }`.
ParseResult PrettyParser::parseWhile() {
  SmallVector<OpAsmParser::Argument> arguments;
  operandsLoc = parser.getCurrentLocation();
  auto parseAssignment = [&]() -> ParseResult {
    return failure(parser.parseArgument(arguments.emplace_back()) ||
                   parser.parseEqual() ||
                   parser.parseOperand(operands.emplace_back()));
  };
  SmallVector<Type> types;
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren,
                                     parseAssignment))
    return failure();
  if (!operands.empty() && parser.parseColonTypeList(types))
    return failure();
  if (types.size() != operands.size())
    return parser.emitError(operandsLoc)
           << "expected a type for each operand of stablehlo.while";
  for (auto [argument, type] : llvm::zip_equal(arguments, types))
    argument.type = type;
  state.addTypes(types);
  return failure(
      parser.parseOptionalAttrDictWithKeyword(state.attributes) ||
      parser.resolveOperands(operands, types, operandsLoc, state.operands) ||
      parser.parseKeyword("cond") ||
      parser.parseRegion(*state.addRegion(), arguments) ||
      parser.parseKeyword("do") ||
      parser.parseRegion(*state.addRegion(), arguments));
}

/// Parses `(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window =
/// {stride = [2], ...} {attributes} : types`.
ParseResult PrettyParser::parseConvolution() {
  std::string text;
  auto parseDims = [&]() -> ParseResult {
    text += '[';
    auto parseDim = [&]() -> ParseResult {
      StringRef letter;
      int64_t number;
      OptionalParseResult parsed = parser.parseOptionalInteger(number);
      if (!parsed.has_value()) {
        if (parser.parseKeyword(&letter))
          return failure();
        text += letter;
      } else if (*parsed) {
        return failure();
      } else {
        text += std::to_string(number);
      }
      text += ',';
      return success();
    };
    if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseDim))
      return failure();
    if (text.back() == ',')
      text.pop_back();
    text += ']';
    return success();
  };
  auto parseWindow = [&]() -> ParseResult {
    StringRef keyword;
    if (parser.parseKeyword(&keyword) || parser.parseEqual())
      return failure();
    StringRef key = llvm::StringSwitch<StringRef>(keyword)
                        .Case("stride", "window_strides")
                        .Case("pad", "padding")
                        .Case("lhs_dilate", "lhs_dilation")
                        .Case("rhs_dilate", "rhs_dilation")
                        .Case("reverse", "window_reversal")
                        .Default("");
    if (key.empty())
      return parser.emitError(parser.getNameLoc())
             << "unknown clause '" << keyword << "' of a window";
    SmallVector<int64_t> numbers;
    auto parseElement = [&]() -> ParseResult {
      if (keyword == "pad")
        return parseNumbers(numbers);
      StringRef flag;
      if (keyword == "reverse" &&
          succeeded(parser.parseOptionalKeyword(&flag, {"true", "false"}))) {
        numbers.push_back(flag == "true");
        return success();
      }
      return parser.parseInteger(numbers.emplace_back());
    };
    if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                       parseElement))
      return failure();
    setNumbers(key, numbers);
    return success();
  };
  if (parser.parseLParen() || parseOperands() || parser.parseRParen() ||
      parser.parseKeyword("dim_numbers") || parser.parseEqual() ||
      parseDims() || parser.parseKeyword("x") || parseDims() ||
      parser.parseArrow() || parseDims() || parser.parseComma() ||
      parser.parseKeyword("window") || parser.parseEqual() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Braces, parseWindow))
    return failure();
  set("dimension_numbers", builder.getStringAttr(text));
  return parseTypes();
}

/// Parses `(%x, k = 2) : types` of chlo.top_k.
ParseResult PrettyParser::parseTopK() {
  int64_t k;
  operandsLoc = parser.getCurrentLocation();
  if (parser.parseLParen() || parser.parseOperand(operands.emplace_back()) ||
      parser.parseComma() || parser.parseKeyword("k") || parser.parseEqual() ||
      parser.parseInteger(k) || parser.parseRParen())
    return failure();
  set("k", builder.getI64IntegerAttr(k));
  SmallVector<Type> types, results;
  if (parser.parseOptionalAttrDict(state.attributes) || parser.parseColon())
    return failure();
  if (succeeded(parser.parseOptionalLParen())) {
    if (parser.parseTypeList(types) || parser.parseRParen())
      return failure();
  } else if (parser.parseTypeList(types)) {
    return failure();
  }
  if (parser.parseArrowTypeList(results))
    return failure();
  state.addTypes(results);
  return parser.resolveOperands(operands, types, operandsLoc, state.operands);
}

ParseResult PrettyParser::parse() {
  if (name == "constant")
    return parseConstant();
  if (name == "reduce")
    return parseReduce();
  if (name == "while")
    return parseWhile();
  if (name == "convolution")
    return parseConvolution();
  if (name == "top_k")
    return parseTopK();
  if (name == "custom_call" || name == "composite") {
    StringRef key = name == "composite" ? "name" : "call_target_name";
    std::string target;
    StringAttr symbol;
    if (name == "composite" ? parser.parseString(&target)
                            : parser.parseSymbolName(symbol))
      return failure();
    set(key, symbol ? symbol : builder.getStringAttr(target));
    if (name == "custom_call" && parser.parseLParen())
      return failure();
  }
  if (name == "compare") {
    StringRef direction;
    if (parser.parseKeyword(&direction) || parser.parseComma())
      return failure();
    set("comparison_direction", builder.getStringAttr(direction));
  }
  if (parseOperands())
    return failure();
  if (name == "custom_call" && parser.parseRParen())
    return failure();
  if (name == "return" && operands.empty())
    return parser.parseOptionalAttrDict(state.attributes);
  if (name == "return") {
    SmallVector<Type> types;
    return failure(
        parser.parseOptionalAttrDict(state.attributes) ||
        parser.parseColonTypeList(types) ||
        parser.resolveOperands(operands, types, operandsLoc, state.operands));
  }
  if (name == "slice" && parseSliceRanges())
    return failure();
  StringRef keyword;
  if (name == "compare") {
    // The type of the comparison.
    if (succeeded(parser.parseOptionalKeyword(&keyword)))
      set("compare_type", builder.getStringAttr(keyword));
  } else if (name == "reduce_precision") {
    StringRef format;
    if (parser.parseKeyword("format") || parser.parseEqual() ||
        parser.parseKeyword(&format))
      return failure();
    set("format", builder.getStringAttr(format));
  } else if (parseClauses()) {
    return failure();
  }
  return parseTypes();
}

/// Parses `tm_tensor.scan dimension(1) inclusive(true) ins(...) outs(...) {...}
/// -> types` and `tm_tensor.yield %x : type`, as torch-mlir prints them.
static ParseResult parseTmTensor(OpAsmParser &parser, OperationState &state) {
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  SMLoc loc = parser.getCurrentLocation();
  if (state.name.getStringRef() == "tm_tensor.yield") {
    SmallVector<Type> types;
    return failure(
        parser.parseOperandList(operands) || parser.parseColonTypeList(types) ||
        parser.resolveOperands(operands, types, loc, state.operands));
  }
  if (state.name.getStringRef() != "tm_tensor.scan")
    return parser.emitError(parser.getNameLoc(), "unknown operation");
  Builder &builder = parser.getBuilder();
  int64_t dim;
  StringRef inclusive;
  if (parser.parseKeyword("dimension") || parser.parseLParen() ||
      parser.parseInteger(dim) || parser.parseRParen() ||
      parser.parseKeyword("inclusive") || parser.parseLParen() ||
      parser.parseKeyword(&inclusive) || parser.parseRParen())
    return failure();
  state.addAttribute("dimension", builder.getI64IntegerAttr(dim));
  state.addAttribute("inclusive", builder.getBoolAttr(inclusive == "true"));
  SmallVector<Type> types, results;
  for (StringRef group : {"ins", "outs"})
    if (parser.parseKeyword(group) || parser.parseLParen() ||
        parser.parseOperandList(operands) || parser.parseColonTypeList(types) ||
        parser.parseRParen())
      return failure();
  // The types of results are in parentheses, or not.
  if (parser.parseRegion(*state.addRegion()) ||
      parser.parseArrowTypeList(results) ||
      (succeeded(parser.parseOptionalComma()) && parser.parseTypeList(results)))
    return failure();
  state.addTypes(results);
  return parser.resolveOperands(operands, types, loc, state.operands);
}

namespace {
/// Functions with any operations of the dialects may be inlined.
struct NamedDialectInliner final : public DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;

  bool isLegalToInline(Region *, Region *, bool, IRMapping &) const override {
    return true;
  }
  bool isLegalToInline(Operation *, Region *, bool,
                       IRMapping &) const override {
    return true;
  }
};

/// A dialect without operations of its own, of which all are known by name.
class NamedDialect : public Dialect {
public:
  NamedDialect(StringRef name, MLIRContext *context, TypeID id)
      : Dialect(name, context, id) {
    allowUnknownOperations();
    addInterfaces<NamedDialectInliner>();
  }

  /// Keeps the text of an attribute.
  Attribute parseAttribute(DialectAsmParser &parser, Type) const override {
    return parser.getBuilder().getStringAttr(parser.getFullSymbolSpec());
  }

  std::optional<ParseOpHook>
  getParseOperationHook(StringRef opName) const override {
    if (getNamespace() == "tm_tensor")
      return ParseOpHook(parseTmTensor);
    if (getNamespace() != "stablehlo" && getNamespace() != "chlo")
      return std::nullopt;
    static const auto parse = [](OpAsmParser &parser, OperationState &state) {
      return PrettyParser(parser, state).parse();
    };
    return ParseOpHook(parse);
  }
};

/// One class for each dialect, as the registry tells them by type.
template <char... letters> class ForeignDialect final : public NamedDialect {
public:
  explicit ForeignDialect(MLIRContext *context)
      : NamedDialect(getDialectNamespace(), context,
                     TypeID::get<ForeignDialect>()) {}
  static StringRef getDialectNamespace() {
    static const char text[] = {letters..., 0};
    return text;
  }

  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ForeignDialect)
};

using StableHloDialect =
    ForeignDialect<'s', 't', 'a', 'b', 'l', 'e', 'h', 'l', 'o'>;
using ChloDialect = ForeignDialect<'c', 'h', 'l', 'o'>;
using MhloDialect = ForeignDialect<'m', 'h', 'l', 'o'>;
using SdyDialect = ForeignDialect<'s', 'd', 'y'>;
using JaxDialect = ForeignDialect<'j', 'a', 'x'>;
using TtirDialect = ForeignDialect<'t', 't', 'i', 'r'>;
using TmTensorDialect =
    ForeignDialect<'t', 'm', '_', 't', 'e', 'n', 's', 'o', 'r'>;
using TtcoreDialect = ForeignDialect<'t', 't', 'c', 'o', 'r', 'e'>;
} // namespace

void mlir::posenc::registerHloSyntax(DialectRegistry &registry) {
  registry.insert<StableHloDialect, ChloDialect, MhloDialect, SdyDialect,
                  JaxDialect, TtirDialect, TtcoreDialect, TmTensorDialect>();
}

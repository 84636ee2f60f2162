//===- AbiAttrs.cpp - the C signature of a kernel ---------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/IR/Posenc.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::posenc;

/// A name that a parameter may have in C and in C++.
static bool isIdentifier(StringRef name) {
  // And the types of parameters.
  static const llvm::StringSet<> keywords{
      "alignas",     "alignof",      "and",
      "and_eq",      "asm",          "auto",
      "bitand",      "bitor",        "bool",
      "break",       "case",         "catch",
      "char",        "class",        "co_await",
      "co_return",   "co_yield",     "compl",
      "concept",     "const",        "const_cast",
      "consteval",   "constexpr",    "constinit",
      "continue",    "decltype",     "default",
      "delete",      "DLTensor",     "do",
      "double",      "dynamic_cast", "else",
      "enum",        "explicit",     "export",
      "extern",      "false",        "float",
      "for",         "friend",       "goto",
      "if",          "inline",       "int",
      "int32_t",     "int64_t",      "long",
      "mutable",     "namespace",    "new",
      "noexcept",    "not",          "not_eq",
      "nullptr",     "operator",     "or",
      "or_eq",       "private",      "protected",
      "public",      "register",     "reinterpret_cast",
      "requires",    "restrict",     "return",
      "short",       "signed",       "size_t",
      "sizeof",      "static",       "static_assert",
      "static_cast", "struct",       "switch",
      "template",    "this",         "thread_local",
      "throw",       "true",         "try",
      "typedef",     "typeid",       "typename",
      "uint16_t",    "union",        "unsigned",
      "using",       "virtual",      "void",
      "volatile",    "wchar_t",      "while",
      "xor",         "xor_eq"};
  return !name.empty() && !keywords.contains(name) &&
         !llvm::isDigit(name.front()) && llvm::all_of(name, [](char c) {
           return llvm::isAlnum(c) || c == '_';
         });
}

static bool isScalarType(Type type) {
  return type.isSignlessInteger(64) || type.isSignlessInteger(32) ||
         type.isIndex();
}

static bool isElementType(Type type) {
  return isScalarType(type) ||
         isa<Float64Type, Float32Type, Float16Type, BFloat16Type>(type);
}

LogicalResult ArgAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                              StringRef name, Type type,
                              ArrayRef<int64_t> sizes) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (tensor ? !isElementType(tensor.getElementType()) : !isScalarType(type))
    return emitError() << "type " << type
                       << " has no place in a C signature (arg_c1)";
  int64_t dynamicDims = tensor ? tensor.getNumDynamicDims() : 0;
  if (static_cast<int64_t>(sizes.size()) != dynamicDims ||
      llvm::any_of(sizes, [](int64_t size) { return size < 0; }))
    return emitError() << "expected " << dynamicDims
                       << " sizes, none negative (arg_c2)";
  if (!isIdentifier(name))
    return emitError() << "'" << name << "' cannot be a name in C (arg_c3)";
  return success();
}

LogicalResult AbiAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                              ArrayRef<ArgAttr> inputs,
                              ArrayRef<ArgAttr> outputs,
                              ArrayRef<int64_t> sizes,
                              ArrayRef<int64_t> inPlace,
                              ArrayRef<BoundAttr> bounds) {
  llvm::StringSet<> names;
  for (ArgAttr arg : llvm::concat<const ArgAttr>(inputs, outputs)) {
    for (int64_t size : arg.getSizes())
      if (size >= static_cast<int64_t>(sizes.size()))
        return emitError() << "argument '" << arg.getName() << "' names size "
                           << size << " of " << sizes.size() << " (abi_c1)";
    if (!names.insert(arg.getName()).second)
      return emitError() << "two arguments are called '" << arg.getName()
                         << "' (abi_c4)";
  }
  for (int64_t size : sizes)
    if (size != -1 &&
        (size < 0 || size >= static_cast<int64_t>(inputs.size()) ||
         isa<RankedTensorType>(inputs[size].getType())))
      return emitError() << "size " << size
                         << " is neither -1 nor a scalar input (abi_c2)";
  for (ArgAttr arg : outputs)
    if (!isa<RankedTensorType>(arg.getType()))
      return emitError() << "output '" << arg.getName()
                         << "' is not a tensor (abi_c3)";
  if (inPlace.size() != outputs.size())
    return emitError() << "expected " << outputs.size()
                       << " entries of in_place, got " << inPlace.size()
                       << " (abi_c5)";
  for (auto [output, input] : llvm::zip_equal(outputs, inPlace))
    if (input != -1 &&
        (input < 0 || input >= static_cast<int64_t>(inputs.size()) ||
         inputs[input].getType() != output.getType() ||
         inputs[input].getSizes() != output.getSizes()))
      return emitError() << "output '" << output.getName()
                         << "' cannot take the place of input " << input
                         << " (abi_c5)";
  for (BoundAttr bound : bounds) {
    auto isBad = [&](int64_t number) {
      if (number < 0)
        return false;
      if (number >= static_cast<int64_t>(inputs.size()))
        return true;
      auto tensor = dyn_cast<RankedTensorType>(inputs[number].getType());
      bool holdsIndices = tensor && isa<IntegerType>(tensor.getElementType()) &&
                          (tensor.getRank() == 1 || tensor.getRank() == 2);
      return bound.getKind() == BoundKind::Sizes   ? false
             : bound.getKind() == BoundKind::Heads ? !tensor
                                                   : !holdsIndices;
    };
    auto names = llvm::concat<const int64_t>(bound.getLimit(), bound.getEach());
    if (isBad(bound.getInput()) || isBad(bound.getLengths()) ||
        llvm::any_of(names, [&](int64_t factor) {
          return factor < -static_cast<int64_t>(sizes.size());
        }))
      return emitError() << "no inputs and sizes for " << bound << " (abi_c6)";
  }
  return success();
}

Attribute AbiAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  auto parseArgs = [&](SmallVector<ArgAttr> &args) -> ParseResult {
    return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
      return parser.parseAttribute(args.emplace_back());
    });
  };
  SmallVector<ArgAttr> inputs, outputs;
  auto parseIntegers = [&](StringRef key,
                           SmallVector<int64_t> &values) -> ParseResult {
    return failure(
        parser.parseComma() || parser.parseKeyword(key) ||
        parser.parseEqual() ||
        parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
          return parser.parseInteger(values.emplace_back());
        }));
  };
  SmallVector<int64_t> sizes, inPlace;
  if (parser.parseLess() || parser.parseKeyword("inputs") ||
      parser.parseEqual() || parseArgs(inputs) || parser.parseComma() ||
      parser.parseKeyword("outputs") || parser.parseEqual() ||
      parseArgs(outputs) || parseIntegers("sizes", sizes) ||
      parseIntegers("in_place", inPlace))
    return {};
  SmallVector<BoundAttr> bounds;
  auto parseBound = [&] {
    return parser.parseAttribute(bounds.emplace_back());
  };
  if (succeeded(parser.parseOptionalComma()) &&
      (parser.parseKeyword("bounds") || parser.parseEqual() ||
       parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                      parseBound)))
    return {};
  if (parser.parseGreater())
    return {};
  return parser.getChecked<AbiAttr>(loc, parser.getContext(), ArrayRef(inputs),
                                    ArrayRef(outputs), ArrayRef(sizes),
                                    ArrayRef(inPlace), ArrayRef(bounds));
}

void AbiAttr::print(AsmPrinter &printer) const {
  auto printArgs = [&](auto args) {
    printer << '[';
    llvm::interleaveComma(args, printer.getStream(),
                          [&](Attribute arg) { printer.printAttribute(arg); });
    printer << ']';
  };
  printer << "<inputs = ";
  printArgs(getInputs());
  printer << ", outputs = ";
  printArgs(getOutputs());
  printer << ", sizes = [";
  llvm::interleaveComma(getSizes(), printer.getStream());
  printer << "], in_place = [";
  llvm::interleaveComma(getInPlace(), printer.getStream());
  printer << ']';
  if (!getBounds().empty()) {
    printer << ", bounds = ";
    printArgs(getBounds());
  }
  printer << '>';
}

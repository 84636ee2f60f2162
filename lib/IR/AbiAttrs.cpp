//===- AbiAttrs.cpp - the C signature of a kernel -------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/IR/Names.h"
#include "posenc/IR/Posenc.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::posenc;

static bool isIntegerScalar(Type type) {
  return type.isSignlessInteger(64) || type.isSignlessInteger(32) ||
         type.isIndex();
}

static bool isScalarType(Type type) {
  return isIntegerScalar(type) || isa<Float64Type, Float32Type>(type);
}

static bool isElementType(Type type) {
  return isScalarType(type) || type.isSignlessInteger(1) ||
         type.isSignlessInteger(8) || type.isUnsignedInteger(8) ||
         isa<Float16Type, BFloat16Type, Float8E4M3FNType, Float8E5M2Type>(type);
}

LogicalResult ArgAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                              StringRef name, Type type,
                              ArrayRef<int64_t> sizes, StringAttr) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (tensor && !isElementType(tensor.getElementType()))
    return emitError()
           << "type " << type
           << " is not supported in a C signature: expected elements "
              "f64, f32, f16, bf16, f8E4M3FN, f8E5M2, i64, i32, "
              "i8, ui8, i1 or index (arg_c1)";
  if (!tensor && !isScalarType(type))
    return emitError()
           << "type " << type
           << " is not supported in a C signature: expected a ranked "
              "tensor, i64, i32, index, f64 or f32 (arg_c1)";
  int64_t dynamicDims = tensor ? tensor.getNumDynamicDims() : 0;
  if (static_cast<int64_t>(sizes.size()) != dynamicDims ||
      llvm::any_of(sizes, [](int64_t size) { return size < 0; }))
    return emitError() << "expected " << dynamicDims
                       << " sizes, none negative (arg_c2)";
  if (!isArgumentName(name))
    return emitError() << "'" << name << "' cannot be a name in C (arg_c3)";
  return success();
}

/// Whether a term or relation depends on the symbol.
static bool dependOn(ArrayRef<TermAttr> terms, ArrayRef<RelationAttr> relations,
                     int64_t symbol) {
  auto dependsOn = [&](AffineMap map) {
    return symbol < map.getNumSymbols() && map.isFunctionOfSymbol(symbol);
  };
  return llvm::any_of(
             terms,
             [&](TermAttr term) { return dependsOn(term.getOperands()); }) ||
         llvm::any_of(relations, [&](RelationAttr relation) {
           return dependsOn(relation.getSides());
         });
}

bool AbiAttr::isSizeElement(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.hasStaticShape() && tensor.getNumElements() == 1 &&
         (tensor.getElementType().isSignlessInteger(64) ||
          tensor.getElementType().isSignlessInteger(32));
}

bool AbiAttr::hasSizesOf(int64_t input) const {
  return dependOn(getTerms(), getRelations(), getInputSymbol(input));
}

ArgAttr AbiAttr::getSizeElement() const {
  for (auto [number, input] : llvm::enumerate(getInputs()))
    if (isa<RankedTensorType>(input.getType()) && hasSizesOf(number))
      return input;
  return nullptr;
}

/// Whether entry points read elements of the input to check the bound.
static bool readsElements(BoundAttr bound, int64_t input) {
  bool readsInput = bound.getKind() != BoundKind::Heads;
  return (readsInput && bound.getInput() == input) ||
         bound.getLengths() == input;
}

LogicalResult
AbiAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                ArrayRef<ArgAttr> inputs, ArrayRef<ArgAttr> outputs,
                ArrayRef<int64_t> sizes, ArrayRef<int64_t> inPlace,
                ArrayRef<int64_t> shapeOnly, ArrayRef<BoundAttr> bounds,
                ArrayRef<StringAttr> sizeNames, ArrayRef<TermAttr> terms,
                ArrayRef<RelationAttr> relations) {
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
  auto isScalarInput = [&](int64_t number) {
    return number >= 0 && number < static_cast<int64_t>(inputs.size()) &&
           isIntegerScalar(inputs[number].getType());
  };
  for (int64_t size : sizes)
    if (size < -1 ? -2 - size >= static_cast<int64_t>(terms.size())
                  : size != -1 && !isScalarInput(size))
      return emitError() << "size " << size
                         << " is neither -1 nor a scalar input nor a term "
                            "(abi_c2)";
  for (ArgAttr arg : outputs)
    if (!isa<RankedTensorType>(arg.getType()))
      return emitError() << "output '" << arg.getName()
                         << "' is not a tensor (abi_c3)";
  if (inPlace.size() != outputs.size())
    return emitError() << "expected " << outputs.size()
                       << " elements of in_place, got " << inPlace.size()
                       << " (abi_c5)";
  for (auto [output, input] : llvm::zip_equal(outputs, inPlace))
    if (input != -1 &&
        (input < 0 || input >= static_cast<int64_t>(inputs.size()) ||
         inputs[input].getType() != output.getType() ||
         inputs[input].getSizes() != output.getSizes()))
      return emitError() << "output '" << output.getName()
                         << "' cannot take the place of input " << input
                         << " (abi_c5)";
  // Only terms and relations may use elements.
  auto isSymbol = [&](int64_t symbol, int64_t numTerms, bool allowElements) {
    int64_t numSizes = sizes.size(), numInputs = inputs.size();
    if (symbol < numSizes)
      return sizes[symbol] >= -1;
    symbol -= numSizes;
    if (symbol >= numInputs)
      return symbol - numInputs < numTerms;
    return isScalarInput(symbol) ||
           (allowElements && isSizeElement(inputs[symbol].getType()));
  };
  for (BoundAttr bound : bounds) {
    auto isBad = [&](int64_t number) {
      if (number < 0)
        return false;
      if (number >= static_cast<int64_t>(inputs.size()))
        return true;
      auto tensor = dyn_cast<RankedTensorType>(inputs[number].getType());
      bool holdsIndices = tensor && isa<IntegerType>(tensor.getElementType()) &&
                          (tensor.getRank() == 1 || tensor.getRank() == 2);
      return bound.getKind() == BoundKind::Heads ? !tensor : !holdsIndices;
    };
    auto names = llvm::concat<const int64_t>(bound.getLimit(), bound.getEach());
    if (isBad(bound.getInput()) || isBad(bound.getLengths()) ||
        llvm::any_of(names, [&](int64_t factor) {
          return factor < 0 && !isSymbol(-1 - factor, terms.size(),
                                         /*allowElements=*/false);
        }))
      return emitError() << "no inputs and sizes for " << bound << " (abi_c6)";
  }
  int64_t next = 0;
  for (int64_t input : shapeOnly) {
    if (input < next || input >= static_cast<int64_t>(inputs.size()) ||
        !isa<RankedTensorType>(inputs[input].getType()) ||
        llvm::any_of(
            bounds,
            [&](BoundAttr bound) { return readsElements(bound, input); }) ||
        dependOn(terms, relations, static_cast<int64_t>(sizes.size()) + input))
      return emitError() << "input " << input
                         << " cannot be one of shape_only (abi_c7)";
    next = input + 1;
  }
  if (!sizeNames.empty() && sizeNames.size() != sizes.size())
    return emitError() << "expected " << sizes.size() << " size_names, got "
                       << sizeNames.size() << " (abi_c8)";
  for (auto [name, size] : llvm::zip(sizeNames, sizes)) {
    if (!isArgumentName(name.getValue()))
      return emitError() << "'" << name.getValue()
                         << "' cannot be a name in C (abi_c8)";
    // A size that is a scalar input has the name of that input instead.
    if (size == -1 && !names.insert(name.getValue()).second)
      return emitError() << "two sizes or arguments are called '"
                         << name.getValue() << "' (abi_c8)";
  }
  auto namesSymbols = [&](AffineMap map, int64_t numTerms) {
    bool areKnown = true;
    map.walkExprs([&](AffineExpr expr) {
      if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
        areKnown &= isSymbol(symbol.getPosition(), numTerms,
                             /*allowElements=*/true);
    });
    return areKnown;
  };
  for (auto [number, term] : llvm::enumerate(terms))
    if (!namesSymbols(term.getOperands(), number))
      return emitError() << "no sizes for " << term << " (abi_c9)";
  for (RelationAttr relation : relations)
    if (!namesSymbols(relation.getSides(), terms.size()))
      return emitError() << "no sizes for " << relation << " (abi_c9)";
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
  auto parseList = [&](SmallVector<int64_t> &values) {
    return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
      return parser.parseInteger(values.emplace_back());
    });
  };
  auto parseIntegers = [&](StringRef key,
                           SmallVector<int64_t> &values) -> ParseResult {
    return failure(parser.parseKeyword(key) || parser.parseEqual() ||
                   parseList(values));
  };
  SmallVector<int64_t> sizes, inPlace, shapeOnly;
  if (parser.parseLess() || parser.parseKeyword("inputs") ||
      parser.parseEqual() || parseArgs(inputs) || parser.parseComma() ||
      parser.parseKeyword("outputs") || parser.parseEqual() ||
      parseArgs(outputs) || parser.parseComma() ||
      parseIntegers("sizes", sizes) || parser.parseComma() ||
      parseIntegers("in_place", inPlace))
    return {};
  SmallVector<BoundAttr> bounds;
  SmallVector<TermAttr> terms;
  SmallVector<RelationAttr> relations;
  auto parseAttributes = [&](auto &list) -> ParseResult {
    return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
      return parser.parseAttribute(list.emplace_back());
    });
  };
  SmallVector<StringAttr> sizeNames;
  while (succeeded(parser.parseOptionalComma())) {
    SMLoc keyLoc = parser.getCurrentLocation();
    StringRef key;
    if (failed(parser.parseOptionalKeyword(
            &key,
            {"shape_only", "bounds", "size_names", "terms", "relations"}))) {
      parser.emitError(keyLoc, "expected 'shape_only', 'bounds', 'size_names', "
                               "'terms' or 'relations'");
      return {};
    }
    if (parser.parseEqual() ||
        (key == "shape_only"   ? parseList(shapeOnly)
         : key == "bounds"     ? parseAttributes(bounds)
         : key == "size_names" ? parseAttributes(sizeNames)
         : key == "terms"      ? parseAttributes(terms)
                               : parseAttributes(relations)))
      return {};
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<AbiAttr>(
      loc, parser.getContext(), ArrayRef(inputs), ArrayRef(outputs),
      ArrayRef(sizes), ArrayRef(inPlace), ArrayRef(shapeOnly), ArrayRef(bounds),
      ArrayRef(sizeNames), ArrayRef(terms), ArrayRef(relations));
}

void AbiAttr::print(AsmPrinter &printer) const {
  auto printArgs = [&](auto args) {
    printer << '[';
    llvm::interleaveComma(args, printer.getStream(),
                          [&](Attribute arg) { printer.printAttribute(arg); });
    printer << ']';
  };
  auto printIntegers = [&](StringRef key, ArrayRef<int64_t> values) {
    printer << ", " << key << " = [";
    llvm::interleaveComma(values, printer.getStream());
    printer << ']';
  };
  printer << "<inputs = ";
  printArgs(getInputs());
  printer << ", outputs = ";
  printArgs(getOutputs());
  printIntegers("sizes", getSizes());
  printIntegers("in_place", getInPlace());
  if (!getShapeOnly().empty())
    printIntegers("shape_only", getShapeOnly());
  if (!getBounds().empty()) {
    printer << ", bounds = ";
    printArgs(getBounds());
  }
  if (!getSizeNames().empty()) {
    printer << ", size_names = ";
    printArgs(getSizeNames());
  }
  if (!getTerms().empty()) {
    printer << ", terms = ";
    printArgs(getTerms());
  }
  if (!getRelations().empty()) {
    printer << ", relations = ";
    printArgs(getRelations());
  }
  printer << '>';
}

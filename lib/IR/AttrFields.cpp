//===- AttrFields.cpp - attributes of the form <key = value, ...> ---------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttrFields.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::posenc;

/// Parses a real number. A hexadecimal literal gives its bits, as elsewhere in
/// MLIR, which prints infinities and NaNs this way.
ParseResult mlir::posenc::parseReal(AsmParser &parser, double &value) {
  SMLoc loc = parser.getCurrentLocation();
  // AsmParser has no method that tells the kind of the next literal without an
  // error or losing a sign, so this looks at the text, which is
  // null-terminated.
  const char *text = loc.getPointer();
  if (*text == '-')
    ++text;
  bool isHex = text[0] == '0' && text[1] == 'x';
  const char *end = text;
  while (llvm::isDigit(*end))
    ++end;
  if (end == text || isHex || *end == '.') {
    APFloat real(0.0);
    if (parser.parseFloat(real.getSemantics(), real))
      return failure();
    value = real.convertToDouble();
    return success();
  }
  APInt integer;
  OptionalParseResult result = parser.parseOptionalInteger(integer);
  if (!result.has_value() || failed(*result))
    return failure();
  if (integer.getSignificantBits() > 64)
    return parser.emitError(loc, "integer is too large; write a real");
  value = static_cast<double>(integer.getSExtValue());
  return success();
}

mlir::posenc::FieldParser &mlir::posenc::FieldParser::real(StringRef key,
                                                           FloatAttr &value,
                                                           bool required) {
  fields.push_back({key, required, [this, &value]() -> ParseResult {
                      double number;
                      if (parseReal(parser, number))
                        return failure();
                      value = parser.getBuilder().getF64FloatAttr(number);
                      return success();
                    }});
  return *this;
}

mlir::posenc::FieldParser &mlir::posenc::FieldParser::integer(StringRef key,
                                                              int64_t &value) {
  fields.push_back({key, /*required=*/true,
                    [this, &value] { return parser.parseInteger(value); }});
  return *this;
}

mlir::posenc::FieldParser &mlir::posenc::FieldParser::boolean(StringRef key,
                                                              bool &value) {
  fields.push_back({key, /*required=*/false, [this, &value]() -> ParseResult {
                      if (succeeded(parser.parseOptionalKeyword("true"))) {
                        value = true;
                        return success();
                      }
                      value = false;
                      return parser.parseKeyword("false");
                    }});
  return *this;
}

mlir::posenc::FieldParser &
mlir::posenc::FieldParser::reals(StringRef key, DenseF64ArrayAttr &value) {
  fields.push_back(
      {key, /*required=*/true, [this, &value]() -> ParseResult {
         SmallVector<double> numbers;
         if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
               return parseReal(parser, numbers.emplace_back());
             }))
           return failure();
         value = parser.getBuilder().getDenseF64ArrayAttr(numbers);
         return success();
       }});
  return *this;
}

mlir::posenc::FieldParser &
mlir::posenc::FieldParser::attribute(StringRef key, Attribute &value) {
  fields.push_back({key, /*required=*/false,
                    [this, &value] { return parser.parseAttribute(value); }});
  return *this;
}

mlir::posenc::FieldParser &
mlir::posenc::FieldParser::custom(StringRef key, bool required,
                                  std::function<ParseResult()> read) {
  fields.push_back({key, required, std::move(read)});
  return *this;
}

LogicalResult mlir::posenc::FieldParser::parse() {
  auto readField = [&]() -> ParseResult {
    SMLoc loc = parser.getCurrentLocation();
    StringRef key;
    if (parser.parseKeyword(&key))
      return failure();
    auto *field =
        llvm::find_if(fields, [&](const Field &f) { return f.key == key; });
    if (field == fields.end())
      return parser.emitError(loc, "unknown parameter '") << key << "'";
    if (field->seen)
      return parser.emitError(loc, "parameter '") << key << "' is given twice";
    field->seen = true;
    return failure(parser.parseEqual() || field->read());
  };
  SMLoc loc = parser.getCurrentLocation();
  // The delimiter `LessGreater` reports a missing `<` and then succeeds.
  if (parser.parseLess())
    return failure();
  if (failed(parser.parseOptionalGreater()) &&
      (parser.parseCommaSeparatedList(readField) || parser.parseGreater()))
    return failure();
  for (const Field &field : fields)
    if (field.required && !field.seen)
      return parser.emitError(loc, "missing parameter '") << field.key << "'";
  return success();
}

FieldPrinter::FieldPrinter(AsmPrinter &printer) : printer(printer) {
  printer.getStream() << '<';
}

FieldPrinter::~FieldPrinter() { printer.getStream() << '>'; }

raw_ostream &FieldPrinter::begin(StringRef key) {
  if (!first)
    printer.getStream() << ", ";
  first = false;
  return printer.getStream() << key << " = ";
}

FieldPrinter &FieldPrinter::real(StringRef key, FloatAttr value) {
  if (value) {
    begin(key);
    printer.printFloat(value.getValue());
  }
  return *this;
}

FieldPrinter &FieldPrinter::integer(StringRef key, int64_t value) {
  begin(key) << value;
  return *this;
}

FieldPrinter &FieldPrinter::boolean(StringRef key, bool value) {
  begin(key) << (value ? "true" : "false");
  return *this;
}

FieldPrinter &FieldPrinter::reals(StringRef key, DenseF64ArrayAttr value) {
  begin(key) << '[';
  llvm::interleaveComma(
      value.asArrayRef(), printer.getStream(),
      [&](double number) { printer.printFloat(APFloat(number)); });
  printer.getStream() << ']';
  return *this;
}

FieldPrinter &FieldPrinter::attribute(StringRef key, Attribute value) {
  if (value) {
    begin(key);
    printer.printAttribute(value);
  }
  return *this;
}

FieldPrinter &FieldPrinter::keyword(StringRef key, StringRef value) {
  begin(key) << value;
  return *this;
}

//===- AttrFields.h - attributes as <key = value, ...> ----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Scaling rules have many optional numbers. ODS supports neither floats without
// a type nor omitted defaults, so these attributes share this parser and
// printer of `<key = value, ...>`, in any order.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_IR_ATTRFIELDS_H
#define POSENC_LIB_IR_ATTRFIELDS_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/DialectImplementation.h"

namespace mlir::posenc {

/// Parses a real number, which may lack a fraction.
ParseResult parseReal(AsmParser &parser, double &value);

/// Reads `<key = value, ...>`. Bind every key, then call parse().
class FieldParser {
public:
  explicit FieldParser(AsmParser &parser) : parser(parser) {}

  FieldParser &real(StringRef key, FloatAttr &value, bool required = true);
  FieldParser &integer(StringRef key, int64_t &value);
  FieldParser &boolean(StringRef key, bool &value);
  FieldParser &reals(StringRef key, DenseF64ArrayAttr &value);
  FieldParser &attribute(StringRef key, Attribute &value);
  FieldParser &custom(StringRef key, bool required,
                      std::function<ParseResult()> read);

  /// Parses the list. Emits an error for an unknown, repeated or missing key.
  LogicalResult parse();

private:
  struct Field {
    StringRef key;
    bool required;
    std::function<ParseResult()> read;
    bool seen = false;
  };
  AsmParser &parser;
  SmallVector<Field> fields;
};

/// Writes `<key = value, ...>`.
class FieldPrinter {
public:
  explicit FieldPrinter(AsmPrinter &printer);
  ~FieldPrinter();

  FieldPrinter &real(StringRef key, FloatAttr value);
  FieldPrinter &integer(StringRef key, int64_t value);
  FieldPrinter &boolean(StringRef key, bool value);
  FieldPrinter &reals(StringRef key, DenseF64ArrayAttr value);
  FieldPrinter &attribute(StringRef key, Attribute value);
  FieldPrinter &keyword(StringRef key, StringRef value);
  /// Prints an attribute without its dialect prefix.
  template <typename AttrTy>
  FieldPrinter &stripped(StringRef key, AttrTy value) {
    begin(key);
    printer.printStrippedAttrOrType(value);
    return *this;
  }

private:
  raw_ostream &begin(StringRef key);
  AsmPrinter &printer;
  bool first = true;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_IR_ATTRFIELDS_H

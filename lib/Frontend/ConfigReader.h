//===- ConfigReader.h - typed reading of JSON keys --------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_FRONTEND_CONFIGREADER_H
#define POSENC_LIB_FRONTEND_CONFIGREADER_H

#include "posenc/Frontend/Diagnostic.h"
#include "posenc/Frontend/Json.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Allocator.h"

#include <optional>
#include <string>

namespace posenc::frontend {

/// The result of reading a key. There are three states: not given (absent or
/// null), given with a value, and bad (given without a value). An error has
/// been reported for a bad field, so callers must not report consequences.
template <typename T> struct Field {
  const json::Member *member = nullptr;
  std::optional<T> value;

  bool given() const { return member != nullptr; }
  bool bad() const { return member && !value; }
  /// The name of the key. The field must be given.
  llvm::StringRef name() const { return member->name(); }
  const json::Value &at() const { return member->value; }
};

/// A key of an object that may hold a quantity. Null objects and empty keys are
/// skipped.
struct KeyRef {
  const json::Value *object;
  llvm::StringRef key;
};

class ConfigReader {
public:
  ConfigReader(mlir::MLIRContext &context, const json::Document &document,
               llvm::StringRef fileName,
               llvm::SmallVectorImpl<Diagnostic> &diags)
      : builder(&context), document(document), fileName(fileName),
        diags(diags) {}

  mlir::MLIRContext *getContext() { return builder.getContext(); }
  /// Returns the number as an attribute, or null if there is none.
  mlir::FloatAttr real(std::optional<double> value) {
    return value ? builder.getF64FloatAttr(*value) : mlir::FloatAttr();
  }

  void error(const json::Value &at, const llvm::Twine &message);
  /// Makes values that live as long as the reader.
  json::Value makeArray(uint32_t offset, llvm::ArrayRef<json::Value> elements) {
    return json::Value::makeArray(offset, elements.copy(storage));
  }
  json::Value makeObject(uint32_t offset,
                         llvm::ArrayRef<json::Member> members) {
    return json::Value::makeObject(offset, members.copy(storage));
  }

  /// Returns `line 3, column 7` for the place of a value.
  std::string describePlace(const json::Value &value) const;
  void warning(const json::Value &at, const llvm::Twine &message);
  bool hasErrors() const { return errors != 0; }

  /// Whether a value says that there is none: null, false or 0.
  static bool saysNone(const json::Value &value) {
    return value.isNull() || (value.isBool() && !value.boolean()) ||
           (value.isNumber() && value.number() == 0);
  }

  /// Reports a required key that is not given, at its null or at the object.
  void missing(const json::Value &object, llvm::StringRef key);

  /// Returns the member, or null if it is absent or its value is null.
  static const json::Member *given(const json::Value &object,
                                   llvm::StringRef key);

  Field<double> number(const json::Value &object, llvm::StringRef key);
  Field<double> positive(const json::Value &object, llvm::StringRef key);
  /// Reports an error and clears the value if it is below 2^-64: a frequency
  /// divided by it could exceed the supported range.
  Field<double> divisor(Field<double> field);
  /// Reads an integer from 1 to 2^31-1, in any spelling.
  Field<int64_t> count(const json::Value &object, llvm::StringRef key);
  Field<bool> boolean(const json::Value &object, llvm::StringRef key);
  Field<llvm::StringRef> string(const json::Value &object, llvm::StringRef key);
  Field<const json::Value *> object(const json::Value &object,
                                    llvm::StringRef key);

  /// Reads a quantity that several keys may hold and returns the first that is
  /// given. Checks all of them; two different values are an error.
  Field<double> number(llvm::ArrayRef<KeyRef> keyRefs);
  Field<int64_t> count(llvm::ArrayRef<KeyRef> keyRefs);

private:
  void report(Severity severity, const json::Value &at,
              const llvm::Twine &message);
  void wrongKind(const json::Member &member, const llvm::Twine &expected);

  template <typename T>
  Field<T> firstOf(llvm::ArrayRef<KeyRef> keyRefs,
                   Field<T> (ConfigReader::*read)(const json::Value &,
                                                  llvm::StringRef));

  mlir::Builder builder;
  const json::Document &document;
  llvm::StringRef fileName;
  llvm::SmallVectorImpl<Diagnostic> &diags;
  llvm::BumpPtrAllocator storage;
  unsigned errors = 0;
  unsigned reports = 0;
};

/// Returns text from the file in quotes, with control characters escaped and
/// cut off after 60 bytes.
std::string quoted(llvm::StringRef text);

/// Returns the shortest decimal that reads back as the number.
std::string spelled(double number);

} // namespace posenc::frontend

#endif // POSENC_LIB_FRONTEND_CONFIGREADER_H

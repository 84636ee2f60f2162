//===- ConfigReader.h - typed access with diagnostics -----------*- C++ -*-===//
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

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/Twine.h"

#include <optional>
#include <string>

namespace posenc::frontend {

/// What became of a question for a key. A key that is absent or null is not
/// given; one that is given without a value has been reported, and whoever
/// asked keeps silent about what follows from it.
template <typename T> struct Field {
  const json::Member *member = nullptr;
  std::optional<T> value;

  bool given() const { return member != nullptr; }
  bool bad() const { return member && !value; }
  /// The key's name, at a given field.
  llvm::StringRef name() const { return member->name(); }
  const json::Value &at() const { return member->value; }
};

/// One place where a quantity may stand.
struct Place {
  const json::Value *object;
  llvm::StringRef key;
};

class ConfigReader {
public:
  ConfigReader(const json::Document &document, llvm::StringRef fileName,
               llvm::SmallVectorImpl<Diagnostic> &diags)
      : document(document), fileName(fileName), diags(diags) {}

  void error(const json::Value &at, const llvm::Twine &message);
  void warning(const json::Value &at, const llvm::Twine &message);
  bool hasErrors() const { return errors != 0; }

  /// A required key is not given: reported at its null or at the object.
  void missing(const json::Value &object, llvm::StringRef key);

  /// The member, unless it is absent or null.
  static const json::Member *given(const json::Value &object,
                                   llvm::StringRef key);

  Field<double> number(const json::Value &object, llvm::StringRef key);
  Field<double> positive(const json::Value &object, llvm::StringRef key);
  /// Without its value, after an error, where frequencies divided by it would
  /// be greater than they can be computed for.
  Field<double> divisor(Field<double> field);
  /// A number of things: an integer from 1 to 2^31-1, however written.
  Field<int64_t> count(const json::Value &object, llvm::StringRef key);
  Field<bool> boolean(const json::Value &object, llvm::StringRef key);
  Field<llvm::StringRef> string(const json::Value &object, llvm::StringRef key);
  Field<const json::Value *> object(const json::Value &object,
                                    llvm::StringRef key);

  /// A quantity that may stand in several places: the first that gives it.
  /// Every one is checked, and two that differ are an error.
  Field<double> number(llvm::ArrayRef<Place> places);
  Field<int64_t> count(llvm::ArrayRef<Place> places);

private:
  void report(Severity severity, const json::Value &at,
              const llvm::Twine &message);
  void wrongKind(const json::Member &member, const llvm::Twine &expected);

  template <typename T>
  Field<T> firstOf(llvm::ArrayRef<Place> places,
                   Field<T> (ConfigReader::*read)(const json::Value &,
                                                  llvm::StringRef));

  const json::Document &document;
  llvm::StringRef fileName;
  llvm::SmallVectorImpl<Diagnostic> &diags;
  unsigned errors = 0;
  unsigned reports = 0;
};

/// Text from the file, in quotes, fit for one line of a terminal.
std::string quoted(llvm::StringRef text);

/// The shortest decimal that reads back as the number.
std::string spelled(double number);

} // namespace posenc::frontend

#endif // POSENC_LIB_FRONTEND_CONFIGREADER_H

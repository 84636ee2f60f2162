//===- JsonScalars.h - numbers and strings of JSON --------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_FRONTEND_JSONSCALARS_H
#define POSENC_LIB_FRONTEND_JSONSCALARS_H

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>

namespace posenc::frontend::json {

/// Finds the end of the number that `text` begins with. Returns an empty string
/// and sets `length` to its number of bytes, or returns an error message and
/// sets `length` to the offset of the error.
llvm::StringRef scanNumber(llvm::StringRef text, size_t &length);

struct Number {
  double real = 0; // correctly rounded; infinite on overflow
  bool integral = false;
  std::optional<int64_t> integer;
};

/// Converts a literal that scanNumber() accepted. The result does not depend on
/// the locale.
Number convertNumber(llvm::StringRef literal);

/// Finds the end of the string that `text` begins with; the text starts with a
/// quote, and `length` includes both quotes. Sets `escaped` and fills `decoded`
/// if the string has an escape. Returns errors as scanNumber() does.
llvm::StringRef scanString(llvm::StringRef text, size_t &length,
                           llvm::SmallVectorImpl<char> &decoded, bool &escaped);

} // namespace posenc::frontend::json

#endif // POSENC_LIB_FRONTEND_JSONSCALARS_H

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

/// Finds the end of the number that `text` begins with. Returns what is wrong,
/// `length` then being where, or an empty string.
llvm::StringRef scanNumber(llvm::StringRef text, size_t &length);

struct Number {
  double real = 0; // correctly rounded, infinite beyond the range
  bool integral = false;
  std::optional<int64_t> integer;
};

/// Converts what scanNumber accepted, in any locale alike.
Number convertNumber(llvm::StringRef literal);

/// Finds the end of the string that `text` begins with (a quote), quotes
/// included. `decoded` is filled only if there is an escape in it.
llvm::StringRef scanString(llvm::StringRef text, size_t &length,
                           llvm::SmallVectorImpl<char> &decoded, bool &escaped);

} // namespace posenc::frontend::json

#endif // POSENC_LIB_FRONTEND_JSONSCALARS_H

//===- Lexer.h - tokens of PTX ----------------------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_PTX_LEXER_H
#define POSENC_TEST_PTX_LEXER_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <vector>

namespace posenc::ptx {

/// A piece of PTX.
struct Token {
  enum Kind {
    End,
    Name,     // add, %r1, $L__BB0_1
    Modifier, // .b32, .L2::128B
    Integer,
    Float, // 0f3F800000, 0d…: its bits
    String,
    Mark, // one character
  };
  Kind kind = End;
  llvm::StringRef text;
  unsigned line = 0;
  uint64_t value = 0;
  /// Of a float.
  unsigned bytes = 0;

  bool is(char mark) const { return kind == Mark && text[0] == mark; }
};

/// The tokens of `text`, the last of which is an End. They point into `text`,
/// which ends at its first NUL.
llvm::Expected<std::vector<Token>> lex(llvm::StringRef text);

/// An error in the text itself: "line 3: …".
llvm::Error makeSyntaxError(unsigned line, const llvm::Twine &message);

} // namespace posenc::ptx

#endif // POSENC_TEST_PTX_LEXER_H

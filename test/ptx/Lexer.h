//===- Lexer.h - splits PTX into tokens -------------------------*- C++ -*-===//
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

/// A token, whose `text` points into the source.
struct Token {
  enum Kind {
    End,
    Name,     // add, %r1, $L__BB0_1
    Modifier, // .b32, .L2::128B
    Integer,
    Float, // 0f3F800000, 0d...: the bits of a number
    String,
    Mark, // a punctuation character
  };
  Kind kind = End;
  llvm::StringRef text;
  unsigned line = 0;
  uint64_t value = 0; // of an Integer, or the bits of a Float
  unsigned bytes = 0; // size of a Float: 4 or 8

  bool is(char mark) const { return kind == Mark && text[0] == mark; }
};

/// Splits `text`, up to its first NUL, into tokens. The last token is an End.
/// Tokens point into `text`.
llvm::Expected<std::vector<Token>> lex(llvm::StringRef text);

/// Creates an error "line N: message".
llvm::Error makeSyntaxError(unsigned line, const llvm::Twine &message);

} // namespace posenc::ptx

#endif // POSENC_TEST_PTX_LEXER_H

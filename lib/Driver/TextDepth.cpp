//===- TextDepth.cpp - nesting depth of MLIR text -------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TextDepth.h"

#include <string>

using namespace mlir::posenc;
using llvm::StringRef;

/// Returns the end of the string, comment or operator that begins at `i` and
/// whose characters are not brackets; `i` if there is none.
static size_t skipToken(StringRef text, size_t i) {
  StringRef rest = text.substr(i);
  if (rest.starts_with("//"))
    return std::min(text.find('\n', i), text.size());
  if (rest.starts_with("->") || rest.starts_with(">=") ||
      rest.starts_with("<="))
    return i + 2;
  if (text[i] != '"')
    return i;
  for (++i; i < text.size() && text[i] != '"' && text[i] != '\n'; ++i)
    if (text[i] == '\\')
      ++i;
  return std::min(i + 1, text.size());
}

static char getOpening(char closing) {
  switch (closing) {
  case ')':
    return '(';
  case ']':
    return '[';
  case '}':
    return '{';
  default:
    return '<';
  }
}

std::optional<TextPosition> mlir::posenc::findTooDeep(StringRef text,
                                                      unsigned limit) {
  auto positionOf = [&](size_t offset) {
    StringRef before = text.take_front(offset);
    size_t lineStart = before.rfind('\n') + 1;
    return TextPosition{unsigned(before.count('\n') + 1),
                        unsigned(offset - lineStart + 1)};
  };
  // The open brackets, and the number of operators since the last bracket or
  // comma, which are those of the current affine expression.
  std::string open;
  unsigned operators = 0;
  for (size_t i = 0; i < text.size();) {
    if (size_t end = skipToken(text, i); end != i) {
      i = end;
      continue;
    }
    switch (char c = text[i]) {
    case '(':
    case '[':
    case '{':
    case '<':
      open += c;
      operators = 0;
      break;
    case ')':
    case ']':
    case '}':
      // A `<` that is not a bracket ends with the enclosing bracket.
      while (!open.empty() && open.back() == '<')
        open.pop_back();
      if (!open.empty() && open.back() == getOpening(c))
        open.pop_back();
      operators = 0;
      break;
    case '>':
      if (!open.empty() && open.back() == '<')
        open.pop_back();
      operators = 0;
      break;
    case '+':
    case '-':
    case '*':
      ++operators;
      break;
    case ',':
    case '=':
    case '%':
      operators = 0;
      break;
    case 'd':
    case 'm':
      // `floordiv`, `ceildiv` and `mod`.
      if (text.substr(i, 4) == "div " || text.substr(i, 4) == "mod ")
        ++operators;
      break;
    default:
      break;
    }
    if (open.size() + operators > limit)
      return positionOf(i);
    ++i;
  }
  return std::nullopt;
}

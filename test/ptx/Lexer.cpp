//===- Lexer.cpp - splits PTX into tokens ---------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lexer.h"

#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace posenc::ptx {

namespace {

bool isNameStart(char c) {
  return isAlpha(c) || c == '_' || c == '$' || c == '%';
}
bool isNamePart(char c) { return isAlnum(c) || c == '_' || c == '$'; }

class Lexer {
public:
  explicit Lexer(StringRef text)
      : rest(text.take_until([](char c) { return c == '\0'; })) {}

  Expected<std::vector<Token>> run();

private:
  Error skipBlanks();
  Error addNumber();
  void add(Token::Kind kind, size_t length) {
    Token token;
    token.kind = kind;
    token.text = rest.take_front(length);
    token.line = line;
    tokens.push_back(token);
    rest = rest.drop_front(length);
  }

  StringRef rest;
  unsigned line = 1;
  std::vector<Token> tokens;
};

Error Lexer::skipBlanks() {
  while (!rest.empty()) {
    if (rest.starts_with("//")) {
      rest = rest.drop_until([](char c) { return c == '\n'; });
    } else if (rest.starts_with("/*")) {
      size_t end = rest.find("*/", 2);
      if (end == StringRef::npos)
        return makeSyntaxError(line, "unterminated comment");
      line += rest.take_front(end).count('\n');
      rest = rest.drop_front(end + 2);
    } else if (isSpace(rest.front())) {
      line += rest.front() == '\n';
      rest = rest.drop_front();
    } else {
      break;
    }
  }
  return Error::success();
}

Error Lexer::addNumber() {
  size_t length = rest.find_if_not(isAlnum);
  if (length == StringRef::npos)
    length = rest.size();
  StringRef text = rest.take_front(length);
  uint64_t value = 0;
  unsigned bytes = 0;
  bool isBad = false;
  char second = text.size() > 1 ? toLower(text[1]) : '\0';
  if (second == 'f' || second == 'd') {
    bytes = second == 'f' ? 4 : 8;
    isBad = text[0] != '0' || text.size() != 2 + 2 * bytes ||
            text.drop_front(2).getAsInteger(16, value);
  } else {
    StringRef digits = text;
    if (!digits.consume_back("U"))
      digits.consume_back("u");
    isBad = digits.getAsInteger(0, value);
  }
  if (isBad || rest.drop_front(length).starts_with("."))
    return makeSyntaxError(line, "not a number: '" +
                                     rest.take_front(length + 1) + "'");
  add(bytes ? Token::Float : Token::Integer, length);
  tokens.back().value = value;
  tokens.back().bytes = bytes;
  return Error::success();
}

Expected<std::vector<Token>> Lexer::run() {
  while (true) {
    if (Error error = skipBlanks())
      return std::move(error);
    if (rest.empty())
      break;
    char c = rest.front();
    if (isNameStart(c)) {
      size_t length = rest.find_if_not(isNamePart, 1);
      add(Token::Name, std::min(length, rest.size()));
    } else if (c == '.' && rest.size() > 1 && isNamePart(rest[1])) {
      size_t length = 1;
      while (length < rest.size()) {
        if (isNamePart(rest[length]))
          ++length;
        else if (rest.substr(length).starts_with("::"))
          length += 2;
        else
          break;
      }
      add(Token::Modifier, length);
    } else if (isDigit(c)) {
      // The argument of .version, "8.0", is the only number with a point.
      if (!tokens.empty() && tokens.back().text == ".version") {
        add(Token::String, rest.find_if([](char d) { return isSpace(d); }));
        continue;
      }
      if (Error error = addNumber())
        return std::move(error);
    } else if (c == '"') {
      size_t end = rest.find('"', 1);
      if (end == StringRef::npos)
        return makeSyntaxError(line, "unterminated string");
      add(Token::String, end + 1);
    } else if (StringRef("{}[]()<>,;:@!|+-=&~").contains(c)) {
      add(Token::Mark, 1);
    } else {
      return makeSyntaxError(line, "unexpected character '" + Twine(c) + "'");
    }
  }
  add(Token::End, 0);
  return std::move(tokens);
}

} // namespace

Error makeSyntaxError(unsigned line, const Twine &message) {
  return createStringError("line " + Twine(line) + ": " + message);
}

Expected<std::vector<Token>> lex(StringRef text) { return Lexer(text).run(); }

} // namespace posenc::ptx

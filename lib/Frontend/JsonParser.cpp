//===- JsonParser.cpp - bounded recursive-descent parser of JSON ----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "JsonScalars.h"
#include "posenc/Frontend/Json.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"

#include <limits>

using namespace posenc::frontend::json;
using llvm::StringRef;
using llvm::Twine;

namespace {

/// A recursive-descent parser. Every function returns false after an error. The
/// parser stops at the first error, since it cannot resume after broken syntax.
class Parser {
public:
  Parser(StringRef text, llvm::BumpPtrAllocator &storage, ParseError &error,
         const ParseOptions &options)
      : text(text), storage(storage), error(error), options(options) {}

  bool parseDocument(Value &result) {
    if (text.size() > options.maxBytes)
      return fail(0, "the file is larger than " + Twine(options.maxBytes) +
                         " bytes");
    if (text.starts_with("\xEF\xBB\xBF"))
      at = 3;
    skipSpace();
    if (at == text.size())
      return fail(at, "the file is empty, expected a JSON object");
    if (!parseValue(result, 0))
      return false;
    skipSpace();
    if (at != text.size())
      return fail(at, "unexpected " + describeByte() +
                          " after the end of the JSON value");
    return true;
  }

private:
  bool fail(size_t offset, const Twine &message) {
    error = {Document::positionOf(text, offset), message.str()};
    return false;
  }

  std::string describeByte() const {
    if (at == text.size())
      return "end of file";
    unsigned char byte = text[at];
    if (llvm::isPrint(byte))
      return "'" + std::string(1, byte) + "'";
    return "byte 0x" + llvm::utohexstr(byte, /*LowerCase=*/true, 2);
  }

  void skipSpace() {
    while (at < text.size() && (text[at] == ' ' || text[at] == '\t' ||
                                text[at] == '\n' || text[at] == '\r'))
      ++at;
  }

  bool consume(char c) {
    skipSpace();
    if (at == text.size() || text[at] != c)
      return false;
    ++at;
    return true;
  }

  bool consumeWord(StringRef word) {
    StringRef rest = text.substr(at);
    // 'nullx' is one bad token, not 'null' followed by 'x'.
    if (!rest.starts_with(word) ||
        (rest.size() > word.size() &&
         (llvm::isAlnum(rest[word.size()]) || rest[word.size()] == '_')))
      return false;
    at += word.size();
    return true;
  }

  bool parseValue(Value &result, unsigned depth);
  bool parseWord(Value &result);
  bool parseNumber(Value &result);
  bool parseString(Value &result);
  bool parseArray(Value &result, unsigned depth);
  bool parseObject(Value &result, unsigned depth);

  template <typename T> llvm::ArrayRef<T> keep(llvm::ArrayRef<T> items) {
    return items.copy(storage);
  }

  StringRef text;
  llvm::BumpPtrAllocator &storage;
  ParseError &error;
  const ParseOptions &options;
  size_t at = 0;
  size_t values = 0;
};

bool Parser::parseValue(Value &result, unsigned depth) {
  skipSpace();
  if (++values > options.maxValues)
    return fail(at, "more than " + Twine(options.maxValues) + " values");
  if (at == text.size())
    return fail(at, "unexpected end of file, expected a value");
  switch (text[at]) {
  case '{':
  case '[':
    if (depth >= options.maxDepth)
      return fail(at,
                  "nested deeper than " + Twine(options.maxDepth) + " levels");
    return text[at] == '{' ? parseObject(result, depth + 1)
                           : parseArray(result, depth + 1);
  case '"':
    return parseString(result);
  case '-':
    if (text.substr(at).starts_with("-I"))
      return parseWord(result);
    return parseNumber(result);
  default:
    if (llvm::isDigit(text[at]))
      return parseNumber(result);
    return parseWord(result);
  }
}

bool Parser::parseWord(Value &result) {
  using Limits = std::numeric_limits<double>;
  uint32_t start = at;
  if (consumeWord("null"))
    result = Value::makeNull(start);
  else if (consumeWord("true"))
    result = Value::makeBool(start, true);
  else if (consumeWord("false"))
    result = Value::makeBool(start, false);
  else if (consumeWord("NaN"))
    result = Value::makeNumber(start, Limits::quiet_NaN(), {}, false);
  else if (consumeWord("Infinity"))
    result = Value::makeNumber(start, Limits::infinity(), {}, false);
  else if (consumeWord("-Infinity"))
    result = Value::makeNumber(start, -Limits::infinity(), {}, false);
  else
    return fail(at, "unexpected " + describeByte() + ", expected a value");
  return true;
}

bool Parser::parseNumber(Value &result) {
  size_t length = 0;
  StringRef problem = scanNumber(text.substr(at), length);
  if (!problem.empty())
    return fail(at + length, problem);
  Number number = convertNumber(text.substr(at, length));
  result = Value::makeNumber(at, number.real, number.integer, number.integral);
  at += length;
  return true;
}

bool Parser::parseString(Value &result) {
  uint32_t start = at;
  size_t length = 0;
  llvm::SmallString<64> decoded;
  bool escaped = false;
  StringRef problem = scanString(text.substr(at), length, decoded, escaped);
  if (!problem.empty())
    return fail(at + length, problem);
  StringRef plain = text.substr(at + 1, length - 2);
  result = Value::makeString(start, escaped ? StringRef(decoded).copy(storage)
                                            : plain);
  at += length;
  return true;
}

bool Parser::parseArray(Value &result, unsigned depth) {
  uint32_t start = at++;
  llvm::SmallVector<Value, 8> elements;
  if (!consume(']')) {
    do {
      if (!parseValue(elements.emplace_back(), depth))
        return false;
    } while (consume(','));
    if (!consume(']'))
      return fail(at, "unexpected " + describeByte() +
                          " in an array, expected ',' or ']'");
  }
  result = Value::makeArray(start, keep<Value>(elements));
  return true;
}

bool Parser::parseObject(Value &result, unsigned depth) {
  uint32_t start = at++;
  llvm::SmallVector<Member, 8> members;
  if (!consume('}')) {
    do {
      skipSpace();
      if (at == text.size() || text[at] != '"')
        return fail(at, "unexpected " + describeByte() +
                            " in an object, expected a key in double quotes");
      Member &member = members.emplace_back();
      if (!parseString(member.key))
        return false;
      if (!consume(':'))
        return fail(at, "unexpected " + describeByte() +
                            " after a key, expected ':'");
      if (!parseValue(member.value, depth))
        return false;
    } while (consume(','));
    if (!consume('}'))
      return fail(at, "unexpected " + describeByte() +
                          " in an object, expected ',' or '}'");
  }
  result = Value::makeObject(start, keep<Member>(members));
  return true;
}

} // namespace

std::unique_ptr<Document> Document::parse(StringRef text, ParseError &error,
                                          const ParseOptions &options) {
  std::unique_ptr<Document> document(new Document);
  document->text = text;
  Parser parser(text, document->storage, error, options);
  if (!parser.parseDocument(document->rootValue))
    return nullptr;
  return document;
}

//===- Json.cpp - A strict and bounded JSON reader --------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Json.h"

#include <algorithm>

using namespace posenc::runtime;

/// Metadata nests seven deep; the bound protects the stack.
static constexpr int maxDepth = 32;

const JsonValue *JsonValue::find(const char *key) const {
  for (size_t i = 0; i < keys.size(); ++i)
    if (keys[i] == key)
      return &items[i];
  return nullptr;
}

namespace {
class Parser {
public:
  Parser(const char *text, size_t size, std::string &error)
      : begin(text), cursor(text), end(text + size), error(error) {}

  bool document(JsonValue &out) {
    skipSpace();
    if (!value(out, 0))
      return false;
    skipSpace();
    return cursor == end || fail("text after the end");
  }

private:
  bool fail(const char *what) {
    error = std::string(what) + " at byte " + std::to_string(cursor - begin);
    return false;
  }

  char peek() const { return cursor < end ? *cursor : '\0'; }
  bool isDigit() const { return peek() >= '0' && peek() <= '9'; }
  bool accept(char c) {
    if (cursor == end || *cursor != c)
      return false;
    ++cursor;
    return true;
  }
  void skipSpace() {
    while (cursor < end && (*cursor == ' ' || *cursor == '\t' ||
                            *cursor == '\n' || *cursor == '\r'))
      ++cursor;
  }

  bool value(JsonValue &out, int depth);
  bool array(JsonValue &out, int depth);
  bool object(JsonValue &out, int depth);
  bool number(JsonValue &out);
  bool string(std::string &out);
  bool escape(std::string &out);
  bool hex(uint32_t &out);
  bool utf8(std::string &out);
  bool word(const char *text);

  const char *begin, *cursor, *end;
  std::string &error;
};
} // namespace

static void appendUtf8(std::string &out, uint32_t code) {
  auto put = [&](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80)
    return put(code);
  if (code < 0x800) {
    put(0xC0 | code >> 6);
  } else {
    if (code < 0x10000) {
      put(0xE0 | code >> 12);
    } else {
      put(0xF0 | code >> 18);
      put(0x80 | (code >> 12 & 0x3F));
    }
    put(0x80 | (code >> 6 & 0x3F));
  }
  put(0x80 | (code & 0x3F));
}

bool Parser::word(const char *text) {
  const char *start = cursor;
  for (; *text; ++text)
    if (!accept(*text)) {
      cursor = start;
      return fail("unknown word");
    }
  return true;
}

bool Parser::value(JsonValue &out, int depth) {
  if (depth > maxDepth)
    return fail("nesting too deep");
  if (cursor == end)
    return fail("unexpected end");
  switch (*cursor) {
  case '{':
    return object(out, depth);
  case '[':
    return array(out, depth);
  case '"':
    out.kind = JsonValue::Kind::String;
    return string(out.string);
  case 't':
  case 'f':
    out.kind = JsonValue::Kind::Bool;
    out.boolean = *cursor == 't';
    return word(out.boolean ? "true" : "false");
  case 'n':
    return word("null");
  default:
    return number(out);
  }
}

bool Parser::array(JsonValue &out, int depth) {
  out.kind = JsonValue::Kind::Array;
  ++cursor;
  skipSpace();
  if (accept(']'))
    return true;
  do {
    skipSpace();
    out.items.emplace_back();
    if (!value(out.items.back(), depth + 1))
      return false;
    skipSpace();
  } while (accept(','));
  return accept(']') || fail("expected ',' or ']'");
}

bool Parser::object(JsonValue &out, int depth) {
  out.kind = JsonValue::Kind::Object;
  ++cursor;
  skipSpace();
  if (accept('}'))
    return true;
  do {
    skipSpace();
    out.keys.emplace_back();
    if (peek() != '"')
      return fail("expected a key");
    if (!string(out.keys.back()))
      return false;
    skipSpace();
    if (!accept(':'))
      return fail("expected ':'");
    skipSpace();
    out.items.emplace_back();
    if (!value(out.items.back(), depth + 1))
      return false;
    skipSpace();
  } while (accept(','));
  if (!accept('}'))
    return fail("expected ',' or '}'");

  std::vector<const std::string *> sorted;
  for (const std::string &key : out.keys)
    sorted.push_back(&key);
  auto less = [](auto *a, auto *b) { return *a < *b; };
  auto equal = [](auto *a, auto *b) { return *a == *b; };
  std::sort(sorted.begin(), sorted.end(), less);
  if (std::adjacent_find(sorted.begin(), sorted.end(), equal) != sorted.end())
    return fail("duplicate key in the object that ends");
  return true;
}

bool Parser::number(JsonValue &out) {
  const char *start = cursor;
  out.kind = JsonValue::Kind::Integer;
  bool negative = accept('-'), overflow = false;
  if (!isDigit()) {
    cursor = start;
    return fail("expected a value");
  }
  bool leadingZero = peek() == '0';
  const char *digits = cursor;
  for (; isDigit(); ++cursor) {
    int digit = *cursor - '0';
    overflow |= __builtin_mul_overflow(out.integer, 10, &out.integer) ||
                __builtin_add_overflow(out.integer, negative ? -digit : digit,
                                       &out.integer);
  }
  if (leadingZero && cursor - digits > 1)
    return fail("number with a leading zero");
  if (accept('.')) {
    out.kind = JsonValue::Kind::Real;
    if (!isDigit())
      return fail("expected a digit");
    while (isDigit())
      ++cursor;
  }
  if (peek() == 'e' || peek() == 'E') {
    out.kind = JsonValue::Kind::Real;
    ++cursor;
    if (!accept('+'))
      accept('-');
    if (!isDigit())
      return fail("expected a digit");
    while (isDigit())
      ++cursor;
  }
  if (out.isInteger() && overflow)
    return fail("integer out of range");
  return true;
}

bool Parser::string(std::string &out) {
  ++cursor;
  while (true) {
    if (cursor == end)
      return fail("unterminated string");
    unsigned char c = static_cast<unsigned char>(*cursor);
    if (c == '"') {
      ++cursor;
      return true;
    }
    if (c < 0x20)
      return fail("control character in a string");
    if (c == '\\' ? !escape(out) : !utf8(out))
      return false;
  }
}

bool Parser::hex(uint32_t &out) {
  out = 0;
  for (int i = 0; i < 4; ++i, ++cursor) {
    char c = peek();
    uint32_t digit;
    if (c >= '0' && c <= '9')
      digit = c - '0';
    else if (c >= 'a' && c <= 'f')
      digit = c - 'a' + 10;
    else if (c >= 'A' && c <= 'F')
      digit = c - 'A' + 10;
    else
      return fail("expected a hexadecimal digit");
    out = out << 4 | digit;
  }
  return true;
}

bool Parser::escape(std::string &out) {
  ++cursor;
  char c = peek();
  static const char from[] = "\"\\/bfnrt";
  static const char to[] = "\"\\/\b\f\n\r\t";
  for (int i = 0; from[i]; ++i)
    if (c == from[i]) {
      ++cursor;
      out.push_back(to[i]);
      return true;
    }
  if (!accept('u'))
    return fail("unknown escape");
  uint32_t code, low;
  if (!hex(code))
    return false;
  if (code >= 0xDC00 && code <= 0xDFFF)
    return fail("lone surrogate");
  if (code >= 0xD800 && code <= 0xDBFF) {
    if (!accept('\\') || !accept('u'))
      return fail("lone surrogate");
    if (!hex(low))
      return false;
    if (low < 0xDC00 || low > 0xDFFF)
      return fail("lone surrogate");
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  }
  if (code == 0) // would cut the text short for users of the C interface
    return fail("NUL character");
  appendUtf8(out, code);
  return true;
}

bool Parser::utf8(std::string &out) {
  unsigned char lead = static_cast<unsigned char>(*cursor);
  if (lead < 0x80) {
    out.push_back(*cursor++);
    return true;
  }
  int more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
  if (lead < 0xC2 || lead > 0xF4 || end - cursor <= more)
    return fail("invalid UTF-8");
  uint32_t code = lead & (0x3F >> more);
  for (int i = 1; i <= more; ++i) {
    unsigned char next = static_cast<unsigned char>(cursor[i]);
    if ((next & 0xC0) != 0x80)
      return fail("invalid UTF-8");
    code = code << 6 | (next & 0x3F);
  }
  static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
  if (code < least[more] || code > 0x10FFFF ||
      (code >= 0xD800 && code <= 0xDFFF))
    return fail("invalid UTF-8");
  out.append(cursor, more + 1);
  cursor += more + 1;
  return true;
}

bool posenc::runtime::parseJson(const char *text, size_t size, JsonValue &out,
                                std::string &error) {
  out = JsonValue();
  return Parser(text, size, error).document(out);
}

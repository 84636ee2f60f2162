//===- Json.h - JSON reader that keeps source positions ---------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Errors in a config must point at the value that caused them, even if the
// value is well-formed JSON. llvm::json keeps no positions and drops duplicate
// keys. The parser of llvm::yaml keeps positions, but accepts far more than
// JSON. Both recurse without a bound. docs/decisions/0007 has the inputs that
// were tried.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_FRONTEND_JSON_H
#define POSENC_FRONTEND_JSON_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Allocator.h"

#include <cassert>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace posenc::frontend::json {

/// A 1-based position in the text. The column counts bytes, as in LLVM's tools.
struct Position {
  unsigned line = 1;
  unsigned col = 1;
};

struct ParseError {
  Position position;
  std::string message;
};

struct ParseOptions {
  size_t maxBytes = size_t(16) << 20;
  /// Bounds the memory: a value takes 24 bytes of memory, but can be as short
  /// as two bytes of text.
  size_t maxValues = size_t(1) << 20;
  unsigned maxDepth = 64;
};

struct Member;

/// A value inside a Document, which owns the strings, elements and members.
class Value {
public:
  enum class Kind : uint8_t { Null, Bool, Number, String, Array, Object };

  Value() = default;

  Kind kind() const { return valueKind; }
  bool isNull() const { return valueKind == Kind::Null; }
  bool isBool() const { return valueKind == Kind::Bool; }
  bool isNumber() const { return valueKind == Kind::Number; }
  bool isString() const { return valueKind == Kind::String; }
  bool isArray() const { return valueKind == Kind::Array; }
  bool isObject() const { return valueKind == Kind::Object; }

  bool boolean() const { return flag; }

  /// Returns the double nearest to the literal. It is infinite if the literal
  /// is out of range, and infinite or NaN for Python's literals NaN, Infinity
  /// and -Infinity.
  double number() const {
    assert(isNumber());
    return numeric.real;
  }
  /// Whether the literal denotes an integer, in any spelling (4096, 4096.0,
  /// 4.096e3) and of any size.
  bool isIntegral() const { return isNumber() && flag; }
  /// Returns the integer that the literal denotes, or nullopt if it is not an
  /// integer or does not fit in int64_t.
  std::optional<int64_t> integer() const {
    if (!isIntegral() || !fitsInt64)
      return std::nullopt;
    return numeric.integral;
  }

  llvm::StringRef string() const {
    assert(isString());
    return {static_cast<const char *>(content.data), content.size};
  }
  llvm::ArrayRef<Value> elements() const;
  llvm::ArrayRef<Member> members() const;

  /// Returns the first member named `key`, or null if there is none or this
  /// value is not an object.
  const Member *find(llvm::StringRef key) const;

  /// The byte offset of the value in the text.
  uint32_t offset() const { return textOffset; }

  static Value makeNull(uint32_t offset) { return {Kind::Null, offset}; }
  static Value makeBool(uint32_t offset, bool value);
  static Value makeNumber(uint32_t offset, double value,
                          std::optional<int64_t> integer, bool integral);
  static Value makeString(uint32_t offset, llvm::StringRef text);
  static Value makeArray(uint32_t offset, llvm::ArrayRef<Value> elements);
  static Value makeObject(uint32_t offset, llvm::ArrayRef<Member> members);

private:
  Value(Kind kind, uint32_t offset) : valueKind(kind), textOffset(offset) {}

  struct Content {
    const void *data;
    size_t size;
  };
  struct Numeric {
    double real;
    int64_t integral;
  };

  Kind valueKind = Kind::Null;
  bool flag = false; // the value of a Bool; whether a Number is integral
  bool fitsInt64 = false;
  uint32_t textOffset = 0;
  union {
    Content content = {nullptr, 0};
    Numeric numeric;
  };
};

struct Member {
  Value key; // always a String
  Value value;

  llvm::StringRef name() const { return key.string(); }
};

/// Compares JSON values: numbers by value, objects regardless of the order of
/// their keys.
bool deepEqual(const Value &a, const Value &b);

/// Returns "null", "a boolean", "a number", "a string", "an array" or "an
/// object", for diagnostics.
llvm::StringRef describeKind(const Value &value);

/// A parsed text. The text must outlive the document.
class Document {
public:
  /// Returns null and sets `error` if the text is not JSON or exceeds a bound
  /// of the options. Accepts Python's NaN, Infinity and -Infinity, which occur
  /// in published configs under keys that the frontend does not read.
  static std::unique_ptr<Document> parse(llvm::StringRef text,
                                         ParseError &error,
                                         const ParseOptions &options = {});

  const Value &root() const { return rootValue; }

  /// Counts the lines before the value. This takes linear time, but positions
  /// are needed only in diagnostics.
  Position position(const Value &value) const {
    return positionOf(text, value.offset());
  }
  static Position positionOf(llvm::StringRef text, size_t offset);

private:
  Document() = default;

  llvm::StringRef text;
  llvm::BumpPtrAllocator storage;
  Value rootValue;
};

} // namespace posenc::frontend::json

#endif // POSENC_FRONTEND_JSON_H

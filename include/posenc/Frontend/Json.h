//===- Json.h - a JSON reader that keeps positions --------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Errors in a config must point at the value that caused them, also when the
// value is well-formed JSON. llvm::json keeps no positions and drops duplicate
// keys; llvm::yaml's parser keeps positions but accepts far more than JSON and
// recurses without a bound. Hence a reader of our own.
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

/// 1-based; the column counts bytes, as the columns of LLVM's tools do.
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
  /// Bounds the memory: one value costs 24 bytes, and needs only two of text.
  size_t maxValues = size_t(1) << 20;
  unsigned maxDepth = 64;
};

struct Member;

/// A value inside a Document, which owns what it refers to.
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

  /// The double nearest to the literal. Infinite or NaN where the literal is
  /// one of Python's NaN, Infinity and -Infinity, or beyond double's range.
  double number() const {
    assert(isNumber());
    return numeric.real;
  }
  /// True where the literal denotes an integer, however it is written (4096,
  /// 4096.0, 4.096e3) and however large it is.
  bool isIntegral() const { return isNumber() && flag; }
  /// The integer, where the literal denotes one that an int64_t holds.
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

  /// The first member of that name, null if there is none or this is no object.
  const Member *find(llvm::StringRef key) const;

  /// Where the value begins, in bytes from the beginning of the text.
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
  bool flag = false; // a Bool's value; for a Number: it is integral
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

/// Equality as JSON values: numbers by value, objects regardless of the order
/// of their keys.
bool deepEqual(const Value &a, const Value &b);

/// Null, a boolean, a number, a string, an array, an object: for messages.
llvm::StringRef describeKind(const Value &value);

/// A parsed text. The text must outlive it.
class Document {
public:
  /// Returns null and fills in `error` if the text is not JSON or exceeds a
  /// bound of the options. Python's three non-finite literals are read: they
  /// stand in published configs, under keys nobody asks for.
  static std::unique_ptr<Document> parse(llvm::StringRef text,
                                         ParseError &error,
                                         const ParseOptions &options = {});

  const Value &root() const { return rootValue; }

  /// Found by counting lines: positions are asked for only in diagnostics.
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

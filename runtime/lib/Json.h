//===- Json.h - A strict and bounded JSON reader ----------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RUNTIME_LIB_JSON_H
#define POSENC_RUNTIME_LIB_JSON_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace posenc::runtime {

struct JsonValue {
  enum class Kind { Null, Bool, Integer, Real, String, Array, Object };

  Kind kind = Kind::Null;
  bool boolean = false;
  int64_t integer = 0; ///< Real keeps no value: nothing here needs one
  std::string string;
  std::vector<JsonValue> items;  ///< of an array, or the values of an object
  std::vector<std::string> keys; ///< of an object, beside `items`

  bool isString() const { return kind == Kind::String; }
  bool isInteger() const { return kind == Kind::Integer; }
  bool isArray() const { return kind == Kind::Array; }
  bool isObject() const { return kind == Kind::Object; }

  /// The value of `key` in an object; null where there is none.
  const JsonValue *find(const char *key) const;
};

/// Reads one RFC 8259 document of valid UTF-8. Stricter than the RFC:
/// duplicate keys, NUL characters, integers beyond int64_t and deep nesting are
/// errors too. False with a text that tells the offset in bytes.
bool parseJson(const char *text, size_t size, JsonValue &out,
               std::string &error);

} // namespace posenc::runtime

#endif // POSENC_RUNTIME_LIB_JSON_H

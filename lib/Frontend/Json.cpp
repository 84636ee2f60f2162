//===- Json.cpp - JSON values and their positions -------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Frontend/Json.h"

#include "llvm/ADT/StringMap.h"

using namespace posenc::frontend::json;
using llvm::ArrayRef;
using llvm::StringRef;

static_assert(sizeof(Value) == 24,
              "ParseOptions::maxValues assumes 24 bytes per value");

Value Value::makeBool(uint32_t offset, bool value) {
  Value result(Kind::Bool, offset);
  result.flag = value;
  return result;
}

Value Value::makeNumber(uint32_t offset, double value,
                        std::optional<int64_t> integer, bool integral) {
  Value result(Kind::Number, offset);
  result.flag = integral;
  result.fitsInt64 = integer.has_value();
  result.numeric = {value, integer.value_or(0)};
  return result;
}

Value Value::makeString(uint32_t offset, StringRef text) {
  Value result(Kind::String, offset);
  result.content = {text.data(), text.size()};
  return result;
}

Value Value::makeArray(uint32_t offset, ArrayRef<Value> elements) {
  Value result(Kind::Array, offset);
  result.content = {elements.data(), elements.size()};
  return result;
}

Value Value::makeObject(uint32_t offset, ArrayRef<Member> members) {
  Value result(Kind::Object, offset);
  result.content = {members.data(), members.size()};
  return result;
}

ArrayRef<Value> Value::elements() const {
  assert(isArray());
  return {static_cast<const Value *>(content.data), content.size};
}

ArrayRef<Member> Value::members() const {
  assert(isObject());
  return {static_cast<const Member *>(content.data), content.size};
}

const Member *Value::find(StringRef key) const {
  if (!isObject())
    return nullptr;
  for (const Member &member : members())
    if (member.name() == key)
      return &member;
  return nullptr;
}

static bool equalNumbers(const Value &a, const Value &b) {
  std::optional<int64_t> x = a.integer(), y = b.integer();
  if (x && y)
    return *x == *y;
  // Two NaNs count as equal: they are the same value written twice.
  return a.number() == b.number() ||
         (a.number() != a.number() && b.number() != b.number());
}

static bool equalObjects(const Value &a, const Value &b) {
  if (a.members().size() != b.members().size())
    return false;
  llvm::StringMap<const Value *> other;
  for (const Member &member : b.members())
    other.try_emplace(member.name(), &member.value);
  for (const Member &member : a.members()) {
    auto found = other.find(member.name());
    if (found == other.end() || !deepEqual(member.value, *found->second))
      return false;
  }
  return true;
}

// Recursion is bounded by the depth that the parser accepts.
bool posenc::frontend::json::deepEqual(const Value &a, const Value &b) {
  if (a.kind() != b.kind())
    return false;
  switch (a.kind()) {
  case Value::Kind::Null:
    return true;
  case Value::Kind::Bool:
    return a.boolean() == b.boolean();
  case Value::Kind::Number:
    return equalNumbers(a, b);
  case Value::Kind::String:
    return a.string() == b.string();
  case Value::Kind::Array:
    return a.elements().size() == b.elements().size() &&
           std::equal(a.elements().begin(), a.elements().end(),
                      b.elements().begin(), deepEqual);
  case Value::Kind::Object:
    return equalObjects(a, b);
  }
  return false;
}

StringRef posenc::frontend::json::describeKind(const Value &value) {
  switch (value.kind()) {
  case Value::Kind::Null:
    return "null";
  case Value::Kind::Bool:
    return "a boolean";
  case Value::Kind::Number:
    return "a number";
  case Value::Kind::String:
    return "a string";
  case Value::Kind::Array:
    return "an array";
  case Value::Kind::Object:
    return "an object";
  }
  return "a value";
}

Position Document::positionOf(StringRef text, size_t offset) {
  StringRef before = text.take_front(offset);
  Position result;
  result.line = 1 + before.count('\n');
  size_t lineStart = before.rfind('\n');
  lineStart = lineStart == StringRef::npos ? 0 : lineStart + 1;
  // A byte order mark does not count as a column.
  if (lineStart == 0 && before.starts_with("\xEF\xBB\xBF"))
    lineStart = 3;
  result.col = 1 + before.size() - lineStart;
  return result;
}

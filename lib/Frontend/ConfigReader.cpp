//===- ConfigReader.cpp - typed reading of JSON keys ----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ConfigReader.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/raw_ostream.h"

#include <charconv>
#include <cmath>

using namespace posenc::frontend;
using llvm::StringRef;
using llvm::Twine;

std::string posenc::frontend::quoted(StringRef text) {
  constexpr size_t limit = 60;
  std::string result = "'";
  llvm::raw_string_ostream os(result);
  size_t at = 0;
  while (at < text.size() && at < limit) {
    size_t size = llvm::getNumBytesForUTF8(text[at]);
    StringRef character = text.substr(at, size);
    if (size == 1)
      llvm::printEscapedString(character, os);
    else
      os << character;
    at += size;
  }
  os << (at < text.size() ? "...'" : "'");
  return result;
}

std::string posenc::frontend::spelled(double number) {
  char buffer[32];
  auto [end, code] =
      std::to_chars(std::begin(buffer), std::end(buffer), number);
  return code == std::errc() ? std::string(buffer, end) : "?";
}

void ConfigReader::report(Severity severity, const json::Value &at,
                          const Twine &message) {
  // Finding a position takes linear time, and a hostile text can have a million
  // duplicate keys.
  constexpr unsigned limit = 100;
  if (reports++ >= limit)
    return;
  json::Position position = document.position(at);
  diags.push_back(
      {severity, fileName.str(), position.line, position.col,
       reports == limit ? "too many errors and warnings" : message.str()});
}

std::string ConfigReader::describePlace(const json::Value &value) const {
  json::Position place = document.position(value);
  return "line " + std::to_string(place.line) + ", column " +
         std::to_string(place.col);
}

void ConfigReader::error(const json::Value &at, const Twine &message) {
  ++errors;
  report(Severity::Error, at, message);
}

void ConfigReader::warning(const json::Value &at, const Twine &message) {
  report(Severity::Warning, at, message);
}

void ConfigReader::missing(const json::Value &object, StringRef key) {
  if (const json::Member *member = object.find(key))
    error(member->value, "'" + key + "' is null, but it is required");
  else
    error(object, "missing key '" + key + "'");
}

const json::Member *ConfigReader::given(const json::Value &object,
                                        StringRef key) {
  const json::Member *member = object.find(key);
  return member && !member->value.isNull() ? member : nullptr;
}

void ConfigReader::wrongKind(const json::Member &member,
                             const Twine &expected) {
  error(member.value, "'" + member.name() + "' must be " + expected + ", not " +
                          json::describeKind(member.value));
}

Field<double> ConfigReader::number(const json::Value &object, StringRef key) {
  Field<double> field{given(object, key), std::nullopt};
  if (!field.given())
    return field;
  if (!field.at().isNumber()) {
    wrongKind(*field.member, "a number");
    return field;
  }
  double number = field.at().number();
  if (std::isfinite(number))
    field.value = number;
  else
    error(field.at(), "'" + key + "' must be a finite number, not " +
                          (std::isnan(number) ? "NaN" : "an infinity"));
  return field;
}

Field<double> ConfigReader::positive(const json::Value &object, StringRef key) {
  Field<double> field = number(object, key);
  if (field.value && *field.value <= 0) {
    error(field.at(),
          "'" + key + "' must be greater than 0, not " + spelled(*field.value));
    field.value.reset();
  }
  return field;
}

Field<double> ConfigReader::divisor(Field<double> field) {
  if (!field.value || *field.value >= 0x1p-64)
    return field;
  error(field.at(),
        "'" + field.name() + "' must be " +
            (*field.value > 0 ? "at least 2^-64" : "greater than 0") +
            ", not " + spelled(*field.value));
  field.value.reset();
  return field;
}

Field<int64_t> ConfigReader::count(const json::Value &object, StringRef key) {
  Field<double> real = number(object, key);
  Field<int64_t> field{real.member, std::nullopt};
  if (!real.value)
    return field;
  std::optional<int64_t> integer = real.at().integer();
  if (!real.at().isIntegral())
    error(real.at(),
          "'" + key + "' must be an integer, not " + spelled(*real.value));
  else if (!integer || *integer < 1 || *integer > INT32_MAX)
    error(real.at(),
          "'" + key + "' must lie between 1 and 2147483647, not " +
              (integer ? std::to_string(*integer) : spelled(*real.value)));
  else
    field.value = integer;
  return field;
}

Field<bool> ConfigReader::boolean(const json::Value &object, StringRef key) {
  Field<bool> field{given(object, key), std::nullopt};
  if (!field.given())
    return field;
  if (field.at().isBool())
    field.value = field.at().boolean();
  else
    wrongKind(*field.member, "true or false");
  return field;
}

Field<StringRef> ConfigReader::string(const json::Value &object,
                                      StringRef key) {
  Field<StringRef> field{given(object, key), std::nullopt};
  if (!field.given())
    return field;
  if (field.at().isString())
    field.value = field.at().string();
  else
    wrongKind(*field.member, "a string");
  return field;
}

Field<const json::Value *> ConfigReader::object(const json::Value &object,
                                                StringRef key) {
  Field<const json::Value *> field{given(object, key), std::nullopt};
  if (!field.given())
    return field;
  if (field.at().isObject())
    field.value = &field.at();
  else
    wrongKind(*field.member, "an object");
  return field;
}

template <typename T>
Field<T> ConfigReader::firstOf(
    llvm::ArrayRef<KeyRef> keyRefs,
    Field<T> (ConfigReader::*read)(const json::Value &, StringRef)) {
  Field<T> first;
  for (const KeyRef &place : keyRefs) {
    if (!place.object || place.key.empty())
      continue;
    Field<T> field = (this->*read)(*place.object, place.key);
    if (!field.given())
      continue;
    if (!first.given()) {
      first = field;
    } else if (first.value && field.value && *first.value != *field.value) {
      error(field.at(), "'" + field.name() + "' differs from '" + first.name() +
                            "' at " + describePlace(first.at()));
    }
  }
  return first;
}

Field<double> ConfigReader::number(llvm::ArrayRef<KeyRef> keyRefs) {
  return firstOf<double>(keyRefs, &ConfigReader::number);
}

Field<int64_t> ConfigReader::count(llvm::ArrayRef<KeyRef> keyRefs) {
  return firstOf<int64_t>(keyRefs, &ConfigReader::count);
}

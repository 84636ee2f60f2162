//===- JsonScalars.cpp - numbers and strings of JSON ----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "JsonScalars.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"

#include <algorithm>
#include <charconv>
#include <limits>

using namespace posenc::frontend::json;
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

static bool skipDigits(StringRef text, size_t &at) {
  size_t start = at;
  while (at < text.size() && llvm::isDigit(text[at]))
    ++at;
  return at != start;
}

StringRef posenc::frontend::json::scanNumber(StringRef text, size_t &length) {
  size_t &at = length;
  at = text.starts_with("-") ? 1 : 0;
  size_t firstDigit = at;
  if (!skipDigits(text, at))
    return "expected a digit";
  if (text[firstDigit] == '0' && at - firstDigit > 1) {
    at = firstDigit;
    return "a number must not have leading zeros";
  }
  if (at < text.size() && text[at] == '.') {
    ++at;
    if (!skipDigits(text, at))
      return "expected a digit after the decimal point";
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-'))
      ++at;
    if (!skipDigits(text, at))
      return "expected a digit in the exponent";
  }
  return "";
}

namespace {
/// A literal as sign * digits * 10^exponent. The digits have no leading or
/// trailing zeros.
struct Decimal {
  bool negative = false;
  std::string digits;
  int64_t exponent = 0;
};
} // namespace

static Decimal splitDecimal(StringRef literal) {
  Decimal result;
  result.negative = literal.consume_front("-");
  auto [mantissa, power] = literal.split(literal.contains('e') ? 'e' : 'E');
  auto [whole, fraction] = mantissa.split('.');
  result.digits = (whole + fraction).str();
  if (!power.empty()) {
    power.consume_front("+");
    // The text has at most a few million digits, so no number of them can
    // outweigh such an exponent: saturating keeps every comparison right.
    constexpr int64_t huge = int64_t(1) << 48;
    if (power.getAsInteger(10, result.exponent))
      result.exponent = power.starts_with("-") ? -huge : huge;
    result.exponent = std::clamp(result.exponent, -huge, huge);
  }
  result.exponent -= fraction.size();
  size_t last = result.digits.find_last_not_of('0');
  size_t kept = last == std::string::npos ? 0 : last + 1;
  result.exponent += result.digits.size() - kept;
  result.digits.resize(kept);
  result.digits.erase(0, result.digits.find_first_not_of('0'));
  return result;
}

static std::optional<int64_t> toInteger(const Decimal &decimal) {
  if (decimal.digits.empty())
    return 0;
  if (decimal.digits.size() + decimal.exponent > 19)
    return std::nullopt;
  std::string spelled = decimal.negative ? "-" : "";
  spelled += decimal.digits;
  spelled.append(decimal.exponent, '0');
  int64_t result;
  if (StringRef(spelled).getAsInteger(10, result))
    return std::nullopt;
  return result;
}

Number posenc::frontend::json::convertNumber(StringRef literal) {
  Decimal decimal = splitDecimal(literal);
  Number result;
  result.integral = decimal.digits.empty() || decimal.exponent >= 0;
  if (result.integral)
    result.integer = toInteger(decimal);
  auto [end, code] =
      std::from_chars(literal.begin(), literal.end(), result.real);
  (void)end;
  if (code == std::errc::result_out_of_range) {
    // from_chars does not tell overflow from underflow.
    bool large = int64_t(decimal.digits.size()) + decimal.exponent > 0;
    result.real = large ? std::numeric_limits<double>::infinity() : 0.0;
    if (decimal.negative)
      result.real = -result.real;
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Strings
//===----------------------------------------------------------------------===//

static bool readHex4(StringRef text, size_t at, unsigned &unit) {
  StringRef digits = text.substr(at, 4);
  return digits.size() == 4 && llvm::all_of(digits, llvm::isHexDigit) &&
         !digits.getAsInteger(16, unit);
}

static bool isHighSurrogate(unsigned unit) {
  return unit >= 0xD800 && unit < 0xDC00;
}
static bool isLowSurrogate(unsigned unit) {
  return unit >= 0xDC00 && unit < 0xE000;
}

/// Decodes a \u escape. `at` is the index of the 'u' and becomes the index
/// after the last digit. Returns an error message, or an empty string.
static StringRef decodeUnicode(StringRef text, size_t &at,
                               llvm::SmallVectorImpl<char> &decoded) {
  constexpr StringRef lone = "a lone surrogate is not a character";
  unsigned code;
  if (!readHex4(text, at + 1, code))
    return "expected four hexadecimal digits after '\\u'";
  if (isLowSurrogate(code))
    return lone;
  size_t end = at + 5;
  if (isHighSurrogate(code)) {
    unsigned low;
    if (!text.substr(end).starts_with("\\u") || !readHex4(text, end + 2, low) ||
        !isLowSurrogate(low))
      return lone;
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    end += 6;
  }
  at = end;
  char bytes[UNI_MAX_UTF8_BYTES_PER_CODE_POINT];
  char *last = bytes;
  llvm::ConvertCodePointToUTF8(code, last);
  decoded.append(bytes, last);
  return "";
}

/// Decodes an escape. `at` is the index of the backslash and becomes the index
/// after the escape. Returns an error message, or an empty string.
static StringRef decodeEscape(StringRef text, size_t &at,
                              llvm::SmallVectorImpl<char> &decoded) {
  constexpr StringRef names = "\"\\/bfnrt";
  constexpr StringRef meanings = "\"\\/\b\f\n\r\t";
  if (at + 1 >= text.size()) {
    at = text.size();
    return "unexpected end of file in a string";
  }
  if (text[at + 1] == 'u') {
    size_t next = at + 1;
    StringRef problem = decodeUnicode(text, next, decoded);
    if (problem.empty())
      at = next;
    return problem;
  }
  size_t which = names.find(text[at + 1]);
  if (which == StringRef::npos)
    return "unknown escape in a string";
  decoded.push_back(meanings[which]);
  at += 2;
  return "";
}

/// Returns the number of bytes of the UTF-8 sequence at the front of the text,
/// or 0 if it is ill-formed.
static size_t sequenceLength(StringRef text) {
  auto *bytes = reinterpret_cast<const llvm::UTF8 *>(text.data());
  size_t length = llvm::getNumBytesForUTF8(*bytes);
  if (length > text.size() || !llvm::isLegalUTF8Sequence(bytes, bytes + length))
    return 0;
  return length;
}

StringRef
posenc::frontend::json::scanString(StringRef text, size_t &length,
                                   llvm::SmallVectorImpl<char> &decoded,
                                   bool &escaped) {
  size_t &at = length;
  at = 1;
  size_t plainFrom = 1;
  auto flush = [&] {
    decoded.append(text.begin() + plainFrom, text.begin() + at);
  };
  while (at < text.size()) {
    unsigned char byte = text[at];
    if (byte == '"') {
      if (escaped)
        flush();
      ++at;
      return "";
    }
    if (byte == '\\') {
      escaped = true;
      flush();
      StringRef problem = decodeEscape(text, at, decoded);
      if (!problem.empty())
        return problem;
      plainFrom = at;
    } else if (byte < 0x20) {
      return "a control character in a string must be escaped";
    } else if (size_t size = sequenceLength(text.substr(at))) {
      at += size;
    } else {
      return "the text is not valid UTF-8";
    }
  }
  return "unexpected end of file in a string";
}

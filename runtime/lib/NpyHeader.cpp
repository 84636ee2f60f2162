//===- NpyHeader.cpp - The header of an .npy file -------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NpyHeader.h"
#include "Error.h"
#include "Types.h"

#include <cstring>

using namespace posenc::runtime;

static const char magic[] = "\x93NUMPY";
static constexpr size_t magicSize = 6;

namespace {
struct TypeRow {
  const char *descr; ///< without byte order
  posenc_dtype dtype;
};
} // namespace

// The first row with a dtype is the one that is written, and the first row with
// a descr is the one that is read. NumPy has no bf16 and f8.
static const TypeRow typeTable[] = {
    {"f8", POSENC_F64},    {"f4", POSENC_F32},      {"f2", POSENC_F16},
    {"u2", POSENC_BF16},   {"V2", POSENC_BF16},     {"i8", POSENC_I64},
    {"i4", POSENC_I32},    {"i1", POSENC_I8},       {"b1", POSENC_I1},
    {"u1", POSENC_U8},     {"u1", POSENC_F8E4M3FN}, {"V1", POSENC_F8E4M3FN},
    {"u1", POSENC_F8E5M2},
};

namespace {
class Parser {
public:
  Parser(const std::string &text, std::string &error)
      : cursor(text.data()), end(cursor + text.size()), error(error) {}

  bool header(NpyHeader &out);

private:
  bool fail(const std::string &what) {
    return posenc::runtime::fail(error, "malformed .npy header: " + what);
  }
  void skipSpace() {
    while (cursor < end && (*cursor == ' ' || *cursor == '\n' ||
                            *cursor == '\t' || *cursor == '\r'))
      ++cursor;
  }
  /// Consumes `c` and the white space around it.
  bool accept(char c) {
    skipSpace();
    if (cursor == end || *cursor != c)
      return false;
    ++cursor;
    skipSpace();
    return true;
  }
  bool string(std::string &out);
  bool boolean(bool &out);
  bool shape(std::vector<int64_t> &out);
  bool size(int64_t &out);
  bool type(NpyHeader &out);

  const char *cursor, *end;
  std::string &error;
};
} // namespace

bool Parser::string(std::string &out) {
  skipSpace();
  char quote = cursor < end ? *cursor : '\0';
  if (quote != '\'' && quote != '"')
    return fail("expected a string");
  for (++cursor; cursor < end && *cursor != quote; ++cursor) {
    // Keys and types of plain arrays have no other characters.
    if (*cursor < 0x20 || *cursor > 0x7E || *cursor == '\\')
      return fail("unexpected character in a string");
    out.push_back(*cursor);
  }
  return accept(quote) || fail("unterminated string");
}

bool Parser::boolean(bool &out) {
  skipSpace();
  for (bool value : {false, true}) {
    const char *word = value ? "True" : "False";
    size_t length = std::strlen(word);
    if (size_t(end - cursor) >= length && !std::memcmp(cursor, word, length)) {
      cursor += length;
      out = value;
      return true;
    }
  }
  return fail("'fortran_order' is neither True nor False");
}

bool Parser::size(int64_t &out) {
  if (accept('-'))
    return fail("negative size in the shape");
  if (cursor == end || *cursor < '0' || *cursor > '9')
    return fail("the shape is not a tuple of integers");
  out = 0;
  for (; cursor < end && *cursor >= '0' && *cursor <= '9'; ++cursor)
    if (__builtin_mul_overflow(out, 10, &out) ||
        __builtin_add_overflow(out, *cursor - '0', &out))
      return fail("a size in the shape is too large");
  // Python 2 wrote long integers with a suffix.
  accept('L');
  return true;
}

bool Parser::shape(std::vector<int64_t> &out) {
  if (!accept('('))
    return fail("the shape is not a tuple");
  if (accept(')'))
    return true;
  bool comma = true;
  while (true) {
    if (!comma)
      return fail("expected ',' or ')' in the shape");
    out.push_back(0);
    if (!size(out.back()))
      return false;
    if (out.size() > POSENC_MAX_RANK)
      return fail("more than " + std::to_string(POSENC_MAX_RANK) +
                  " dimensions");
    comma = accept(',');
    if (accept(')'))
      // "(5)" is a number; a tuple of one element is "(5,)".
      return comma || out.size() > 1 || fail("the shape is not a tuple");
  }
}

bool Parser::type(NpyHeader &out) {
  skipSpace();
  if (cursor < end && *cursor == '[')
    return fail("structured types are not supported");
  std::string descr;
  if (!string(descr))
    return false;
  std::string unsupported = "the type '" + descr + "' is not supported";
  if (descr.size() != 3 || !std::strchr("<>=|", descr[0]))
    return fail(unsupported);
  for (const TypeRow &row : typeTable)
    if (!descr.compare(1, 2, row.descr)) {
      size_t size = posenc_dtype_size(row.dtype);
      bool isVoid = row.descr[0] == 'V';
      // '|' means no byte order, which multi-byte numbers need and opaque
      // bytes ('V') do not have.
      if ((descr[0] == '|' && size > 1 && !isVoid) ||
          (descr[0] == '>' && isVoid))
        return fail(unsupported);
      out.dtype = row.dtype;
      out.bigEndian = descr[0] == '>' && size > 1;
      return true;
    }
  return fail(unsupported);
}

bool Parser::header(NpyHeader &out) {
  bool hasType = false, hasOrder = false, hasShape = false;
  if (!accept('{'))
    return fail("not a dictionary");
  while (!accept('}')) {
    std::string key;
    if (!string(key))
      return false;
    if (!accept(':'))
      return fail("expected ':'");
    auto once = [&](bool &seen) {
      if (seen)
        return fail("'" + key + "' twice");
      return seen = true;
    };
    bool ok;
    if (key == "descr")
      ok = once(hasType) && type(out);
    else if (key == "fortran_order")
      ok = once(hasOrder) && boolean(out.fortranOrder);
    else if (key == "shape")
      ok = once(hasShape) && shape(out.shape);
    else
      return fail("unknown key '" + key + "'");
    if (!ok)
      return false;
    if (accept(','))
      continue;
    if (accept('}'))
      break;
    return fail("expected ',' or '}'");
  }
  skipSpace();
  if (cursor != end)
    return fail("text after the dictionary");
  if (!hasType || !hasOrder || !hasShape)
    return fail("'descr', 'fortran_order' or 'shape' is missing");
  if (!tensorBytes(out.dtype, out.shape.data(),
                   static_cast<int32_t>(out.shape.size()), out.payload))
    return fail("the sizes in the shape are too large: their product "
                "overflows");
  return true;
}

bool posenc::runtime::parseNpyPreamble(const char *bytes, size_t size,
                                       size_t &begin, size_t &length,
                                       std::string &error) {
  auto byte = [&](size_t i) { return size_t(uint8_t(bytes[i])); };
  if (size < magicSize || std::memcmp(bytes, magic, magicSize))
    return fail(error, "not an .npy file");
  if (size < 10 || (byte(6) > 1 && size < npyPreambleSize))
    return fail(error, "truncated .npy header");
  if (byte(6) < 1 || byte(6) > 3 || byte(7) != 0)
    return fail(error, "unknown .npy format " + std::to_string(byte(6)) + "." +
                           std::to_string(byte(7)));
  begin = byte(6) == 1 ? 10 : 12;
  length = byte(8) | byte(9) << 8;
  if (begin == 12)
    length |= byte(10) << 16 | byte(11) << 24;
  if (length > maxNpyText)
    return fail(error, "the .npy header is too long: " +
                           std::to_string(length) + " bytes");
  return true;
}

bool posenc::runtime::parseNpyText(const std::string &text, NpyHeader &out,
                                   std::string &error) {
  out = NpyHeader();
  return Parser(text, error).header(out);
}

std::string posenc::runtime::formatNpyHeader(posenc_dtype dtype,
                                             const int64_t *shape,
                                             int32_t rank) {
  if (dtype == POSENC_INDEX)
    dtype = POSENC_I64;
  std::string descr;
  for (const TypeRow &row : typeTable)
    if (row.dtype == dtype) {
      descr = row.descr;
      break;
    }
  std::string text = "{'descr': '";
  text += posenc_dtype_size(dtype) > 1 ? '<' : '|';
  text += descr + "', 'fortran_order': False, 'shape': (";
  for (int32_t dim = 0; dim < rank; ++dim)
    text += std::to_string(shape[dim]) + (dim + 1 < rank ? ", " : "");
  text += rank == 1 ? ",), }" : "), }";
  while ((10 + text.size() + 1) % 64)
    text += ' ';
  text += '\n';
  std::string header(magic, magicSize);
  header += {'\x01', '\x00', static_cast<char>(text.size() & 0xFF),
             static_cast<char>(text.size() >> 8)};
  return header + text;
}

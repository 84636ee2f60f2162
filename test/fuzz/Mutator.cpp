//===- Mutator.cpp - seeded damage to texts and bytes -----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Mutator.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace posenc::fuzz;
using llvm::ArrayRef;
using llvm::SmallVector;
using llvm::StringLiteral;
using llvm::StringRef;

uint64_t Random::next() {
  uint64_t z = (state += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

//===----------------------------------------------------------------------===//
// Dictionaries
//===----------------------------------------------------------------------===//

static constexpr StringLiteral jsonNumbers[] = {"0",
                                                "-0",
                                                "1",
                                                "-1",
                                                "2",
                                                "3",
                                                "0.5",
                                                "1.5",
                                                "1e308",
                                                "1e999",
                                                "-1e999",
                                                "5e-324",
                                                "65536",
                                                "65538",
                                                "131072",
                                                "2147483647",
                                                "2147483648",
                                                "4294967296",
                                                "9223372036854775807",
                                                "-9223372036854775808",
                                                "9223372036854775808",
                                                "1e18",
                                                "1e-300",
                                                "NaN",
                                                "Infinity",
                                                "-Infinity",
                                                "0x10",
                                                "01",
                                                "1."};
static constexpr StringLiteral jsonWords[] = {
    "null",
    "true",
    "false",
    "{}",
    "[]",
    "\"\"",
    "[[]]",
    "{\"a\": {}}",
    "\"yarn\"",
    "\"llama3\"",
    "\"linear\"",
    "\"dynamic\"",
    "\"longrope\"",
    "\"default\"",
    "\"rope_type\"",
    "\"rope_scaling\"",
    "\"rope_parameters\"",
    "\"factor\"",
    "\"head_dim\"",
    "\"rope_theta\"",
    "\"partial_rotary_factor\"",
    "\"original_max_position_embeddings\"",
    "\"llama\"",
    "\"deepseek_v3\"",
    "\"gpt_neox\"",
    "\"\\ud800\"",
    "\"\xED\xA0\"",
    "\"float64\""};

static constexpr StringLiteral mlirNumbers[] = {"?",
                                                "0",
                                                "1",
                                                "-1",
                                                "2",
                                                "3",
                                                "8",
                                                "16",
                                                "17",
                                                "64",
                                                "127",
                                                "65536",
                                                "65537",
                                                "2147483647",
                                                "2147483648",
                                                "-2147483648",
                                                "4294967296",
                                                "4611686018427387904",
                                                "9223372036854775807",
                                                "-9223372036854775808",
                                                "9223372036854775808",
                                                "18446744073709551615",
                                                "18446744073709551616",
                                                "1.0",
                                                "-0.0",
                                                "1e308",
                                                "-1e308",
                                                "5e-324",
                                                "1.0e400",
                                                "0x7FF0000000000000",
                                                "0xFFF0000000000000",
                                                "0x7FF8000000000000",
                                                "0x7F800000",
                                                "0x1"};
static constexpr StringLiteral mlirWords[] = {
    "f64",
    "f32",
    "f16",
    "bf16",
    "f8E4M3FN",
    "i64",
    "i32",
    "i16",
    "i8",
    "i1",
    "index",
    "none",
    "ui64",
    "si32",
    "i128",
    "complex<f32>",
    "!llvm.ptr",
    "tensor<f32>",
    "tensor<*xf32>",
    "tensor<?xi64>",
    "tensor<4x8xf32>",
    "tensor<?x8xbf16>",
    "tensor<4x8xf32, #posenc.axes<axial, [1, 3]>>",
    "tensor<0x8xf32>",
    "tensor<4611686018427387904x8xf32>",
    "vector<4xf32>",
    "vector<[4]xf32>",
    "memref<f32>",
    "memref<*xf32>",
    "memref<?x8xf32>",
    "memref<4x8xf32, 1>",
    "memref<4x8xf32, strided<[16, 2]>>",
    "memref<?x8xf32, strided<[?, ?], offset: ?>>",
    "memref<4x8xf32, affine_map<(d0, d1) -> (d1, d0)>>",
    "tuple<>",
    "() -> ()",
    "half",
    "interleaved",
    "inverse",
    "sin_cos",
    "cos_sin",
    "contiguous",
    "axial",
    "axes",
    "offset",
    "dims",
    "positions",
    "tables",
    "ins",
    "outs",
    "dim",
    "base",
    "scaling",
    "factor",
    "values",
    "attention_factor",
    "private",
    "public",
    "nested",
    "unit",
    "true",
    "false",
    "[]",
    "()",
    "{}",
    "array<i64>",
    "array<i64: 0, 0>",
    "array<i32: 1, 1, 1>",
    "dense<0>",
    "#posenc.linear<factor = 2.0>",
    "#posenc.explicit<values = [1.0]>",
    "#posenc.frequencies<dim = 8>",
    "#posenc.frequencies<dim = 65536>",
    "#posenc.yarn<factor = 4.0, original_max_position = 4096.0>",
    "#posenc.llama3<factor = 8.0, low_freq_factor = 1.0, high_freq_factor = "
    "4.0, original_max_position = 8192.0>",
    "#posenc.abi<inputs = [], outputs = [], sizes = [], in_place = []>",
    "posenc.abi",
    "posenc.chunked",
    "posenc.name",
    "\"posenc.rope\"",
    "posenc.rope",
    "posenc.sincos",
    "posenc.rotate",
    "posenc.sinusoidal",
    "func.func",
    "return",
    "builtin.module",
    "loc(unknown)",
    "@rope",
    "%arg0"};

const Dictionary posenc::fuzz::jsonDictionary = {jsonNumbers, jsonWords};
const Dictionary posenc::fuzz::mlirDictionary = {mlirNumbers, mlirWords};

//===----------------------------------------------------------------------===//
// Tokens
//===----------------------------------------------------------------------===//

namespace {
enum class Kind { Number, Word, String, Punctuation };

struct Token {
  Kind kind;
  size_t begin, size;
};
} // namespace

static bool isWord(char c) {
  return llvm::isAlnum(c) || c == '_' || c == '.' || c == '$';
}

/// The token at `i`, which is no blank. The sizes of `4x?xf32` are tokens of
/// their own.
static Token readToken(StringRef text, size_t i) {
  size_t end = i + 1;
  char c = text[i];
  if (c == '"') {
    while (end < text.size() && text[end] != '"' && text[end] != '\n')
      end += text[end] == '\\' ? 2 : 1;
    return {Kind::String, i, std::min(end + 1, text.size()) - i};
  }
  bool negative = c == '-' && end < text.size() && llvm::isDigit(text[end]);
  if (llvm::isDigit(c) || negative) {
    while (end < text.size() && llvm::isDigit(text[end]))
      ++end;
    bool isSize = end < text.size() && text[end] == 'x' && text[i] != '0';
    while (!isSize && end < text.size() &&
           (isWord(text[end]) || (text[end] == '+' && text[end - 1] == 'e') ||
            (text[end] == '-' && text[end - 1] == 'e')))
      ++end;
    return {Kind::Number, i, end - i};
  }
  if (c == '?')
    return {Kind::Number, i, 1};
  if (c == 'x' && i > 0 &&
      llvm::StringRef("0123456789?*]").contains(text[i - 1]))
    return {Kind::Punctuation, i, 1};
  if (isWord(c) || c == '%' || c == '@' || c == '#' || c == '!' || c == '^') {
    while (end < text.size() && isWord(text[end]))
      ++end;
    return {Kind::Word, i, end - i};
  }
  return {Kind::Punctuation, i, 1};
}

static SmallVector<Token> tokenize(StringRef text) {
  SmallVector<Token> tokens;
  for (size_t i = 0; i < text.size();) {
    if (llvm::isSpace(text[i])) {
      ++i;
      continue;
    }
    tokens.push_back(readToken(text, i));
    i += tokens.back().size;
  }
  return tokens;
}

static std::string replace(StringRef text, const Token &token,
                           StringRef replacement) {
  return (text.take_front(token.begin) + replacement +
          text.drop_front(token.begin + token.size))
      .str();
}

static std::string mutateToken(Random &random, StringRef text, StringRef other,
                               const Dictionary &dictionary) {
  SmallVector<Token> tokens = tokenize(text);
  if (tokens.empty())
    return text.str();
  auto spelling = [&](const Token &t) { return text.substr(t.begin, t.size); };
  Token token = random.pick(ArrayRef<Token>(tokens));
  switch (random.below(8)) {
  case 0:
    return replace(text, token, "");
  case 1:
    return replace(text, token,
                   (spelling(token) + " " + spelling(token)).str());
  case 2: {
    Token second = random.pick(ArrayRef<Token>(tokens));
    if (second.begin < token.begin)
      std::swap(token, second);
    if (token.begin == second.begin)
      return text.str();
    std::string swapped = replace(text, second, spelling(token));
    return replace(swapped, token, spelling(second));
  }
  case 3: {
    // An element of a list, with the comma before it.
    size_t comma = text.find(',', token.begin);
    if (comma == StringRef::npos)
      return text.str();
    size_t end = text.find_first_of(",)]}>:", comma + 1);
    return replace(text,
                   {Kind::Word, comma, std::min(end, text.size()) - comma}, "");
  }
  case 4: {
    SmallVector<Token> others = tokenize(other);
    llvm::erase_if(others, [&](Token t) { return t.kind != token.kind; });
    if (others.empty())
      return text.str();
    Token from = random.pick(ArrayRef<Token>(others));
    return replace(text, token, other.substr(from.begin, from.size));
  }
  case 5:
    return replace(text, token, random.pick(dictionary.words));
  default: {
    SmallVector<Token> numbers;
    for (const Token &t : tokens)
      if (t.kind == Kind::Number)
        numbers.push_back(t);
    if (numbers.empty())
      return text.str();
    return replace(text, random.pick(ArrayRef<Token>(numbers)),
                   random.pick(dictionary.numbers));
  }
  }
}

/// Words that may stand for each other.
static constexpr ArrayRef<StringLiteral> getAlternatives(StringRef word) {
  constexpr static StringLiteral floats[] = {"f64", "f32", "f16", "bf16"};
  constexpr static StringLiteral integers[] = {"i64", "i32", "index"};
  constexpr static StringLiteral shaped[] = {"tensor", "memref"};
  constexpr static StringLiteral pairings[] = {"half", "interleaved"};
  constexpr static StringLiteral layouts[] = {"contiguous", "axial",
                                              "interleaved"};
  constexpr static StringLiteral orders[] = {"sin_cos", "cos_sin",
                                             "interleaved"};
  constexpr static StringLiteral booleans[] = {"true", "false"};
  for (ArrayRef<StringLiteral> group :
       {ArrayRef<StringLiteral>(floats), ArrayRef<StringLiteral>(integers),
        ArrayRef<StringLiteral>(shaped), ArrayRef<StringLiteral>(pairings),
        ArrayRef<StringLiteral>(layouts), ArrayRef<StringLiteral>(orders),
        ArrayRef<StringLiteral>(booleans)})
    if (llvm::is_contained(group, word))
      return group;
  return {};
}

/// Replaces a number or a word wherever it stands, so that what has to agree
/// still does and the input gets behind the first check.
static std::string mutateEverywhere(Random &random, StringRef text) {
  static constexpr StringLiteral sizes[] = {
      "?",  "0",   "1",   "2",    "3",     "4",          "6",
      "7",  "8",   "12",  "16",   "24",    "32",         "33",
      "64", "128", "256", "1024", "65536", "2147483648", "4611686018427387904"};
  SmallVector<Token> tokens = tokenize(text);
  auto spelling = [&](const Token &t) { return text.substr(t.begin, t.size); };
  SmallVector<Token> candidates;
  for (const Token &t : tokens)
    if (t.kind == Kind::Number || !getAlternatives(spelling(t)).empty())
      candidates.push_back(t);
  if (candidates.empty())
    return text.str();
  Token chosen = random.pick(ArrayRef<Token>(candidates));
  StringRef old = spelling(chosen);
  ArrayRef<StringLiteral> alternatives = getAlternatives(old);
  StringRef replacement = chosen.kind == Kind::Number
                              ? random.pick(ArrayRef<StringLiteral>(sizes))
                              : random.pick(alternatives);
  // Doubled or halved, a size has the best chance to suit the others.
  uint64_t number;
  if (chosen.kind == Kind::Number && random.chance(3) &&
      !old.getAsInteger(10, number) && number < (1u << 30)) {
    std::string half = std::to_string(number / 2);
    std::string result;
    size_t end = 0;
    uint64_t factor = random.chance(2) ? 2 : 3;
    for (const Token &t : tokens) {
      if (t.kind != Kind::Number || (spelling(t) != old && spelling(t) != half))
        continue;
      uint64_t value = spelling(t) == old ? number : number / 2;
      result += text.slice(end, t.begin).str() + std::to_string(factor * value);
      end = t.begin + t.size;
    }
    return result + text.substr(end).str();
  }
  std::string result;
  size_t end = 0;
  for (const Token &t : tokens) {
    if (t.kind != chosen.kind || spelling(t) != old)
      continue;
    result += (text.slice(end, t.begin) + replacement).str();
    end = t.begin + t.size;
  }
  return result + text.substr(end).str();
}

//===----------------------------------------------------------------------===//
// Lines and bytes
//===----------------------------------------------------------------------===//

static std::string mutateLine(Random &random, StringRef text, StringRef other) {
  SmallVector<StringRef> lines, others;
  text.split(lines, '\n');
  other.split(others, '\n');
  size_t at = random.below(lines.size());
  StringRef line = lines[at];
  switch (random.below(5)) {
  case 0:
    lines.erase(lines.begin() + at);
    break;
  case 1:
    lines.insert(lines.begin() + at, line);
    break;
  case 2:
    std::swap(lines[at], lines[random.below(lines.size())]);
    break;
  case 3:
    lines.erase(lines.begin() + at);
    lines.insert(lines.begin() + random.below(lines.size() + 1), line);
    break;
  case 4:
    lines.insert(lines.begin() + at, random.pick(ArrayRef<StringRef>(others)));
    break;
  }
  return llvm::join(lines, "\n");
}

static void mutateByte(Random &random, std::string &bytes) {
  if (bytes.empty())
    return;
  size_t at = random.below(bytes.size());
  switch (random.below(6)) {
  case 0:
    bytes[at] = static_cast<char>(random.next());
    break;
  case 1:
    bytes[at] ^= static_cast<char>(1u << random.below(8));
    break;
  case 2:
    bytes.erase(at, 1 + random.below(16));
    break;
  case 3:
    bytes.insert(
        at, bytes.substr(random.below(bytes.size()), 1 + random.below(32)));
    break;
  case 4:
    bytes.insert(at, 1, static_cast<char>(random.next()));
    break;
  case 5:
    // A file that ends too early is rarer: little is left of it.
    if (random.chance(4))
      bytes.resize(at);
    else
      ++bytes[at];
    break;
  }
}

std::string posenc::fuzz::mutateText(Random &random,
                                     ArrayRef<std::string> texts,
                                     const Dictionary &dictionary) {
  std::string text = random.pick(texts);
  for (bool more = true; more; more = random.chance(3)) {
    const std::string &other = random.chance(2) ? text : random.pick(texts);
    switch (random.below(12)) {
    case 0:
      mutateByte(random, text);
      break;
    case 1:
    case 2:
      text = mutateLine(random, text, other);
      break;
    case 3:
    case 4:
    case 5:
      text = mutateToken(random, text, other, dictionary);
      break;
    case 6:
      // Two modules in one; they may have names in common.
      text = text + "\n" + other;
      break;
    default:
      text = mutateEverywhere(random, text);
      break;
    }
  }
  return text;
}

std::string posenc::fuzz::mutateBytes(Random &random,
                                      ArrayRef<std::string> files) {
  std::string bytes = random.pick(files);
  for (bool more = true; more; more = random.chance(3))
    mutateByte(random, bytes);
  return bytes;
}

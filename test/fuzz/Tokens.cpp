//===- Tokens.cpp - mutations of tokens -----------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Tokens.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace posenc::fuzz;
using llvm::ArrayRef;
using llvm::SmallVector;
using llvm::StringLiteral;
using llvm::StringRef;

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

/// Reads the token at `i`, which is not a white space. Each size in `4x?xf32`
/// is a token of its own.
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

std::string posenc::fuzz::mutateToken(Random &random, StringRef text,
                                      StringRef other,
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
    // Removes an element of a list with the comma before it.
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

/// Returns the words of graphs, of those that can replace each other, that have
/// the word.
static ArrayRef<StringLiteral> getAlike(StringRef word) {
  static constexpr StringLiteral floats[] = {
      "arith.addf",     "arith.subf",     "arith.mulf",    "arith.divf",
      "arith.maximumf", "arith.minimumf", "arith.maxnumf", "arith.remf",
      "math.powf",      "math.atan2",     "math.copysign"};
  static constexpr StringLiteral functions[] = {
      "math.exp",  "math.exp2",  "math.cos",   "math.sin",
      "math.tanh", "math.sqrt",  "math.rsqrt", "math.absf",
      "math.log",  "arith.negf", "math.erf",   "math.floor"};
  static constexpr StringLiteral integers[] = {
      "arith.addi",  "arith.subi",      "arith.muli",  "arith.andi",
      "arith.ori",   "arith.xori",      "arith.divsi", "arith.divui",
      "arith.shli",  "arith.remsi",     "arith.maxsi", "arith.remui",
      "arith.shrsi", "arith.floordivsi"};
  static constexpr StringLiteral casts[] = {"arith.extsi", "arith.extui",
                                            "arith.trunci", "arith.index_cast",
                                            "arith.index_castui"};
  static constexpr StringLiteral floatCasts[] = {"arith.sitofp",
                                                 "arith.uitofp"};
  static constexpr StringLiteral widths[] = {"arith.extf", "arith.truncf"};
  static constexpr StringLiteral complexes[] = {"complex.mul", "complex.add",
                                                "complex.sub", "complex.div"};
  static constexpr StringLiteral parts[] = {"complex.re", "complex.im",
                                            "complex.abs", "complex.angle"};
  static constexpr StringLiteral foreign[] = {
      "stablehlo.add",      "stablehlo.subtract", "stablehlo.multiply",
      "stablehlo.divide",   "stablehlo.maximum",  "stablehlo.minimum",
      "stablehlo.power",    "stablehlo.and",      "stablehlo.or",
      "stablehlo.xor",      "stablehlo.atan2",    "stablehlo.shift_left",
      "stablehlo.remainder"};
  static constexpr StringLiteral foreignFunctions[] = {
      "stablehlo.exponential", "stablehlo.cosine", "stablehlo.sine",
      "stablehlo.negate",      "stablehlo.sqrt",   "stablehlo.rsqrt",
      "stablehlo.log",         "stablehlo.abs",    "stablehlo.logistic",
      "stablehlo.not",         "stablehlo.sign",   "stablehlo.convert",
      "stablehlo.reshape",     "stablehlo.popcnt"};
  static constexpr StringLiteral quoted[] = {
      "\"ttir.add\"",     "\"ttir.subtract\"", "\"ttir.multiply\"",
      "\"ttir.div\"",     "\"ttir.maximum\"",  "\"ttir.pow\"",
      "\"ttir.minimum\"", "\"ttir.matmul\"",   "\"ttir.logical_and\""};
  static constexpr StringLiteral predicates[] = {
      "eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"};
  static constexpr StringLiteral orders[] = {"oeq", "ogt", "olt", "oge",
                                             "ole", "une", "uno", "ord"};
  static constexpr StringLiteral directions[] = {"EQ", "NE", "LT",
                                                 "GT", "LE", "GE"};
  static constexpr StringLiteral iterators[] = {"\"parallel\"",
                                                "\"reduction\""};
  static constexpr StringLiteral dims[] = {"d0", "d1", "d2", "d3"};
  for (ArrayRef<StringLiteral> group :
       {ArrayRef(floats), ArrayRef(functions), ArrayRef(integers),
        ArrayRef(casts), ArrayRef(floatCasts), ArrayRef(widths),
        ArrayRef(complexes), ArrayRef(parts), ArrayRef(foreign),
        ArrayRef(foreignFunctions), ArrayRef(quoted), ArrayRef(predicates),
        ArrayRef(orders), ArrayRef(directions), ArrayRef(iterators),
        ArrayRef(dims)})
    if (llvm::is_contained(group, word))
      return group;
  return {};
}

std::string posenc::fuzz::mutateAlike(Random &random, StringRef text) {
  SmallVector<Token> tokens = tokenize(text), values, alike;
  for (const Token &token : tokens) {
    StringRef spelling = text.substr(token.begin, token.size);
    if (spelling.starts_with("%"))
      values.push_back(token);
    else if (!getAlike(spelling).empty())
      alike.push_back(token);
  }
  bool isValue = alike.empty() || random.chance(3);
  if ((isValue ? values : alike).empty())
    return text.str();
  Token token = random.pick(ArrayRef<Token>(isValue ? values : alike));
  StringRef spelling = text.substr(token.begin, token.size);
  if (!isValue)
    return replace(text, token, random.pick(getAlike(spelling)));
  // The values before it are most likely to be visible.
  size_t number = llvm::find_if(values,
                                [&](const Token &other) {
                                  return other.begin == token.begin;
                                }) -
                  values.begin();
  Token other = values[random.below(number + 1)];
  return replace(text, token, text.substr(other.begin, other.size));
}

std::string posenc::fuzz::repeatToken(Random &random, StringRef text) {
  SmallVector<Token> tokens = tokenize(text);
  if (tokens.empty())
    return text.str();
  Token token = random.pick(ArrayRef<Token>(tokens));
  StringRef spelling = text.substr(token.begin, token.size);
  std::string repeated;
  for (size_t times = 2 + random.below(499); times; --times) {
    repeated += spelling;
    // Sizes of a tensor are separated by x.
    if (token.kind != Kind::Punctuation)
      repeated +=
          text.substr(token.begin + token.size).starts_with("x") ? "x" : ", ";
  }
  StringRef separator = token.kind == Kind::Punctuation ? "" : spelling;
  return replace(text, token, repeated + separator.str());
}

/// Returns words that are valid where `word` is.
static ArrayRef<StringLiteral> getAlternatives(StringRef word) {
  static constexpr StringLiteral floats[] = {"f64", "f32", "f16", "bf16"};
  static constexpr StringLiteral integers[] = {"i64", "i32", "index"};
  static constexpr StringLiteral shaped[] = {"tensor", "memref"};
  static constexpr StringLiteral pairings[] = {"half", "interleaved"};
  static constexpr StringLiteral layouts[] = {"contiguous", "axial",
                                              "interleaved"};
  static constexpr StringLiteral orders[] = {"sin_cos", "cos_sin",
                                             "interleaved"};
  static constexpr StringLiteral booleans[] = {"true", "false"};
  for (ArrayRef<StringLiteral> group :
       {ArrayRef<StringLiteral>(floats), ArrayRef<StringLiteral>(integers),
        ArrayRef<StringLiteral>(shaped), ArrayRef<StringLiteral>(pairings),
        ArrayRef<StringLiteral>(layouts), ArrayRef<StringLiteral>(orders),
        ArrayRef<StringLiteral>(booleans)})
    if (llvm::is_contained(group, word))
      return group;
  return {};
}

std::string posenc::fuzz::mutateEverywhere(Random &random, StringRef text) {
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
  // Multiplies a size and its half by 2 or 3: such sizes are the most likely to
  // still agree.
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

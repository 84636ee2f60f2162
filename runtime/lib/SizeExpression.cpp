//===- SizeExpression.cpp - Computes sizes of outputs ---------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SizeExpression.h"

#include <cassert>

using namespace posenc::runtime;

/// The largest stack of operands, and the deepest nesting of the parser.
static constexpr int maxDepth = 100;

static bool isDigit(char c) { return c >= '0' && c <= '9'; }
static bool isLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

class SizeExpression::Parser {
public:
  Parser(const std::string &text, const FindName &findName,
         std::vector<Step> &steps)
      : text(text), findName(findName), steps(steps) {}

  bool parse() { return sum() && (skip(), at == text.size()); }

private:
  void skip() {
    while (at < text.size() && text[at] == ' ')
      ++at;
  }
  bool take(const char *token) {
    skip();
    size_t length = std::char_traits<char>::length(token);
    if (text.compare(at, length, token) != 0)
      return false;
    at += length;
    return true;
  }
  /// Appends an operation whose operands have been parsed.
  bool push(Action action, int operands) {
    depth -= operands - 1;
    steps.push_back({action, 0, {}});
    return depth <= maxDepth;
  }
  bool sum();
  bool product();
  bool factor();
  bool parenthesis();
  bool integer(bool isNegative);

  const std::string &text;
  const FindName &findName;
  std::vector<Step> &steps;
  size_t at = 0;
  int depth = 0, nesting = 0;
};

bool SizeExpression::Parser::sum() {
  if (++nesting > maxDepth || !product())
    return false;
  for (;;) {
    Action action = Action::Add;
    if (take("-"))
      action = Action::Subtract;
    else if (!take("+"))
      break;
    if (!product() || !push(action, 2))
      return false;
  }
  --nesting;
  return true;
}

bool SizeExpression::Parser::product() {
  if (!factor())
    return false;
  for (;;) {
    Action action = Action::Multiply;
    if (take("/"))
      action = Action::Divide;
    else if (take("%"))
      action = Action::Remainder;
    else if (!take("*"))
      return true;
    if (!factor() || !push(action, 2))
      return false;
  }
}

bool SizeExpression::Parser::integer(bool isNegative) {
  int64_t value = 0;
  for (; at < text.size() && isDigit(text[at]); ++at)
    if (__builtin_mul_overflow(value, int64_t(10), &value) ||
        __builtin_add_overflow(value, int64_t(text[at] - '0'), &value))
      return false;
  ++depth;
  steps.push_back({Action::Constant, isNegative ? -value : value, {}});
  return depth <= maxDepth;
}

/// Parses the rest of a parenthesis after the opening one.
bool SizeExpression::Parser::parenthesis() {
  if (!sum())
    return false;
  Action action = Action::IfEqual;
  if (take("<"))
    action = Action::IfLess;
  else if (!take("=="))
    return take(")");
  return sum() && take("?") && sum() && take(":") && sum() && take(")") &&
         push(action, 4);
}

bool SizeExpression::Parser::factor() {
  if (take("("))
    return parenthesis();
  for (auto [token, action] :
       {std::pair("min(", Action::Min), std::pair("max(", Action::Max)})
    if (take(token))
      return sum() && take(",") && sum() && take(")") && push(action, 2);
  bool isNegative = take("-");
  skip();
  if (at < text.size() && isDigit(text[at]))
    return integer(isNegative);
  size_t begin = at;
  while (at < text.size() && (isLetter(text[at]) || isDigit(text[at])))
    ++at;
  if (begin == at || isNegative)
    return false;
  if (text.compare(at, 3, "[0]") == 0)
    at += 3;
  std::optional<Source> source = findName(text.substr(begin, at - begin));
  if (!source)
    return false;
  ++depth;
  steps.push_back({Action::Name, 0, *source});
  return depth <= maxDepth;
}

std::optional<SizeExpression> SizeExpression::parse(const std::string &text,
                                                    const FindName &findName) {
  SizeExpression result;
  if (!Parser(text, findName, result.steps).parse())
    return std::nullopt;
  for (const Step &step : result.steps)
    if (step.action == Action::Name)
      result.names.push_back(step.source);
  return result;
}

std::optional<int64_t> SizeExpression::evaluate(
    const std::function<int64_t(const Source &)> &valueOf) const {
  int64_t stack[maxDepth + 1];
  int64_t *top = stack; // one past the last operand
  for (const Step &step : steps) {
    if (step.action == Action::Constant || step.action == Action::Name) {
      assert(top <= stack + maxDepth && "the parser limits the depth");
      *top++ = step.action == Action::Constant ? step.constant
                                               : valueOf(step.source);
      continue;
    }
    bool isChoice =
        step.action == Action::IfLess || step.action == Action::IfEqual;
    top -= isChoice ? 3 : 1;
    assert(top > stack && "the parser gives each action its operands");
    int64_t &a = top[-1], b = top[0];
    bool fits = true;
    switch (step.action) {
    case Action::Constant:
    case Action::Name:
      break;
    case Action::Add:
      fits = !__builtin_add_overflow(a, b, &a);
      break;
    case Action::Subtract:
      fits = !__builtin_sub_overflow(a, b, &a);
      break;
    case Action::Multiply:
      fits = !__builtin_mul_overflow(a, b, &a);
      break;
    case Action::Divide:
    case Action::Remainder: {
      fits = b > 0;
      if (!fits)
        break;
      int64_t rest = a % b;
      if (step.action == Action::Divide)
        a = a / b - (rest < 0 ? 1 : 0);
      else
        a = rest < 0 ? rest + b : rest;
      break;
    }
    case Action::Min:
      a = a < b ? a : b;
      break;
    case Action::Max:
      a = a > b ? a : b;
      break;
    case Action::IfLess:
      a = a < b ? top[1] : top[2];
      break;
    case Action::IfEqual:
      a = a == b ? top[1] : top[2];
      break;
    }
    if (!fits)
      return std::nullopt;
  }
  assert(top == stack + 1 && "an expression has one value");
  return *stack;
}

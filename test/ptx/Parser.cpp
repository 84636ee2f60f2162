//===- Parser.cpp - parses modules and functions --------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Parser.h"

#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace posenc::ptx {

bool Parser::fail(const Twine &message) {
  if (!hasFailed) {
    hasFailed = true;
    errorLine = peek().line;
    error = message.str();
  }
  return false;
}

bool Parser::expect(char mark) {
  if (consume(mark))
    return true;
  return fail("expected '" + Twine(mark) + "', found '" + peek().text + "'");
}

bool Parser::expectName(StringRef &name) {
  if (peek().kind != Token::Name)
    return fail("expected a name, found '" + peek().text + "'");
  name = take().text;
  return true;
}

void Parser::skipLine() {
  unsigned line = peek().line;
  while (peek().kind != Token::End && peek().line == line)
    take();
}

bool Parser::skipBraces() {
  if (!expect('{'))
    return false;
  for (unsigned depth = 1; depth;) {
    const Token &token = take();
    if (token.kind == Token::End)
      return fail("unterminated braces");
    depth += token.is('{');
    depth -= token.is('}');
  }
  return true;
}

bool Parser::parseTarget() {
  StringRef name;
  if (!expectName(name))
    return false;
  module.target = name.str();
  while (consume(','))
    if (!expectName(name))
      return false;
  return true;
}

bool Parser::parseModuleItem() {
  if (consume(".version")) {
    module.version = take().text.str();
    return true;
  }
  if (consume(".target"))
    return parseTarget();
  if (consume(".address_size")) {
    if (take().value != 64)
      return fail("expected .address_size 64");
    return true;
  }
  if (consume(".file")) {
    skipLine();
    return true;
  }
  if (consume(".section")) {
    while (peek().kind != Token::End && !peek().is('{'))
      take();
    return skipBraces();
  }
  bool isExtern = false;
  while (true) {
    if (consume(".extern"))
      isExtern = true;
    else if (!consume(".visible") && !consume(".weak") && !consume(".common"))
      break;
  }
  if (consume(".entry"))
    return parseFunction(/*isEntry=*/true);
  if (consume(".func"))
    return parseFunction(/*isEntry=*/false);
  VariableSyntax variable;
  variable.isExtern = isExtern;
  if (!parseVariable(variable, /*isParam=*/false) || !expect(';'))
    return false;
  module.variables.push_back(std::move(variable));
  return true;
}

bool Parser::parseParams(std::vector<VariableSyntax> &params) {
  if (!consume('('))
    return true;
  while (!consume(')')) {
    if (!params.empty() && !expect(','))
      return false;
    if (!parseVariable(params.emplace_back(), /*isParam=*/true))
      return false;
    if (params.back().space != Space::Param)
      return fail("parameters in registers are not supported");
  }
  return true;
}

// Parses the performance-tuning directives between the parameters and the body.
bool Parser::parseTuning(FunctionSyntax &function) {
  while (peek().kind == Token::Modifier) {
    StringRef name = take().text;
    if (name == ".noreturn" || name == ".explicitcluster" ||
        name == ".blocksareclusters")
      continue;
    std::array<uint32_t, 3> values = {1, 1, 1};
    unsigned count = 0;
    do {
      uint64_t value;
      if (count == 3)
        return fail("more than three numbers after " + name);
      if (!parseInteger(value))
        return false;
      values[count++] = value;
    } while (consume(','));
    if (name == ".maxntid")
      function.maxThreads = values;
    else if (name == ".reqntid")
      function.requiredThreads = values;
    else if (name == ".reqnctapercluster")
      function.requiredCluster = values;
    else if (name != ".minnctapersm" && name != ".maxnreg" &&
             name != ".maxclusterrank")
      return fail("unknown directive '" + name + "'");
  }
  return true;
}

bool Parser::parseFunction(bool isEntry) {
  FunctionSyntax function;
  function.isEntry = isEntry;
  function.line = peek().line;
  if (!isEntry && !parseParams(function.results))
    return false;
  if (!expectName(function.name) || !parseParams(function.params) ||
      !parseTuning(function))
    return false;
  if (!consume(';')) {
    function.isDefined = true;
    if (!parseBody(function))
      return false;
  }
  module.functions.push_back(std::move(function));
  return true;
}

Expected<ModuleSyntax> Parser::run() {
  if (peek().text != ".version")
    return makeSyntaxError(peek().line,
                           "expected PTX, which begins with .version");
  while (peek().kind != Token::End)
    if (!parseModuleItem())
      return makeSyntaxError(errorLine, error);
  if (module.target.empty())
    return makeSyntaxError(1, "expected a .target directive");
  return std::move(module);
}

Expected<ModuleSyntax> parseSyntax(StringRef text) {
  Expected<std::vector<Token>> tokens = lex(text);
  if (!tokens)
    return tokens.takeError();
  return Parser(std::move(*tokens)).run();
}

} // namespace posenc::ptx

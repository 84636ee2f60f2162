//===- Parser.h - parses PTX ------------------------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_PTX_PARSER_H
#define POSENC_TEST_PTX_PARSER_H

#include "Lexer.h"
#include "Syntax.h"

#include <string>

namespace posenc::ptx {

/// A recursive descent parser of one module. Functions that return bool return
/// false after an error, the first of which run() returns.
class Parser {
public:
  explicit Parser(std::vector<Token> tokens) : tokens(std::move(tokens)) {}

  llvm::Expected<ModuleSyntax> run();

private:
  // Module scope, in Parser.cpp.
  bool parseModuleItem();
  bool parseTarget();
  bool parseFunction(bool isEntry);
  bool parseTuning(FunctionSyntax &function);
  bool parseParams(std::vector<VariableSyntax> &params);

  // Variables and registers, in ParseVariables.cpp.
  bool parseVariable(VariableSyntax &variable, bool isParam);
  bool parseInitializers(VariableSyntax &variable);
  bool parseInitializer(Initializer &initializer);
  bool parseRegisters(Scope &scope);

  // Function bodies, in ParseBody.cpp.
  bool parseBody(FunctionSyntax &function);
  bool parseStatement(FunctionSyntax &function, Scope *&scope);
  bool parseBodyDirective(FunctionSyntax &function, Scope &scope);
  bool parseLabel(FunctionSyntax &function, Scope &scope);
  bool parseInstruction(FunctionSyntax &function, Scope &scope);
  bool parseOperand(OperandSyntax &operand);
  bool parseAddress(OperandSyntax &operand);
  bool parseElements(OperandSyntax &operand, char end);
  bool parseInteger(uint64_t &value);

  // Tokens.
  const Token &peek(unsigned ahead = 0) const {
    return tokens[std::min(next + ahead, tokens.size() - 1)];
  }
  const Token &take() {
    const Token &token = peek();
    if (token.kind != Token::End)
      ++next;
    return token;
  }
  bool consume(char mark) {
    if (!peek().is(mark))
      return false;
    ++next;
    return true;
  }
  bool consume(llvm::StringRef modifier) {
    if (peek().kind != Token::Modifier || peek().text != modifier)
      return false;
    ++next;
    return true;
  }
  bool expect(char mark);
  bool expectName(llvm::StringRef &name);
  bool fail(const llvm::Twine &message);
  /// Skips the rest of a directive that ends at the end of the line.
  void skipLine();
  bool skipBraces();

  std::vector<Token> tokens;
  size_t next = 0;
  ModuleSyntax module;
  bool hasFailed = false;
  unsigned errorLine = 0;
  std::string error;
};

} // namespace posenc::ptx

#endif // POSENC_TEST_PTX_PARSER_H

//===- ParseBody.cpp - parses the bodies of functions ---------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Parser.h"

using namespace llvm;

namespace posenc::ptx {

bool Parser::parseBody(FunctionSyntax &function) {
  if (!expect('{'))
    return false;
  function.scopes.push_back(std::make_unique<Scope>());
  Scope *scope = function.scopes.back().get();
  while (scope)
    if (!parseStatement(function, scope))
      return false;
  return true;
}

bool Parser::parseStatement(FunctionSyntax &function, Scope *&scope) {
  if (consume('{')) {
    function.scopes.push_back(std::make_unique<Scope>());
    function.scopes.back()->parent = scope;
    scope = function.scopes.back().get();
    return true;
  }
  if (consume('}')) {
    scope = scope->parent;
    return true;
  }
  if (consume(';'))
    return true;
  if (peek().kind == Token::Modifier)
    return parseBodyDirective(function, *scope);
  if (peek().kind == Token::Name && peek(1).is(':'))
    return parseLabel(function, *scope);
  return parseInstruction(function, *scope);
}

bool Parser::parseBodyDirective(FunctionSyntax &function, Scope &scope) {
  if (consume(".reg"))
    return parseRegisters(scope);
  if (consume(".loc") || consume(".file")) {
    skipLine();
    return true;
  }
  if (consume(".pragma")) {
    while (!peek().is(';') && peek().kind != Token::End)
      take();
    return expect(';');
  }
  VariableSyntax variable;
  variable.isExtern = consume(".extern");
  if (!parseVariable(variable, /*isParam=*/false) || !expect(';'))
    return false;
  scope.variables.push_back(std::move(variable));
  return true;
}

bool Parser::parseLabel(FunctionSyntax &function, Scope &scope) {
  StringRef name = take().text;
  take();
  if (consume(".branchtargets")) {
    std::vector<StringRef> targets;
    do {
      if (!expectName(targets.emplace_back()))
        return false;
    } while (consume(','));
    scope.branchTargets[name] = std::move(targets);
    return expect(';');
  }
  if (!scope.labels.try_emplace(name, function.body.size()).second)
    return fail("label '" + name + "' is defined twice");
  return true;
}

bool Parser::parseInstruction(FunctionSyntax &function, Scope &scope) {
  InstructionSyntax instruction;
  instruction.scope = &scope;
  instruction.line = peek().line;
  if (consume('@')) {
    instruction.isGuardNegated = consume('!');
    if (!expectName(instruction.guard))
      return false;
  }
  if (!expectName(instruction.opcode))
    return false;
  while (peek().kind == Token::Modifier)
    instruction.modifiers.push_back(take().text);
  if (!consume(';')) {
    do {
      if (!parseOperand(instruction.operands.emplace_back()))
        return false;
    } while (consume(','));
    if (!expect(';'))
      return false;
  }
  function.body.push_back(std::move(instruction));
  return true;
}

bool Parser::parseElements(OperandSyntax &operand, char end) {
  if (consume(end))
    return true;
  do {
    if (!parseOperand(operand.elements.emplace_back()))
      return false;
  } while (consume(','));
  return expect(end);
}

bool Parser::parseAddress(OperandSyntax &operand) {
  operand.kind = OperandSyntax::Address;
  if (peek().kind == Token::Name) {
    operand.name = take().text;
    if (consume(','))
      return expect('{') && parseElements(operand, '}') && expect(']');
    if (peek().is(']'))
      return expect(']');
    if (!peek().is('+') && !peek().is('-'))
      return fail("expected an offset, found '" + peek().text + "'");
    // LLVM prints negative offsets as "+-4".
    if (peek().is('+') && peek(1).is('-'))
      take();
  }
  uint64_t offset;
  if (!parseInteger(offset))
    return false;
  operand.offset = offset;
  return expect(']');
}

bool Parser::parseOperand(OperandSyntax &operand) {
  if (consume('[')) {
    return parseAddress(operand);
  }
  if (consume('{')) {
    operand.kind = OperandSyntax::Vector;
    return parseElements(operand, '}');
  }
  if (consume('(')) {
    operand.kind = OperandSyntax::List;
    return parseElements(operand, ')');
  }
  if (peek().kind == Token::Float) {
    operand.kind = OperandSyntax::Float;
    operand.bytes = peek().bytes;
    operand.value = take().value;
    return true;
  }
  operand.isNegated = consume('!');
  if (peek().kind != Token::Name) {
    if (operand.isNegated)
      return fail("expected a predicate after '!'");
    operand.kind = OperandSyntax::Integer;
    return parseInteger(operand.value);
  }
  operand.name = take().text;
  // The lexer splits %tid.x into two tokens.
  if (operand.name.starts_with("%") && peek().kind == Token::Modifier) {
    StringRef part = take().text;
    operand.name =
        StringRef(operand.name.data(), part.end() - operand.name.data());
  }
  if (peek().is('|')) {
    OperandSyntax first = operand, second;
    take();
    if (!parseOperand(second))
      return false;
    operand = {};
    operand.kind = OperandSyntax::Pair;
    operand.elements = {first, second};
  } else if (peek().is('+') || peek().is('-')) {
    uint64_t offset;
    if (peek().is('+') && peek(1).is('-'))
      take();
    if (!parseInteger(offset))
      return false;
    operand.offset = offset;
  }
  return true;
}

} // namespace posenc::ptx

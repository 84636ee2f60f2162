//===- ParseVariables.cpp - parses variables and registers ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Parser.h"

#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace posenc::ptx {

bool Parser::parseInteger(uint64_t &value) {
  bool isNegative = consume('-');
  if (!isNegative)
    consume('+');
  if (peek().kind != Token::Integer)
    return fail("expected an integer, found '" + peek().text + "'");
  value = take().value;
  if (isNegative)
    value = -value;
  return true;
}

// Parses `.space .align N .type name[dims] = {...}`, after the linkage, or a
// parameter such as `.param .u64 .ptr .global .align 1 name`.
bool Parser::parseVariable(VariableSyntax &variable, bool isParam) {
  if (peek().kind != Token::Modifier)
    return fail("expected a declaration, found '" + peek().text + "'");
  std::optional<Space> space = parseSpace(peek().text);
  if (!space)
    return fail("unknown declaration '" + peek().text + "'");
  variable.space = *space;
  take();
  bool hasType = false;
  unsigned lanes = 1;
  uint64_t align = 0;
  while (peek().kind == Token::Modifier) {
    StringRef word = take().text;
    uint64_t value;
    if (word == ".align") {
      if (!parseInteger(value))
        return false;
      if (!isPowerOf2_64(value) || value > 4096)
        return fail("expected an alignment that is a power of 2 up to 4096");
      align = value;
    } else if (word == ".v2" || word == ".v4") {
      lanes = word == ".v2" ? 2 : 4;
    } else if (isParam && word == ".ptr") {
      // The state space and alignment of the pointee are ignored.
      if (peek().kind == Token::Modifier && parseSpace(peek().text))
        take();
      if (consume(".align") && !parseInteger(value))
        return false;
    } else if (std::optional<Type> type = parseType(word)) {
      variable.type = *type;
      hasType = true;
    } else {
      return fail("unknown part of a declaration: '" + word + "'");
    }
  }
  variable.line = peek().line;
  if (!hasType)
    return fail("expected the type of a variable");
  if (!expectName(variable.name))
    return false;
  unsigned bytes = getBytes(variable.type) * lanes;
  variable.align = align ? align : bytes;
  uint64_t count = 1;
  bool isOpen = false;
  while (consume('[')) {
    if (consume(']')) {
      isOpen = true;
      continue;
    }
    uint64_t length;
    if (!parseInteger(length) || !expect(']'))
      return false;
    if (length > (uint64_t(1) << 32) || count > (uint64_t(1) << 32))
      return fail("the array is too large");
    count *= length;
  }
  if (!isParam && consume('=') && !parseInitializers(variable))
    return false;
  if (isOpen)
    count = variable.initializers.size();
  variable.size = bytes * count;
  if (variable.initializers.size() * getBytes(variable.type) > variable.size)
    return fail("more initializers than elements");
  return true;
}

bool Parser::parseInitializers(VariableSyntax &variable) {
  variable.isInitialized = true;
  if (!consume('{'))
    return parseInitializer(variable.initializers.emplace_back());
  unsigned depth = 1;
  while (depth) {
    if (consume('{')) {
      ++depth;
    } else if (consume('}')) {
      --depth;
      consume(',');
    } else {
      if (!parseInitializer(variable.initializers.emplace_back()))
        return false;
      if (!peek().is('}') && !expect(','))
        return false;
    }
  }
  return true;
}

// Parses an element: 7, -7, 0f3F800000, name, name+4, generic(name)+4 or
// 0xFF00(name).
bool Parser::parseInitializer(Initializer &initializer) {
  if (peek().kind == Token::Float) {
    initializer.value = take().value;
    return true;
  }
  if (peek().kind != Token::Name) {
    if (!parseInteger(initializer.value))
      return false;
    if (!consume('('))
      return true;
    uint64_t mask = initializer.value;
    initializer = {};
    if (!parseInitializer(initializer) || !expect(')'))
      return false;
    initializer.mask = mask;
    return true;
  }
  initializer.symbol = take().text;
  if (initializer.symbol == "generic" && consume('(')) {
    initializer.isGeneric = true;
    if (!expectName(initializer.symbol) || !expect(')'))
      return false;
  }
  if (peek().is('+') || peek().is('-'))
    return parseInteger(initializer.value);
  return true;
}

// Parses `.reg .b32 %r<10>, %a;` after .reg.
bool Parser::parseRegisters(Scope &scope) {
  RegisterSyntax syntax;
  if (peek().kind != Token::Modifier)
    return fail("expected a register type");
  std::optional<Type> type = parseType(peek().text);
  if (!type)
    return fail("unknown register type '" + peek().text + "'");
  take();
  // Registers of one byte are stored in two.
  syntax.type = getBytes(*type) == 1 ? Type::B16 : *type;
  do {
    StringRef name;
    if (!expectName(name))
      return false;
    syntax.isRange = consume('<');
    if (syntax.isRange && (!parseInteger(syntax.count) || !expect('>')))
      return false;
    if (!scope.registers.try_emplace(name, syntax).second)
      return fail("registers '" + name + "' are declared twice");
  } while (consume(','));
  return expect(';');
}

} // namespace posenc::ptx

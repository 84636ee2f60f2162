//===- Syntax.h - the syntax tree of PTX ------------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_PTX_SYNTAX_H
#define POSENC_TEST_PTX_SYNTAX_H

#include "Types.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

#include <array>
#include <memory>
#include <string>
#include <vector>

// The output of the parser, before names are resolved. Strings point into the
// source.

namespace posenc::ptx {

/// One element of an initializer.
struct Initializer {
  uint64_t value = 0; // bits, or the offset to the address of `symbol`
  llvm::StringRef symbol;
  bool isGeneric = false;
  /// The bits of an address to use: 0xFF00(symbol) is its second byte.
  uint64_t mask = ~uint64_t(0);
};

/// A variable in memory: any state space except registers.
struct VariableSyntax {
  llvm::StringRef name;
  unsigned line = 0;
  Space space = Space::Global;
  Type type = Type::B8;
  unsigned align = 1;
  uint64_t size = 0;
  bool isExtern = false;
  bool isInitialized = false;
  std::vector<Initializer> initializers;
};

/// The declaration of registers %r<count>, or of a single register.
struct RegisterSyntax {
  Type type = Type::B32;
  bool isRange = false;
  uint64_t count = 0;
};

/// A block in braces, the scope of the names declared in it.
struct Scope {
  Scope *parent = nullptr;
  llvm::StringMap<RegisterSyntax> registers;
  std::vector<VariableSyntax> variables;
  llvm::StringMap<unsigned> labels; // index of the labelled instruction
  llvm::StringMap<std::vector<llvm::StringRef>> branchTargets;
};

struct OperandSyntax {
  enum Kind { Name, Integer, Float, Address, Vector, Pair, List };
  Kind kind = Name;
  llvm::StringRef name;   // including ".x"; the base of an address, or ""
  bool isNegated = false; // !%p
  uint64_t value = 0;     // an integer, or the bits of a float
  unsigned bytes = 0;     // size of a float
  int64_t offset = 0;     // added to an address or a name
  /// The parts of {a, b}, p|q and (a, b), and the coordinates of [map, {a, b}].
  std::vector<OperandSyntax> elements;
};

struct InstructionSyntax {
  unsigned line = 0;
  llvm::StringRef guard;
  bool isGuardNegated = false;
  llvm::StringRef opcode;
  llvm::SmallVector<llvm::StringRef, 6> modifiers;
  std::vector<OperandSyntax> operands;
  Scope *scope = nullptr;
};

struct FunctionSyntax {
  llvm::StringRef name;
  unsigned line = 0;
  bool isEntry = false;
  bool isDefined = false;
  std::vector<VariableSyntax> results, params;
  /// .maxntid, .reqntid and .reqnctapercluster; 0 without the directive.
  std::array<uint32_t, 3> maxThreads{}, requiredThreads{}, requiredCluster{};
  std::vector<std::unique_ptr<Scope>> scopes; // the first is the body
  std::vector<InstructionSyntax> body;
};

struct ModuleSyntax {
  std::string version, target;
  std::vector<VariableSyntax> variables;
  std::vector<FunctionSyntax> functions;
};

llvm::Expected<ModuleSyntax> parseSyntax(llvm::StringRef text);

} // namespace posenc::ptx

#endif // POSENC_TEST_PTX_SYNTAX_H

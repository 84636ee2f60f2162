//===- FunctionDecoder.cpp - symbols, registers and functions of a module -===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"
#include "Lexer.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace posenc::ptx {

bool FunctionDecoder::fail(unsigned line, const Twine &message) {
  if (!hasFailed) {
    hasFailed = true;
    errorLine = line;
    error = message.str();
  }
  return false;
}

Error FunctionDecoder::takeError() const {
  return makeSyntaxError(errorLine, error);
}

bool FunctionDecoder::addVariable(const VariableSyntax &syntax,
                                  uint32_t &index) {
  if (syntax.space == Space::Shared && syntax.isInitialized)
    return fail(syntax.line, "shared memory cannot have an initializer");
  if (syntax.size == 0 && !syntax.isExtern)
    return fail(syntax.line, "variable '" + syntax.name + "' has no size");
  Variable variable;
  variable.name = syntax.name.str();
  variable.space = syntax.space;
  variable.size = syntax.size;
  variable.align = syntax.align;
  variable.isExtern = syntax.isExtern;
  variable.isInitialized = syntax.isInitialized;
  if (syntax.space != Space::Shared)
    variable.bytes.resize(syntax.size);
  index = program.variables.size();
  program.variables.push_back(std::move(variable));
  return true;
}

bool FunctionDecoder::addModuleVariables(const ModuleSyntax &module) {
  for (const VariableSyntax &syntax : module.variables) {
    if (syntax.space == Space::Local || syntax.space == Space::Param)
      return fail(syntax.line,
                  "unexpected .local or .param variable in module scope");
    if (syntax.isExtern && syntax.space != Space::Shared)
      return fail(syntax.line, "'" + syntax.name +
                                   "' is defined in another module, which is "
                                   "not supported");
    Symbol symbol;
    symbol.kind = Symbol::Variable;
    symbol.size = syntax.size;
    if (!addVariable(syntax, symbol.variable))
      return false;
    if (!symbols.try_emplace({nullptr, syntax.name.str()}, symbol).second)
      return fail(syntax.line, "'" + syntax.name + "' is declared twice");
  }
  return true;
}

// An initializer may omit trailing zeros.
bool FunctionDecoder::linkInitializers(const ModuleSyntax &module) {
  for (const VariableSyntax &syntax : module.variables) {
    Variable &variable =
        program.variables[symbols[{nullptr, syntax.name.str()}].variable];
    unsigned bytes = getBytes(syntax.type);
    uint64_t offset = 0;
    for (const Initializer &element : syntax.initializers) {
      if (element.symbol.empty()) {
        for (unsigned i = 0; i < bytes; ++i)
          variable.bytes[offset + i] = element.value >> (8 * i);
      } else {
        Symbol symbol = lookUp(nullptr, element.symbol);
        if (symbol.kind != Symbol::Variable)
          return fail(syntax.line, "unknown name '" + element.symbol + "'");
        variable.addresses.push_back({offset, symbol.variable, element.value,
                                      element.mask, bytes, element.isGeneric});
      }
      offset += bytes;
    }
  }
  return true;
}

bool FunctionDecoder::addLaneVariable(const Scope *scope,
                                      const VariableSyntax &syntax) {
  Symbol symbol;
  symbol.kind = Symbol::Fixed;
  laneBytes = alignTo(laneBytes, std::max(syntax.align, 1u));
  symbol.address = laneBytes + (syntax.space == Space::Param ? laneParams : 0);
  symbol.size = syntax.size;
  laneBytes += syntax.size;
  if (!symbols.try_emplace({scope, syntax.name.str()}, symbol).second)
    return fail(syntax.line, "'" + syntax.name + "' is declared twice");
  return true;
}

bool FunctionDecoder::addScopeVariables(Scope &scope) {
  for (const VariableSyntax &syntax : scope.variables) {
    if (syntax.space == Space::Local || syntax.space == Space::Param) {
      if (!addLaneVariable(&scope, syntax))
        return false;
      continue;
    }
    if (syntax.isInitialized)
      return fail(syntax.line,
                  "initializers are supported in module scope only");
    Symbol symbol;
    symbol.kind = Symbol::Variable;
    symbol.size = syntax.size;
    if (!addVariable(syntax, symbol.variable))
      return false;
    symbols[{&scope, syntax.name.str()}] = symbol;
  }
  return true;
}

FunctionDecoder::Symbol FunctionDecoder::lookUp(const Scope *scope,
                                                StringRef name) const {
  while (true) {
    auto it = symbols.find({scope, name.str()});
    if (it != symbols.end())
      return it->second;
    if (!scope)
      return {};
    scope = scope->parent;
  }
}

bool FunctionDecoder::lookUpLabel(const Scope *scope, StringRef name,
                                  uint32_t &label) {
  for (; scope; scope = scope->parent) {
    auto it = scope->labels.find(name);
    if (it == scope->labels.end())
      continue;
    label = current->begin + it->second;
    return true;
  }
  return false;
}

// Finds the declaration of a register: %r12 is one of `.reg .b32 %r<20>`.
static const RegisterSyntax *findDeclaration(const Scope &scope,
                                             StringRef name) {
  auto it = scope.registers.find(name);
  if (it != scope.registers.end())
    return it->second.isRange ? nullptr : &it->second;
  StringRef prefix = name.rtrim("0123456789");
  it = scope.registers.find(prefix);
  uint64_t number;
  if (it == scope.registers.end() || !it->second.isRange ||
      name.drop_front(prefix.size()).getAsInteger(10, number) ||
      number >= it->second.count)
    return nullptr;
  return &it->second;
}

std::optional<Operand> FunctionDecoder::lookUpRegister(const Scope *scope,
                                                       StringRef name) {
  if (std::optional<SpecialRegister> special = findSpecialRegister(name)) {
    program.usedSpecials |= uint64_t(1) << special->index;
    Operand operand;
    operand.offset = getSpecialOffset(special->index);
    operand.bytes = special->isWide ? 8 : 4;
    return operand;
  }
  for (; scope; scope = scope->parent) {
    const RegisterSyntax *syntax = findDeclaration(*scope, name);
    if (!syntax)
      continue;
    auto [it, isNew] = registerOf.try_emplace({scope, name.str()});
    Operand &operand = it->second;
    if (isNew) {
      operand.isPredicate = syntax->type == Type::Pred;
      operand.bytes = getBytes(syntax->type);
      operand.reg = registers++;
      operand.offset = registerBytes;
      registerBytes += operand.isPredicate ? 64 : warpSize * operand.bytes;
    }
    return operand;
  }
  return std::nullopt;
}

Operand FunctionDecoder::getSink(unsigned bytes) {
  auto [it, isNew] =
      registerOf.try_emplace({nullptr, ("_" + Twine(bytes)).str()});
  Operand &operand = it->second;
  if (isNew) {
    operand.bytes = bytes;
    operand.offset = registerBytes;
    registerBytes += warpSize * bytes;
  }
  return operand;
}

Operand FunctionDecoder::addConstant(uint64_t value, unsigned bytes) {
  auto [it, isNew] = constantOf.try_emplace({value, bytes});
  Operand &operand = it->second;
  if (!isNew)
    return operand;
  operand.bank = 1;
  operand.bytes = bytes;
  operand.offset = program.constants.size();
  for (unsigned lane = 0; lane < warpSize; ++lane)
    for (unsigned i = 0; i < bytes; ++i)
      program.constants.push_back(i < 8 ? value >> (8 * i) : 0);
  return operand;
}

Operand FunctionDecoder::addAddress(const Symbol &symbol, int64_t addend,
                                    unsigned bytes) {
  if (symbol.kind == Symbol::Fixed)
    return addConstant(symbol.address + addend, bytes);
  const Variable &variable = program.variables[symbol.variable];
  if (variable.space == Space::Shared) {
    std::vector<uint32_t> &used =
        current->isEntry ? current->sharedVariables : program.moduleShared;
    if (!is_contained(used, symbol.variable))
      used.push_back(symbol.variable);
  }
  Operand operand;
  operand.bank = 1;
  operand.bytes = bytes;
  operand.offset = program.constants.size();
  program.constants.resize(operand.offset + warpSize * bytes);
  program.relocations.push_back(
      {operand.offset, symbol.variable, addend, uint8_t(bytes)});
  return operand;
}

uint32_t FunctionDecoder::internName(const InstructionSyntax &syntax) {
  std::string name = syntax.opcode.str();
  for (StringRef modifier : syntax.modifiers)
    name += modifier;
  auto [it, isNew] = nameOf.try_emplace(name, program.names.size());
  if (isNew)
    program.names.push_back(name);
  return it->second;
}

bool FunctionDecoder::declare(const FunctionSyntax &syntax) {
  auto [it, isNew] =
      program.functionOf.try_emplace(syntax.name, program.functions.size());
  if (isNew)
    program.functions.emplace_back();
  Function &function = program.functions[it->second];
  if (function.isDefined && syntax.isDefined)
    return fail(syntax.line, "'" + syntax.name + "' is defined twice");
  if (!isNew && !syntax.isDefined)
    return true;
  function.name = syntax.name.str();
  function.isEntry = syntax.isEntry;
  function.isDefined = syntax.isDefined;
  function.maxThreads = syntax.maxThreads;
  function.requiredThreads = syntax.requiredThreads;
  function.requiredCluster = syntax.requiredCluster;
  if (!syntax.isDefined)
    return true;
  const Scope *body = syntax.scopes.front().get();
  auto addParam = [&](const VariableSyntax &param, std::vector<Param> &params) {
    uint32_t offset;
    if (syntax.isEntry) {
      offset = alignTo(function.paramBytes, std::max(param.align, 1u));
      function.paramBytes = offset + param.size;
      Symbol symbol;
      symbol.kind = Symbol::Fixed;
      symbol.address = offset;
      symbol.size = param.size;
      symbols[{body, param.name.str()}] = symbol;
    } else {
      if (!addLaneVariable(body, param))
        return false;
      offset = symbols[{body, param.name.str()}].address - laneParams;
    }
    params.push_back(
        {param.name.str(), offset, uint32_t(param.size), param.align});
    return true;
  };
  for (const VariableSyntax &result : syntax.results)
    if (!addParam(result, function.results))
      return false;
  for (const VariableSyntax &param : syntax.params)
    if (!addParam(param, function.params))
      return false;
  return true;
}

// Control that reaches the end of a body returns.
void FunctionDecoder::addReturn(unsigned line) {
  Instruction instruction;
  instruction.flow = Flow::Return;
  instruction.line = line;
  InstructionSyntax syntax;
  syntax.opcode = "ret";
  instruction.name = internName(syntax);
  program.code.push_back(instruction);
}

bool FunctionDecoder::decode(const FunctionSyntax &syntax) {
  Function &function = program.functions[program.functionOf[syntax.name]];
  current = &function;
  // Kernels share their registers, since each warp runs one kernel. Registers
  // of other functions are separate, since a kernel may call any of them.
  uint32_t firstRegister = registers, firstByte = registerBytes,
           firstLaneByte = laneBytes;
  for (const std::unique_ptr<Scope> &scope : syntax.scopes)
    if (!addScopeVariables(*scope))
      return false;
  function.begin = program.code.size();
  const OpcodeTable &opcodes = getOpcodes();
  for (const InstructionSyntax &instruction : syntax.body) {
    bool isFloatTyped = false;
    for (StringRef modifier : instruction.modifiers)
      if (std::optional<Type> type = parseType(modifier))
        isFloatTyped = isFloat(*type);
    auto it = opcodes.end();
    if (isFloatTyped)
      it = opcodes.find((instruction.opcode + ".f").str());
    if (it == opcodes.end())
      it = opcodes.find(instruction.opcode);
    if (it == opcodes.end())
      return fail(instruction.line,
                  "unknown instruction '" + instruction.opcode + "'");
    Decoder decoder(*this, instruction);
    if (!it->second(decoder))
      return fail(instruction.line,
                  "cannot decode '" + instruction.opcode + "'");
    program.code.push_back(decoder.out);
  }
  addReturn(syntax.body.empty() ? syntax.line : syntax.body.back().line);
  function.end = program.code.size();
  function.registers = registers;
  function.registerBytes = registerBytes;
  function.laneBytes = laneBytes;
  if (function.isEntry) {
    registers = firstRegister;
    registerBytes = firstByte;
    laneBytes = firstLaneByte;
    registerOf.clear();
  }
  return true;
}

} // namespace posenc::ptx

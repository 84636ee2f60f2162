//===- Decoder.cpp - modifiers and operands of an instruction -------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace posenc::ptx {

Decoder::Decoder(FunctionDecoder &function, const InstructionSyntax &syntax)
    : function(function), syntax(syntax), modifiers(syntax.modifiers) {}

const ParseOptions &Decoder::getOptions() const { return function.options; }

bool Decoder::fail(const Twine &message) {
  return function.fail(syntax.line, message);
}

bool Decoder::needTarget(unsigned number, bool isExact) {
  StringRef target = function.program.target, digits = target;
  digits.consume_front("sm_");
  unsigned found = 0;
  bool isGood = !digits.consumeInteger(10, found) &&
                (isExact ? found == number && digits == "a" : found >= number);
  if (isGood)
    return true;
  return fail("'" + syntax.opcode + "' requires sm_" + Twine(number) +
              (isExact ? "a" : " or later") + "; the target is " + target);
}

bool Decoder::has(StringRef modifier) {
  auto *it = llvm::find(modifiers, modifier);
  if (it == modifiers.end())
    return false;
  modifiers.erase(it);
  return true;
}

StringRef Decoder::takeOneOf(ArrayRef<StringRef> candidates) {
  for (auto *it = modifiers.begin(); it != modifiers.end(); ++it) {
    if (!is_contained(candidates, *it))
      continue;
    StringRef result = *it;
    modifiers.erase(it);
    return result;
  }
  return "";
}

StringRef Decoder::takePrefixed(StringRef prefix) {
  for (auto *it = modifiers.begin(); it != modifiers.end(); ++it) {
    if (!it->starts_with(prefix))
      continue;
    StringRef result = *it;
    modifiers.erase(it);
    return result;
  }
  return "";
}

std::optional<Type> Decoder::takeOptionalType() {
  for (auto *it = modifiers.begin(); it != modifiers.end(); ++it) {
    if (std::optional<Type> type = parseType(*it)) {
      modifiers.erase(it);
      return type;
    }
  }
  return std::nullopt;
}

bool Decoder::takeType(Type &type) {
  std::optional<Type> found = takeOptionalType();
  if (!found)
    return fail("expected a supported type on '" + syntax.opcode + "'");
  type = *found;
  return true;
}

std::optional<Space> Decoder::takeSpace() {
  for (auto *it = modifiers.begin(); it != modifiers.end(); ++it) {
    if (std::optional<Space> space = parseSpace(*it)) {
      modifiers.erase(it);
      return space;
    }
  }
  return std::nullopt;
}

bool Decoder::expectOperands(unsigned count) {
  if (syntax.operands.size() == count)
    return true;
  return fail("'" + syntax.opcode + "' has " + Twine(syntax.operands.size()) +
              " operands; expected " + Twine(count));
}

bool Decoder::addDest(const OperandSyntax &operand, unsigned bytes,
                      bool isWide) {
  if (operand.kind != OperandSyntax::Name)
    return fail("expected a register as the result of '" + syntax.opcode + "'");
  // The discarded result.
  if (operand.name == "_") {
    operands.push_back(function.getSink(bytes));
    return true;
  }
  std::optional<Operand> found =
      function.lookUpRegister(syntax.scope, operand.name);
  if (!found)
    return fail("unknown register '" + operand.name + "'");
  if (found->isPredicate)
    return fail("'" + operand.name + "' is a predicate");
  if (isWide ? found->bytes < bytes : found->bytes != bytes)
    return fail("'" + operand.name + "' has " + Twine(unsigned(found->bytes)) +
                " bytes, but the result of '" + syntax.opcode + "' has " +
                Twine(bytes));
  operands.push_back(*found);
  writes.push_back(found->reg);
  return true;
}

bool Decoder::addSource(const OperandSyntax &operand, unsigned bytes,
                        bool isWide) {
  switch (operand.kind) {
  case OperandSyntax::Integer: {
    int64_t value = operand.value;
    if (bytes < 8 && !isIntN(8 * bytes, value) && !isUIntN(8 * bytes, value))
      return fail("the constant " + Twine(value) + " does not fit in " +
                  Twine(bytes) + " bytes");
    return constant(operand.value, bytes);
  }
  case OperandSyntax::Float:
    if (operand.bytes != bytes)
      return fail("the floating-point constant has " + Twine(operand.bytes) +
                  " bytes, but '" + syntax.opcode + "' takes " + Twine(bytes));
    return constant(operand.value, bytes);
  case OperandSyntax::Name:
    break;
  default:
    return fail("expected a register or a constant as an operand of '" +
                syntax.opcode + "'");
  }
  if (operand.isNegated)
    return fail("'!' is allowed before predicates only");
  std::optional<Operand> found =
      function.lookUpRegister(syntax.scope, operand.name);
  if (!found) {
    FunctionDecoder::Symbol symbol =
        function.lookUp(syntax.scope, operand.name);
    if (symbol.kind == FunctionDecoder::Symbol::None)
      return fail("unknown name '" + operand.name + "'");
    if (bytes < 4)
      return fail("an address does not fit in " + Twine(bytes) + " bytes");
    operands.push_back(function.addAddress(symbol, operand.offset, bytes));
    return true;
  }
  if (found->isPredicate)
    return fail("'" + operand.name + "' is a predicate");
  if (operand.offset)
    return fail("a register operand cannot have an offset");
  if (isWide ? found->bytes < bytes : found->bytes != bytes)
    return fail("'" + operand.name + "' has " + Twine(unsigned(found->bytes)) +
                " bytes, but '" + syntax.opcode + "' takes " + Twine(bytes));
  operands.push_back(*found);
  if (found->reg != noRegister)
    reads.push_back(found->reg);
  return true;
}

bool Decoder::dest(const OperandSyntax &operand, unsigned bytes) {
  return addDest(operand, bytes, /*isWide=*/false);
}
bool Decoder::source(const OperandSyntax &operand, unsigned bytes) {
  return addSource(operand, bytes, /*isWide=*/false);
}
bool Decoder::wideDest(const OperandSyntax &operand, unsigned bytes) {
  return addDest(operand, bytes, /*isWide=*/true);
}
bool Decoder::wideSource(const OperandSyntax &operand, unsigned bytes) {
  return addSource(operand, bytes, /*isWide=*/true);
}

bool Decoder::predDest(const OperandSyntax &operand) {
  if (operand.kind == OperandSyntax::Name && operand.name == "_") {
    operands.push_back(function.getSink(4));
    return true;
  }
  std::optional<Operand> found =
      operand.kind == OperandSyntax::Name
          ? function.lookUpRegister(syntax.scope, operand.name)
          : std::nullopt;
  if (!found || !found->isPredicate)
    return fail("expected a predicate as the result of '" + syntax.opcode +
                "'");
  operands.push_back(*found);
  writes.push_back(found->reg);
  return true;
}

bool Decoder::predSource(const OperandSyntax &operand) {
  if (operand.kind == OperandSyntax::Integer) {
    operands.push_back(function.addConstant(operand.value ? ~0u : 0u, 4));
    return true;
  }
  std::optional<Operand> found =
      operand.kind == OperandSyntax::Name
          ? function.lookUpRegister(syntax.scope, operand.name)
          : std::nullopt;
  if (!found || !found->isPredicate)
    return fail("expected a predicate as an operand of '" + syntax.opcode +
                "'");
  found->isNegated = operand.isNegated;
  operands.push_back(*found);
  reads.push_back(found->reg);
  return true;
}

bool Decoder::constant(uint64_t value, unsigned bytes) {
  operands.push_back(function.addConstant(value, bytes));
  return true;
}

bool Decoder::address(unsigned index, unsigned coordinates) {
  const OperandSyntax &operand = syntax.operands[index];
  if (operand.kind != OperandSyntax::Address)
    return fail("expected an address in brackets as an operand of '" +
                syntax.opcode + "'");
  if (operand.elements.size() != coordinates)
    return fail("expected an address with " + Twine(coordinates) +
                " coordinates, found " + Twine(operand.elements.size()));
  out.offset = operand.offset;
  if (operand.name.empty())
    return constant(0, 8);
  OperandSyntax base;
  base.name = operand.name;
  std::optional<Operand> found =
      function.lookUpRegister(syntax.scope, operand.name);
  return source(base, found && found->bytes == 4 ? 4 : 8);
}

bool Decoder::groupCount() {
  if (syntax.operands.size() != 1 ||
      syntax.operands[0].kind != OperandSyntax::Integer)
    return fail("expected a constant number of groups to wait for");
  out.offset = syntax.operands[0].value;
  return true;
}

bool Decoder::uniformOperands(unsigned bytes) {
  if (syntax.operands.empty())
    return fail("'" + syntax.opcode + "' has no operands");
  if (!dest(0, bytes))
    return false;
  for (unsigned i = 1; i < syntax.operands.size(); ++i)
    if (!source(i, bytes))
      return false;
  return true;
}

// Returns the elements of a vector operand; none after an error.
ArrayRef<OperandSyntax> Decoder::getElements(unsigned index, unsigned count) {
  const OperandSyntax &operand = syntax.operands[index];
  if (operand.kind == OperandSyntax::Vector && operand.elements.size() == count)
    return operand.elements;
  fail("expected " + Twine(count) + " registers in braces as operand " +
       Twine(index + 1) + " of '" + syntax.opcode + "'");
  return {};
}

bool Decoder::vectorDest(unsigned index, unsigned count) {
  ArrayRef<OperandSyntax> elements = getElements(index, count);
  return !elements.empty() &&
         all_of(elements, [&](const OperandSyntax &e) { return dest(e, 4); });
}

bool Decoder::vectorSource(unsigned index, unsigned count) {
  ArrayRef<OperandSyntax> elements = getElements(index, count);
  return !elements.empty() &&
         all_of(elements, [&](const OperandSyntax &e) { return source(e, 4); });
}

bool Decoder::finishWholeWarp(Handler handler) {
  out.flow = Flow::Converged;
  out.lanesOperand = operands.size();
  out.isWholeWarp = true;
  return constant(~0u, 4) && finish(handler);
}

void *Decoder::allocate(size_t size, size_t align) {
  return function.program.allocator.Allocate(size, align);
}

bool Decoder::label(unsigned index, uint32_t &target) {
  const OperandSyntax &operand = syntax.operands[index];
  if (operand.kind != OperandSyntax::Name ||
      !function.lookUpLabel(syntax.scope, operand.name, target))
    return fail("unknown label '" + operand.name + "'");
  return true;
}

bool Decoder::labels(unsigned index) {
  StringRef name = syntax.operands[index].name;
  for (const Scope *scope = syntax.scope; scope; scope = scope->parent) {
    auto it = scope->branchTargets.find(name);
    if (it == scope->branchTargets.end())
      continue;
    SmallVector<uint32_t> targets;
    for (StringRef target : it->second)
      if (!function.lookUpLabel(syntax.scope, target, targets.emplace_back()))
        return fail("unknown label '" + target + "'");
    out.targets = function.program.keep(ArrayRef<uint32_t>(targets));
    return true;
  }
  return fail("unknown list of branch targets '" + name + "'");
}

bool Decoder::callee(const OperandSyntax &name) {
  auto it = function.program.functionOf.find(name.name);
  if (name.kind != OperandSyntax::Name ||
      it == function.program.functionOf.end())
    return fail("unknown function '" + name.name + "'");
  const Function &target = function.program.functions[it->second];
  if (target.isEntry || !target.isDefined)
    return fail("'" + name.name + "' has no body to call");
  out.target = it->second;
  return true;
}

bool Decoder::callCopies(const OperandSyntax *list, bool isResult) {
  const Function &target = function.program.functions[out.target];
  ArrayRef<Param> params = isResult ? target.results : target.params;
  ArrayRef<OperandSyntax> names;
  if (list)
    names = list->elements;
  if (names.size() != params.size())
    return fail("'" + target.name + "' has " + Twine(params.size()) +
                (isResult ? " results" : " parameters") +
                ", but the call has " + Twine(names.size()));
  SmallVector<Instruction::Copy> copies;
  for (auto [name, param] : zip(names, params)) {
    FunctionDecoder::Symbol symbol = function.lookUp(syntax.scope, name.name);
    if (symbol.kind != FunctionDecoder::Symbol::Fixed ||
        symbol.address < laneParams || symbol.size != param.size)
      return fail("expected a .param variable of " + Twine(param.size) +
                  " bytes, found '" + name.name + "'");
    uint32_t own = symbol.address - laneParams;
    copies.push_back(isResult
                         ? Instruction::Copy{param.offset, own, param.size}
                         : Instruction::Copy{own, param.offset, param.size});
  }
  (isResult ? out.results : out.arguments) =
      function.program.keep(ArrayRef<Instruction::Copy>(copies));
  return true;
}

bool Decoder::finish(Handler handler) {
  if (!modifiers.empty())
    return fail("unsupported modifier '" + modifiers.front() + "' on '" +
                syntax.opcode + "'");
  if (!handler && out.flow == Flow::Next)
    return fail("unsupported type on '" + syntax.opcode + "'");
  out.run = handler;
  Program &program = function.program;
  if (!syntax.guard.empty()) {
    std::optional<Operand> guard =
        function.lookUpRegister(syntax.scope, syntax.guard);
    if (!guard || !guard->isPredicate)
      return fail("expected a predicate as the guard, found '" + syntax.guard +
                  "'");
    out.guard = *guard;
    out.guard.isNegated = syntax.isGuardNegated;
    out.hasGuard = true;
  }
  out.operands = program.keep(ArrayRef<Operand>(operands));
  out.reads = program.keep(ArrayRef<uint32_t>(reads));
  out.writes = program.keep(ArrayRef<uint32_t>(writes));
  out.line = syntax.line;
  out.name = function.internName(syntax);
  return true;
}

const OpcodeTable &getOpcodes() {
  static const OpcodeTable *table = [] {
    auto *result = new OpcodeTable;
    addIntegerInstructions(*result);
    addMultiplyInstructions(*result);
    addBitInstructions(*result);
    addFloatInstructions(*result);
    addFloatFunctions(*result);
    addCompareInstructions(*result);
    addConvertInstructions(*result);
    addMoveInstructions(*result);
    addMemoryInstructions(*result);
    addAtomicInstructions(*result);
    addControlInstructions(*result);
    addBarrierInstructions(*result);
    addWarpInstructions(*result);
    addMatrixInstructions(*result);
    addMmaInstructions(*result);
    addCopyInstructions(*result);
    addFenceInstructions(*result);
    addMBarrierInstructions(*result);
    addWgmmaInstructions(*result);
    return result;
  }();
  return *table;
}

} // namespace posenc::ptx

//===- SpirvModule.cpp - What a SPIR-V module asks for ----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SpirvModule.h"

#include <algorithm>
#include <set>
#include <unordered_map>

using namespace posenc::runtime;

namespace {

enum Opcode : uint32_t {
  OpEntryPoint = 15,
  OpExecutionMode = 16,
  OpCapability = 17,
  OpTypeBool = 20,
  OpTypeInt = 21,
  OpTypeFloat = 22,
  OpTypeVector = 23,
  OpTypeArray = 28,
  OpTypeRuntimeArray = 29,
  OpTypeStruct = 30,
  OpTypePointer = 32,
  OpConstant = 43,
  OpFunction = 54,
  OpFunctionEnd = 56,
  OpFunctionCall = 57,
  OpVariable = 59,
  OpLoad = 61,
  OpStore = 62,
  OpCopyMemory = 63,
  OpAccessChain = 65,
  OpInBoundsAccessChain = 66,
  OpArrayLength = 68,
  OpDecorate = 71,
  OpMemberDecorate = 72,
  OpCopyObject = 83,
  OpAtomicLoad = 227,
  OpAtomicStore = 228,
  OpAtomicExchange = 229,
  OpAtomicXor = 242,
};
enum StorageClass : uint32_t {
  Uniform = 2,
  Workgroup = 4,
  PushConstant = 9,
  StorageBuffer = 12
};
constexpr uint32_t magic = 0x07230203, swappedMagic = 0x03022307;
constexpr uint32_t glCompute = 5, localSize = 17;
constexpr uint32_t binding = 33, descriptorSet = 34, offset = 35;
/// The limit of the specification; a driver's tables are as large.
constexpr uint32_t maxBound = 0x3fffff;

struct Variable {
  uint32_t storage = 0;
  uint64_t bytes = 0;
};

struct Function {
  std::vector<uint32_t> used; ///< ids that may be variables
  std::vector<uint32_t> calls;
};

/// One pass over the instructions. Every id is defined before it is used, but
/// for functions, so that sizes of types are known when they are asked for.
class Reader {
public:
  Reader(SpirvModule &module, std::string &error)
      : module(module), error(error) {}

  bool read(const uint32_t *words, size_t numWords);

private:
  bool fail(std::string text) {
    error = std::move(text);
    return false;
  }
  bool readInstruction(uint32_t opcode, const uint32_t *operands,
                       uint32_t count);
  bool readEntryPoint(const uint32_t *operands, uint32_t count);
  void readType(uint32_t opcode, const uint32_t *operands, uint32_t count);
  void readInFunction(uint32_t opcode, const uint32_t *operands,
                      uint32_t count);
  bool finish(SpirvKernel &kernel, uint32_t function);

  SpirvModule &module;
  std::string &error;
  std::vector<uint32_t> entryFunctions;
  std::unordered_map<uint32_t, uint64_t> sizes; ///< of types, in bytes
  std::unordered_map<uint32_t, uint32_t> pointees, constants, bindings, sets;
  std::unordered_map<uint32_t, std::unordered_map<uint32_t, uint32_t>> offsets;
  std::unordered_map<uint32_t, Variable> variables;
  std::unordered_map<uint32_t, Function> functions;
  Function *current = nullptr;
};

} // namespace

bool Reader::read(const uint32_t *words, size_t numWords) {
  if (numWords < 5)
    return fail("not SPIR-V: shorter than its header");
  if (words[0] == swappedMagic)
    return fail("SPIR-V of the other byte order");
  if (words[0] != magic)
    return fail("not SPIR-V: wrong magic number");
  module.version = words[1];
  if (!words[3] || words[3] > maxBound || words[4])
    return fail("damaged SPIR-V: bad header");
  for (size_t at = 5; at < numWords;) {
    uint32_t opcode = words[at] & 0xffff, length = words[at] >> 16;
    if (!length || length > numWords - at)
      return fail("damaged SPIR-V: the instruction at word " +
                  std::to_string(at) + " has a length of " +
                  std::to_string(length));
    if (!readInstruction(opcode, words + at + 1, length - 1))
      return false;
    at += length;
  }
  if (current)
    return fail("damaged SPIR-V: a function without an end");
  if (module.kernels.empty())
    return fail("SPIR-V without a compute kernel");
  for (size_t i = 0; i < module.kernels.size(); ++i)
    if (!finish(module.kernels[i], entryFunctions[i]))
      return false;
  return true;
}

bool Reader::readEntryPoint(const uint32_t *operands, uint32_t count) {
  if (count < 3)
    return fail("damaged SPIR-V: bad entry point");
  if (operands[0] != glCompute)
    return true;
  // The characters of a word from the low byte up, up to a zero.
  SpirvKernel kernel;
  bool ended = false;
  for (uint32_t i = 2; i < count && !ended; ++i)
    for (int shift = 0; shift < 32 && !ended; shift += 8) {
      char c = static_cast<char>(operands[i] >> shift & 0xff);
      ended = !c;
      if (!ended)
        kernel.name += c;
    }
  if (!ended)
    return fail("damaged SPIR-V: a name without an end");
  module.kernels.push_back(std::move(kernel));
  entryFunctions.push_back(operands[1]);
  return true;
}

bool Reader::readInstruction(uint32_t opcode, const uint32_t *operands,
                             uint32_t count) {
  if (opcode == OpEntryPoint)
    return readEntryPoint(operands, count);
  if (opcode == OpFunction) {
    if (count < 2 || current)
      return fail("damaged SPIR-V: bad function");
    current = &functions[operands[1]];
    return true;
  }
  if (opcode == OpFunctionEnd) {
    if (!current)
      return fail("damaged SPIR-V: the end of no function");
    current = nullptr;
    return true;
  }
  if (current) {
    readInFunction(opcode, operands, count);
    return true;
  }
  if (opcode == OpCapability && count == 1)
    module.capabilities.push_back(operands[0]);
  if (opcode == OpExecutionMode && count == 5 && operands[1] == localSize)
    for (size_t i = 0; i < entryFunctions.size(); ++i)
      if (entryFunctions[i] == operands[0])
        std::copy(operands + 2, operands + 5, module.kernels[i].workgroup);
  if (opcode == OpDecorate && count == 3 && operands[1] == binding)
    bindings[operands[0]] = operands[2];
  if (opcode == OpDecorate && count == 3 && operands[1] == descriptorSet)
    sets[operands[0]] = operands[2];
  if (opcode == OpMemberDecorate && count == 4 && operands[2] == offset)
    offsets[operands[0]][operands[1]] = operands[3];
  if (opcode == OpConstant && count >= 3)
    constants[operands[1]] = operands[2];
  if (opcode == OpVariable && count >= 3)
    variables[operands[1]] = {operands[2], sizes[pointees[operands[0]]]};
  readType(opcode, operands, count);
  return true;
}

void Reader::readType(uint32_t opcode, const uint32_t *operands,
                      uint32_t count) {
  if (!count)
    return;
  uint32_t id = operands[0];
  if (opcode == OpTypeBool)
    sizes[id] = 4;
  else if ((opcode == OpTypeInt || opcode == OpTypeFloat) && count >= 2)
    sizes[id] = operands[1] / 8;
  else if (opcode == OpTypeVector && count == 3)
    sizes[id] = sizes[operands[1]] * operands[2];
  else if (opcode == OpTypeArray && count == 3)
    sizes[id] = sizes[operands[1]] * constants[operands[2]];
  else if (opcode == OpTypeRuntimeArray)
    sizes[id] = 0;
  else if (opcode == OpTypePointer && count == 3)
    pointees[id] = operands[2];
  else if (opcode == OpTypeStruct) {
    // Members of a struct without offsets lie one behind the other, as far as
    // anyone can know.
    uint64_t end = 0;
    auto known = offsets.find(id);
    for (uint32_t member = 0; member + 1 < count; ++member) {
      uint64_t begin = end;
      if (known != offsets.end() && known->second.count(member))
        begin = known->second[member];
      end = std::max(end, begin + sizes[operands[member + 1]]);
    }
    sizes[id] = end;
  }
}

/// Notes the operands that are pointers: with logical addressing variables are
/// reached in these ways only.
void Reader::readInFunction(uint32_t opcode, const uint32_t *operands,
                            uint32_t count) {
  auto use = [&](uint32_t index) {
    if (index < count)
      current->used.push_back(operands[index]);
  };
  switch (opcode) {
  case OpStore:
  case OpAtomicStore:
    use(0);
    break;
  case OpCopyMemory:
    use(0);
    use(1);
    break;
  case OpLoad:
  case OpAccessChain:
  case OpInBoundsAccessChain:
  case OpArrayLength:
  case OpCopyObject:
  case OpAtomicLoad:
    use(2);
    break;
  case OpFunctionCall:
    if (count > 2)
      current->calls.push_back(operands[2]);
    for (uint32_t i = 3; i < count; ++i)
      use(i);
    break;
  default:
    if (opcode >= OpAtomicExchange && opcode <= OpAtomicXor)
      use(2);
  }
}

bool Reader::finish(SpirvKernel &kernel, uint32_t function) {
  std::set<uint32_t> reached{function}, used;
  std::vector<uint32_t> todo{function};
  while (!todo.empty()) {
    auto found = functions.find(todo.back());
    todo.pop_back();
    if (found == functions.end())
      return fail("damaged SPIR-V: no function for " + kernel.name);
    used.insert(found->second.used.begin(), found->second.used.end());
    for (uint32_t callee : found->second.calls)
      if (reached.insert(callee).second)
        todo.push_back(callee);
  }
  for (uint32_t id : used) {
    auto variable = variables.find(id);
    if (variable == variables.end())
      continue;
    auto [storage, bytes] = variable->second;
    if (storage == PushConstant)
      kernel.pushBytes = std::max(kernel.pushBytes, bytes);
    if (storage == Workgroup)
      kernel.workgroupBytes += bytes;
    if (storage != StorageBuffer && storage != Uniform)
      continue;
    auto at = bindings.find(id), set = sets.find(id);
    if (at == bindings.end() || set == sets.end() || set->second)
      return fail(kernel.name +
                  " uses a buffer that is not in descriptor set 0");
    kernel.bindings.push_back(at->second);
  }
  return true;
}

bool SpirvModule::read(const uint32_t *words, size_t numWords,
                       std::string &error) {
  *this = {};
  return Reader(*this, error).read(words, numWords);
}

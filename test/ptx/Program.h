//===- Program.h - PTX made ready to run ------------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_PTX_PROGRAM_H
#define POSENC_TEST_PTX_PROGRAM_H

#include "Types.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Allocator.h"

#include <array>
#include <string>
#include <vector>

namespace posenc::ptx {

class Warp;

/// A lane a bit.
using LaneMask = uint32_t;
constexpr unsigned warpSize = 32;

constexpr uint32_t noRegister = ~0u;

/// Where an operand's values of a warp lie: 32 values of `bytes` each, at an
/// offset into the warp's registers or into the constants. A predicate is one
/// mask of lanes.
struct Operand {
  uint32_t offset = 0;
  uint8_t bank = 0; // 0: registers, 1: constants
  uint8_t bytes = 0;
  bool isPredicate = false;
  bool isNegated = false; // of a predicate
  /// Which register, for the check that it has been written.
  uint32_t reg = noRegister;
};

/// How an instruction goes on.
enum class Flow : uint8_t {
  Next,
  Branch,
  BranchTable,
  Call,
  Return,
  Exit,
  Trap,
  Barrier,   // of the block
  Converged, // waits for the lanes of its mask, then runs
};

struct Instruction;
using Handler = void (*)(Warp &, const Instruction &, LaneMask);

/// What the handler of a load, store or atomic has to know.
struct AccessInfo {
  Space space = Space::Generic;
  uint8_t bytes = 0; // of an element
  uint8_t count = 1;
  bool isSigned = false;
  /// Atomic, volatile or ordered: no race with another of these.
  bool isStrong = false;
};

/// What a barrier does.
struct BarrierInfo {
  enum Kind : uint8_t { Sync, Arrive, And, Or, Popc };
  Kind kind = Sync;
  bool isAligned = true;
  bool hasCount = false;
};

struct Instruction {
  Handler run = nullptr;
  llvm::ArrayRef<Operand> operands;
  llvm::ArrayRef<uint32_t> reads, writes; // registers
  Operand guard;
  bool hasGuard = false;
  /// An undefined source makes the result undefined and is no fault.
  bool isCopy = false;
  Flow flow = Flow::Next;
  AccessInfo access;
  BarrierInfo barrier;
  uint8_t lanesOperand = 0; // of Flow::Converged: the mask
  uint32_t target = 0;      // of a branch, or the function of a call
  llvm::ArrayRef<uint32_t> targets;
  /// Of a call: from, to and size of what is copied before and after.
  struct Copy {
    uint32_t from, to, size;
  };
  llvm::ArrayRef<Copy> arguments, results;
  int64_t offset = 0;          // added to an address; or any number
  bool hasResult = false;      // of an atomic: it has a result
  const void *extra = nullptr; // what only the handler knows
  uint32_t line = 0;
  uint32_t name = 0;
};

/// A parameter of a kernel.
struct Param {
  std::string name;
  uint32_t offset, size, align;
};

struct Function {
  std::string name;
  bool isEntry = false;
  bool isDefined = false;
  uint32_t begin = 0, end = 0;
  std::vector<Param> params, results;
  /// Up to here, those of the functions it may call included.
  uint32_t registers = 0, registerBytes = 0, laneBytes = 0;
  uint32_t paramBytes = 0;
  /// Its own variables in shared memory.
  std::vector<uint32_t> sharedVariables;
  std::array<uint32_t, 3> maxThreads{}, requiredThreads{}, requiredCluster{};
};

/// A variable in global, constant or shared memory.
struct Variable {
  struct Address {
    uint64_t offset; // in the bytes
    uint32_t variable;
    uint64_t addend, mask;
    unsigned bytes;
    bool isGeneric;
  };
  std::string name;
  Space space;
  uint64_t size;
  unsigned align;
  bool isExtern;
  bool isInitialized;
  std::vector<uint8_t> bytes;
  std::vector<Address> addresses;
};

/// A variable's address among the constants, known when a kernel is launched.
struct Relocation {
  uint32_t offset;
  uint32_t variable;
  int64_t addend;
  uint8_t bytes;
};

/// The special registers, in the order of their names in SpecialRegisters.cpp.
struct SpecialRegister {
  uint32_t index;
  bool isWide = false;
};
constexpr unsigned specialRegisterLimit = 64;
/// They are the first of every warp's registers.
constexpr uint32_t specialBytes = specialRegisterLimit * warpSize * 8;
constexpr uint32_t getSpecialOffset(uint32_t index) {
  return index * warpSize * 8;
}
std::optional<SpecialRegister> findSpecialRegister(llvm::StringRef name);

struct Program {
  uint64_t id = 0;
  std::string version, target;
  std::vector<Instruction> code;
  std::vector<Function> functions;
  llvm::StringMap<uint32_t> functionOf;
  std::vector<Variable> variables;
  std::vector<uint32_t> moduleShared; // variables for every kernel
  std::vector<uint8_t> constants;
  std::vector<Relocation> relocations;
  std::vector<std::string> names; // of instructions, with their modifiers
  uint64_t usedSpecials = 0;
  llvm::BumpPtrAllocator allocator;

  template <typename T> llvm::ArrayRef<T> keep(llvm::ArrayRef<T> values) {
    return values.copy(allocator);
  }
};

} // namespace posenc::ptx

#endif // POSENC_TEST_PTX_PROGRAM_H

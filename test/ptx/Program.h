//===- Program.h - PTX decoded for execution --------------------*- C++ -*-===//
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

/// A set of lanes, one bit per lane.
using LaneMask = uint32_t;
constexpr unsigned warpSize = 32;

constexpr uint32_t noRegister = ~0u;

/// The location of the values of an operand: `bytes` bytes for each of 32
/// lanes, at an offset into the registers of the warp or into the constants. A
/// predicate is one LaneMask.
struct Operand {
  uint32_t offset = 0;
  uint8_t bank = 0; // 0: registers, 1: constants
  uint8_t bytes = 0;
  bool isPredicate = false;
  bool isNegated = false; // a predicate with !
  /// The number of the register, for the check that it has been written.
  uint32_t reg = noRegister;
};

/// The control flow of an instruction.
enum class Flow : uint8_t {
  Next,
  Branch,
  BranchTable,
  Call,
  Return,
  Exit,
  Trap,
  Barrier,   // a barrier of the block
  Converged, // waits for the lanes of its member mask, then runs
};

struct Instruction;
using Handler = void (*)(Warp &, const Instruction &, LaneMask);

/// The modifiers of a load, store or atomic.
struct AccessInfo {
  Space space = Space::Generic;
  uint8_t bytes = 0; // size of an element
  uint8_t count = 1; // number of elements
  bool isSigned = false;
  /// Atomic, volatile or ordered. Two strong accesses do not race.
  bool isStrong = false;
};

/// The kind of a barrier instruction.
struct BarrierInfo {
  enum Kind : uint8_t { Sync, Arrive, And, Or, Popc };
  Kind kind = Sync;
  bool isAligned = true;
  bool hasCount = false;
};

struct Instruction {
  Handler run = nullptr;
  llvm::ArrayRef<Operand> operands;
  llvm::ArrayRef<uint32_t> reads, writes; // numbers of registers
  Operand guard;
  bool hasGuard = false;
  /// A move: an undefined source makes the result undefined but is no fault.
  bool isCopy = false;
  Flow flow = Flow::Next;
  AccessInfo access;
  BarrierInfo barrier;
  uint8_t lanesOperand = 0; // index of the member mask of Flow::Converged
  bool isWholeWarp = false; // Flow::Converged of 32 lanes, none of which ended
  uint32_t target = 0;      // instruction of a branch, or function of a call
  llvm::ArrayRef<uint32_t> targets; // instructions of a branch table
  /// Copies of .param bytes in lane memory, before and after a call.
  struct Copy {
    uint32_t from, to, size;
  };
  llvm::ArrayRef<Copy> arguments, results;
  int64_t offset = 0;          // added to an address; or data of the handler
  uint8_t matrices = 0;        // of ldmatrix and stmatrix
  bool isAsync = false;        // checks the registers in flight itself
  bool isUniform = false;      // .uni: all active lanes take the same way
  bool isRelaxed = false;      // an mbarrier operation that orders nothing
  bool hasResult = false;      // whether an atomic returns the old value
  const void *extra = nullptr; // data of the handler
  uint32_t line = 0;           // of the PTX
  uint32_t name = 0;           // index into Program::names
};

/// A parameter or result of a function; `offset` into the kernel parameters, or
/// into the lane memory for other functions.
struct Param {
  std::string name;
  uint32_t offset, size, align;
};

struct Function {
  std::string name;
  bool isEntry = false;
  bool isDefined = false;
  uint32_t begin = 0, end = 0; // of its instructions
  std::vector<Param> params, results;
  /// Sizes including all functions that it may call: registers, and the bytes
  /// of registers (per warp) and of local memory (per lane).
  uint32_t registers = 0, registerBytes = 0, laneBytes = 0;
  uint32_t paramBytes = 0;
  /// Shared variables that it uses, as indices into Program::variables.
  std::vector<uint32_t> sharedVariables;
  std::array<uint32_t, 3> maxThreads{}, requiredThreads{}, requiredCluster{};
};

/// A variable in global, constant or shared memory.
struct Variable {
  /// The address of another variable in the initial bytes.
  struct Address {
    uint64_t offset; // into `bytes`
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

/// The address of a variable in Program::constants, which is filled in when a
/// kernel is launched.
struct Relocation {
  uint32_t offset;
  uint32_t variable;
  int64_t addend;
  uint8_t bytes;
};

/// A special register, by its index in the table of SpecialRegisters.cpp.
struct SpecialRegister {
  uint32_t index;
  bool isWide = false;
};
constexpr unsigned specialRegisterLimit = 64;
/// Special registers precede the other registers of a warp.
constexpr uint32_t specialBytes = specialRegisterLimit * warpSize * 8;
constexpr uint32_t getSpecialOffset(uint32_t index) {
  return index * warpSize * 8;
}
std::optional<SpecialRegister> findSpecialRegister(llvm::StringRef name);

/// A module that is ready to run; shared by all its launches.
struct Program {
  uint64_t id = 0;
  std::string version, target;
  std::vector<Instruction> code;
  std::vector<Function> functions;
  llvm::StringMap<uint32_t> functionOf;
  std::vector<Variable> variables;
  std::vector<uint32_t> moduleShared; // shared variables of called functions
  std::vector<uint8_t> constants;     // values of constant operands
  std::vector<Relocation> relocations;
  std::vector<std::string> names; // mnemonics with their modifiers
  uint64_t usedSpecials = 0;      // mask of the special registers that are read
  llvm::BumpPtrAllocator allocator;

  /// Copies `values` into memory of the program.
  template <typename T> llvm::ArrayRef<T> keep(llvm::ArrayRef<T> values) {
    return values.copy(allocator);
  }
};

} // namespace posenc::ptx

#endif // POSENC_TEST_PTX_PROGRAM_H

//===- Decoder.h - decodes parsed instructions for execution ----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_PTX_DECODER_H
#define POSENC_TEST_PTX_DECODER_H

#include "Program.h"
#include "Syntax.h"

#include <map>
#include <tuple>

namespace posenc::ptx {

/// Options of Module::parse().
struct ParseOptions {
  /// Allows additions and multiplications without a rounding modifier. ptxas
  /// may fuse them; the interpreter does not.
  bool allowContraction = false;
  /// Allows functions that hardware approximates. The interpreter uses those of
  /// the host's C library.
  bool allowApproximate = false;
};

class FunctionDecoder;

/// Decodes one instruction into `out`. Functions that return bool return false
/// after an error, the first of which is kept for FunctionDecoder::takeError().
/// Functions whose name contains `take`, and has(), remove a modifier from the
/// instruction; finish() fails if any is left.
class Decoder {
public:
  Decoder(FunctionDecoder &function, const InstructionSyntax &syntax);

  const ParseOptions &getOptions() const;
  const InstructionSyntax &getSyntax() const { return syntax; }
  /// Fails unless the module's target has at least this number, as in sm_80, or
  /// is exactly `sm_<number>a` with `isExact`.
  bool needTarget(unsigned number, bool isExact = false);
  Instruction out;

  // Modifiers.
  /// Removes the modifier and returns whether it was present.
  bool has(llvm::StringRef modifier);
  /// Removes and returns the first modifier that is in `modifiers`; "" if none
  /// is.
  llvm::StringRef takeOneOf(llvm::ArrayRef<llvm::StringRef> modifiers);
  /// Removes and returns the first modifier with this prefix; "" if none has
  /// it.
  llvm::StringRef takePrefixed(llvm::StringRef prefix);
  /// Removes the first modifier that is a type. takeType() fails if there is
  /// none.
  bool takeType(Type &type);
  std::optional<Type> takeOptionalType();
  std::optional<Space> takeSpace();

  // Operands. Each function checks an operand and appends it to those of the
  // instruction.
  unsigned getNumOperands() const { return syntax.operands.size(); }
  bool expectOperands(unsigned count);
  /// A destination register of `bytes` bytes, or `_`, which discards the
  /// result.
  bool dest(const OperandSyntax &operand, unsigned bytes);
  bool dest(unsigned index, unsigned bytes) {
    return dest(syntax.operands[index], bytes);
  }
  /// A register, constant or address that is read, of `bytes` bytes.
  bool source(const OperandSyntax &operand, unsigned bytes);
  bool source(unsigned index, unsigned bytes) {
    return source(syntax.operands[index], bytes);
  }
  /// The same for registers that may be wider than `bytes`.
  bool wideDest(const OperandSyntax &operand, unsigned bytes);
  bool wideSource(const OperandSyntax &operand, unsigned bytes);
  bool predDest(const OperandSyntax &operand);
  bool predSource(const OperandSyntax &operand);
  /// The base of an address in brackets, of 8 or 4 bytes. Sets `out.offset` to
  /// its offset. Coordinates are those of a tensor map.
  bool address(unsigned index, unsigned coordinates = 0);
  /// The only operand, a constant number of groups to wait for. Sets
  /// `out.offset`.
  bool groupCount();
  /// An implicit constant operand.
  bool constant(uint64_t value, unsigned bytes);
  /// Resolves a label to the index of an instruction of the program.
  bool label(unsigned index, uint32_t &target);
  /// Sets `out.targets` to those of the .branchtargets list that an operand
  /// names.
  bool labels(unsigned index);
  bool callee(const OperandSyntax &name);
  /// Sets `out.arguments` or `out.results` to the copies between the .param
  /// variables of the caller and the callee. Requires callee().
  bool callCopies(const OperandSyntax *list, bool isResult);
  /// A destination, then sources, all of `bytes` bytes.
  bool uniformOperands(unsigned bytes);
  /// A vector {a, b, ...} of `count` registers of 4 bytes.
  bool vectorDest(unsigned index, unsigned count);
  bool vectorSource(unsigned index, unsigned count);

  /// Copies `value` into the program and sets `out.extra` to the copy.
  template <typename T> void keepExtra(const T &value) {
    out.extra = new (allocate(sizeof(T), alignof(T))) T(value);
  }

  /// Returns an operand that has been appended.
  const Operand &getOperand(unsigned index) const { return operands[index]; }
  bool fail(const llvm::Twine &message);
  /// Completes `out`. Fails if a modifier is left, or if `handler` is null and
  /// the instruction is not control flow.
  bool finish(Handler handler);
  /// Completes an instruction that all 32 lanes of a warp execute together.
  bool finishWholeWarp(Handler handler);

private:
  void *allocate(size_t size, size_t align);
  llvm::ArrayRef<OperandSyntax> getElements(unsigned index, unsigned count);
  bool addSource(const OperandSyntax &operand, unsigned bytes, bool isWide);
  bool addDest(const OperandSyntax &operand, unsigned bytes, bool isWide);

  FunctionDecoder &function;
  const InstructionSyntax &syntax;
  llvm::SmallVector<llvm::StringRef, 6> modifiers;
  llvm::SmallVector<Operand, 8> operands;
  llvm::SmallVector<uint32_t, 8> reads, writes;
};

using DecodeFunction = bool (*)(Decoder &);
using OpcodeTable = llvm::StringMap<DecodeFunction>;

// Each adds a family of instructions to the table.
void addIntegerInstructions(OpcodeTable &table);
void addMultiplyInstructions(OpcodeTable &table);
void addBitInstructions(OpcodeTable &table);
void addFloatInstructions(OpcodeTable &table);
void addFloatFunctions(OpcodeTable &table);
void addCompareInstructions(OpcodeTable &table);
void addConvertInstructions(OpcodeTable &table);
void addMoveInstructions(OpcodeTable &table);
void addMemoryInstructions(OpcodeTable &table);
void addAtomicInstructions(OpcodeTable &table);
void addControlInstructions(OpcodeTable &table);
void addBarrierInstructions(OpcodeTable &table);
void addWarpInstructions(OpcodeTable &table);
void addMatrixInstructions(OpcodeTable &table);
void addMmaInstructions(OpcodeTable &table);
void addCopyInstructions(OpcodeTable &table);
void addFenceInstructions(OpcodeTable &table);
void addMBarrierInstructions(OpcodeTable &table);
void addWgmmaInstructions(OpcodeTable &table);

/// Returns the table of all opcodes. An opcode that differs between integers
/// and floats is in the table as "add" and as "add.f".
const OpcodeTable &getOpcodes();

/// Decodes the functions of a module. Kernels must be decoded after the other
/// functions: their registers follow those of the functions they call.
class FunctionDecoder {
public:
  FunctionDecoder(Program &program, const ParseOptions &options)
      : program(program), options(options) {}

  /// Adds the variables of module scope to the program.
  bool addModuleVariables(const ModuleSyntax &module);
  /// Adds a function and its parameters, so that calls can be decoded.
  bool declare(const FunctionSyntax &syntax);
  bool decode(const FunctionSyntax &syntax);
  /// Fills in the initial bytes of the variables of module scope.
  bool linkInitializers(const ModuleSyntax &module);
  llvm::Error takeError() const;

private:
  friend class Decoder;

  /// The meaning of a name other than a register.
  struct Symbol {
    enum Kind { None, Variable, Fixed } kind = None;
    uint32_t variable = 0;
    uint64_t address = 0; // of a Fixed: the offset in its state space
    uint64_t size = 0;
  };

  bool addVariable(const VariableSyntax &syntax, uint32_t &index);
  bool addScopeVariables(Scope &scope);
  bool addLaneVariable(const Scope *scope, const VariableSyntax &syntax);
  Symbol lookUp(const Scope *scope, llvm::StringRef name) const;
  bool lookUpLabel(const Scope *scope, llvm::StringRef name, uint32_t &label);
  std::optional<Operand> lookUpRegister(const Scope *scope,
                                        llvm::StringRef name);
  Operand addConstant(uint64_t value, unsigned bytes);
  Operand addAddress(const Symbol &symbol, int64_t addend, unsigned bytes);
  /// Returns the register for discarded results of `bytes` bytes.
  Operand getSink(unsigned bytes);
  uint32_t internName(const InstructionSyntax &syntax);
  bool fail(unsigned line, const llvm::Twine &message);
  void addReturn(unsigned line);

  Program &program;
  const ParseOptions &options;
  Function *current = nullptr;
  uint32_t registers = 0, registerBytes = specialBytes, laneBytes = 0;
  std::map<std::pair<const Scope *, std::string>, Symbol> symbols;
  std::map<std::pair<const Scope *, std::string>, Operand> registerOf;
  std::map<std::tuple<uint64_t, unsigned>, Operand> constantOf;
  llvm::StringMap<uint32_t> nameOf;
  bool hasFailed = false;
  unsigned errorLine = 0;
  std::string error;
};

} // namespace posenc::ptx

#endif // POSENC_TEST_PTX_DECODER_H

//===- Decoder.h - from syntax to instructions ------------------*- C++ -*-===//
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

/// Options that a text is decoded with.
struct ParseOptions {
  /// Allow additions and multiplications without a rounding, which ptxas may
  /// fuse. Here they are not fused.
  bool allowContraction = false;
  /// Allow functions that hardware approximates; here they are this host's.
  bool allowApproximate = false;
};

class FunctionDecoder;

/// One instruction being decoded. Functions answer false after an error, which
/// is kept. Every modifier must be taken.
class Decoder {
public:
  Decoder(FunctionDecoder &function, const InstructionSyntax &syntax);

  const ParseOptions &getOptions() const;
  const InstructionSyntax &getSyntax() const { return syntax; }
  Instruction out;

  // Modifiers.
  /// Takes the modifier if it is there.
  bool has(llvm::StringRef modifier);
  /// Takes the first of these that is there; empty if none is.
  llvm::StringRef takeOneOf(llvm::ArrayRef<llvm::StringRef> modifiers);
  /// Takes the first that starts so; empty if none does.
  llvm::StringRef takePrefixed(llvm::StringRef prefix);
  /// Takes the first modifier that is a type.
  bool takeType(Type &type);
  std::optional<Type> takeOptionalType();
  std::optional<Space> takeSpace();

  // Operands. Each is added to those of the instruction.
  unsigned getNumOperands() const { return syntax.operands.size(); }
  bool expectOperands(unsigned count);
  /// A register of so many bytes that is written; `_` is none of any program's.
  bool dest(const OperandSyntax &operand, unsigned bytes);
  bool dest(unsigned index, unsigned bytes) {
    return dest(syntax.operands[index], bytes);
  }
  /// A register, number or address that is read. A number takes `bytes`.
  bool source(const OperandSyntax &operand, unsigned bytes);
  bool source(unsigned index, unsigned bytes) {
    return source(syntax.operands[index], bytes);
  }
  /// A register that may be wider than `bytes`.
  bool wideDest(const OperandSyntax &operand, unsigned bytes);
  bool wideSource(const OperandSyntax &operand, unsigned bytes);
  bool predDest(const OperandSyntax &operand);
  bool predSource(const OperandSyntax &operand);
  /// The base of an address, of 8 or 4 bytes; its offset goes to `out.offset`.
  bool address(unsigned index);
  /// A number that the text does not have.
  bool constant(uint64_t value, unsigned bytes);
  bool label(unsigned index, uint32_t &target);
  /// The targets of the list of branches that an operand names.
  bool labels(unsigned index);
  bool callee(const OperandSyntax &name);
  /// What a call copies: from the caller's to the callee's, or back.
  bool callCopies(const OperandSyntax *list, bool isResult);
  /// A destination, then sources, all of `bytes`.
  bool uniformOperands(unsigned bytes);

  /// Keeps what the handler will read from `out.extra`.
  template <typename T> void keepExtra(const T &value) {
    out.extra = new (allocate(sizeof(T), alignof(T))) T(value);
  }

  /// An operand that has been added.
  const Operand &getOperand(unsigned index) const { return operands[index]; }
  bool fail(const llvm::Twine &message);
  /// The end: all modifiers must have been taken.
  bool finish(Handler handler);

private:
  void *allocate(size_t size, size_t align);
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

// One function a family of instructions.
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

/// All of them. What has a meaning of its own for floats, such as `add`, is
/// there as "add" for integers and as "add.f" for floats.
const OpcodeTable &getOpcodes();

/// Decodes the functions of a module, those that are no kernels first.
class FunctionDecoder {
public:
  FunctionDecoder(Program &program, const ParseOptions &options)
      : program(program), options(options) {}

  /// Variables of the module itself.
  bool addModuleVariables(const ModuleSyntax &module);
  bool declare(const FunctionSyntax &syntax);
  bool decode(const FunctionSyntax &syntax);
  /// Addresses in initialisers.
  bool linkInitializers(const ModuleSyntax &module);
  llvm::Error takeError() const;

private:
  friend class Decoder;

  /// What a name stands for, apart from a register.
  struct Place {
    enum Kind { None, Variable, Fixed } kind = None;
    uint32_t variable = 0;
    uint64_t address = 0; // of a Fixed: an offset into its space
    uint64_t size = 0;
  };

  bool addVariable(const VariableSyntax &syntax, uint32_t &index);
  bool addScopeVariables(Scope &scope);
  bool addLaneVariable(const Scope *scope, const VariableSyntax &syntax);
  Place lookUp(const Scope *scope, llvm::StringRef name) const;
  bool lookUpLabel(const Scope *scope, llvm::StringRef name, uint32_t &label);
  std::optional<Operand> lookUpRegister(const Scope *scope,
                                        llvm::StringRef name);
  Operand addConstant(uint64_t value, unsigned bytes);
  Operand addPlace(const Place &place, int64_t addend, unsigned bytes);
  /// Registers that nobody reads.
  Operand getSink(unsigned bytes);
  uint32_t internName(const InstructionSyntax &syntax);
  bool fail(unsigned line, const llvm::Twine &message);
  void addReturn(unsigned line);

  Program &program;
  const ParseOptions &options;
  Function *current = nullptr;
  uint32_t registers = 0, registerBytes = specialBytes, laneBytes = 0;
  std::map<std::pair<const Scope *, std::string>, Place> places;
  std::map<std::pair<const Scope *, std::string>, Operand> registerOf;
  std::map<std::tuple<uint64_t, unsigned>, Operand> constantOf;
  llvm::StringMap<uint32_t> nameOf;
  bool hasFailed = false;
  unsigned errorLine = 0;
  std::string error;
};

} // namespace posenc::ptx

#endif // POSENC_TEST_PTX_DECODER_H

//===- CInterfaceEmitter.h - the parts of a kernel library ------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel is called in three steps. An entry point puts its arguments into an
// array of 64-bit words (CallLayout). The kernel support library
// (runtime/kernel) checks them against a constant description, picks the
// variant that the CPU can run, and hands chunks of the work to the threads.
// For each chunk it calls the packed form of that variant, which unpacks the
// words into memref descriptors.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_ABI_CINTERFACEEMITTER_H
#define POSENC_LIB_ABI_CINTERFACEEMITTER_H

#include "CallLayout.h"

#include "posenc/ABI/CInterface.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::posenc {

/// Emits the C interface into a module, at its end.
class CInterfaceEmitter {
public:
  /// Of kernels that launch others on a GPU, there is one variant.
  CInterfaceEmitter(ModuleOp module, StringRef prefix,
                    ArrayRef<uint64_t> cpuFeatures, bool isGpu)
      : module(module), builder(module.getBodyRegion()), prefix(prefix.str()),
        cpuFeatures(cpuFeatures), isGpu(isGpu),
        pointer(LLVM::LLVMPointerType::get(module.getContext())),
        i32(builder.getI32Type()), i64(builder.getI64Type()),
        nothing(LLVM::LLVMVoidType::get(module.getContext())) {}

  /// Emits an error unless the function has the arguments that its signature
  /// asks for and a name that entry points can have.
  LogicalResult check(LLVM::LLVMFuncOp kernel, const CallLayout &layout);

  /// Emits the packed form of a kernel, as this variant of it.
  void emitPacked(LLVM::LLVMFuncOp kernel, const CallLayout &layout,
                  unsigned variant);

  /// Declares the functions of the kernel support library that entry points
  /// call.
  void declareKernelSupport();
  /// Emits the description of a kernel's arguments and variants.
  void emitDescription(LLVM::LLVMFuncOp kernel, const CallLayout &layout,
                       const KernelMemory &memory);
  /// Emits `<prefix>_<function>`, which takes pointers and sizes.
  void emitPlainEntry(LLVM::LLVMFuncOp kernel, const CallLayout &layout);
  /// Emits `<prefix>_<function>_dl`, which takes DLPack tensors.
  void emitTensorEntry(LLVM::LLVMFuncOp kernel, const CallLayout &layout);
  /// Emits `<prefix>_<function>_cuda`, which takes DLPack tensors on a GPU and
  /// a stream.
  void emitCudaEntry(LLVM::LLVMFuncOp kernel, const CallLayout &layout);
  /// Emits `<prefix>_<function>_vulkan`, which takes DLPack tensors on a Vulkan
  /// device and what launches kernels there.
  void emitVulkanEntry(LLVM::LLVMFuncOp kernel, const CallLayout &layout);
  /// Emits `__tvm_ffi_<prefix>_<function>`, which takes values of TVM FFI.
  void emitFfiEntry(LLVM::LLVMFuncOp kernel, const CallLayout &layout);
  /// Emits `<prefix>_<function>_workspace`, which takes sizes, for a kernel
  /// that has a workspace.
  void emitWorkspaceEntry(LLVM::LLVMFuncOp kernel, const CallLayout &layout);
  void emitMetadata(StringRef metadata);
  void emitSetParallelFor();

private:
  LLVM::LLVMFuncOp createFunction(StringRef name, Type result,
                                  ArrayRef<Type> arguments,
                                  LLVM::Linkage linkage);
  /// A constant array; never an empty one, so that it has an address.
  void createTable(StringRef name, SmallVector<int64_t> values);
  void createText(StringRef name, StringRef text);
  void createVariants(LLVM::LLVMFuncOp kernel);
  Value constant(Location loc, int64_t value) {
    return LLVM::ConstantOp::create(builder, loc, i64, value);
  }
  Value address(Location loc, StringRef symbol) {
    return LLVM::AddressOfOp::create(builder, loc, pointer, symbol);
  }
  /// Begins an entry point that takes the arguments of the kernel, and `more`.
  /// What The kernel support library gets of it: the description, the
  /// arguments, room for the words of the call, and `more`.
  SmallVector<Value> beginTensorEntry(LLVM::LLVMFuncOp kernel,
                                      const CallLayout &layout,
                                      StringRef symbol, ArrayRef<Type> more);
  /// The types of the arguments of an entry point.
  SmallVector<Type> getArgumentTypes(const CallLayout &layout);
  /// Arguments of an entry point as words.
  SmallVector<Value> createArgumentWords(Location loc, ValueRange arguments);
  /// An array on the stack that begins with these words.
  Value createArray(Location loc, int64_t size, ValueRange words);
  /// The words of a call, on the stack; those that are given come first.
  Value createWords(LLVM::LLVMFuncOp kernel, const CallLayout &layout,
                    ValueRange words, Value workspace);
  Value getDescription(LLVM::LLVMFuncOp kernel);
  std::string getSymbol(LLVM::LLVMFuncOp kernel, unsigned variant);
  /// The type of the kernel support library's `struct Kernel`.
  Type getKernelType();
  /// Emits the constant that describes this variant, whose packed form is
  /// given.
  void emitKernel(LLVM::LLVMFuncOp kernel, unsigned variant,
                  LLVM::LLVMFuncOp packed);
  /// Creates an exported function, and goes there.
  Block *createEntry(StringRef name, ArrayRef<Type> types,
                     Type result = nullptr);
  /// Calls a function of the kernel support library and returns what it
  /// returns.
  void finishEntry(Location loc, StringRef launch, ValueRange operands);
  Value getWordAddress(Location loc, Value words, int64_t number);
  Value loadWord(Location loc, Value words, int64_t number);

  ModuleOp module;
  OpBuilder builder;
  std::string prefix;
  ArrayRef<uint64_t> cpuFeatures;
  bool isGpu;
  Type pointer, i32, i64, nothing;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_ABI_CINTERFACEEMITTER_H

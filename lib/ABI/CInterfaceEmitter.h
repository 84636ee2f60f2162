//===- CInterfaceEmitter.h - emitter of the C interface ---------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel is called in three steps. An entry point writes its arguments to an
// array of 64-bit words (CallLayout). The kernel support library
// (runtime/kernel) checks them against a constant description, picks the
// variant that the CPU can run, and distributes the tasks among threads. For
// each task it calls that variant through the packed calling convention: a
// function that unpacks the words into memref descriptors.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_ABI_CINTERFACEEMITTER_H
#define POSENC_LIB_ABI_CINTERFACEEMITTER_H

#include "CallLayout.h"

#include "posenc/ABI/CInterface.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringSet.h"

namespace mlir::posenc {

/// Emits the C interface into a module, at its end.
class CInterfaceEmitter {
public:
  /// Functions that launch GPU kernels have a single variant.
  CInterfaceEmitter(ModuleOp module, StringRef prefix,
                    ArrayRef<uint64_t> cpuFeatures, bool isGpu)
      : module(module), builder(module.getBodyRegion()), prefix(prefix.str()),
        cpuFeatures(cpuFeatures), isGpu(isGpu),
        pointer(LLVM::LLVMPointerType::get(module.getContext())),
        i32(builder.getI32Type()), i64(builder.getI64Type()),
        nothing(LLVM::LLVMVoidType::get(module.getContext())) {}

  /// Emits an error unless the function's arguments match its signature and its
  /// name is valid for entry points.
  LogicalResult check(LLVM::LLVMFuncOp kernel, const CallLayout &layout);

  /// Emits the function with the packed calling convention for this variant of
  /// a kernel.
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
  /// Emits the function that runs GPU code for arguments of TVM FFI.
  /// `isEntry`: it is `__tvm_ffi_<prefix>_<function>`, as there is no CPU code.
  void emitFfiCudaFunction(LLVM::LLVMFuncOp kernel, const CallLayout &layout,
                           bool isEntry);
  /// Emits `<prefix>_<function>_vulkan`, which takes DLPack tensors on a Vulkan
  /// device and the functions that launch kernels there.
  void emitVulkanEntry(LLVM::LLVMFuncOp kernel, const CallLayout &layout);
  /// Emits `__tvm_ffi_<prefix>_<function>`, which takes values of TVM FFI.
  /// `hasCuda`: another module has the function for tensors on a GPU.
  void emitFfiEntry(LLVM::LLVMFuncOp kernel, const CallLayout &layout,
                    bool hasCuda);
  /// Emits `<prefix>_<function>_workspace`, which takes sizes, for a kernel
  /// that has a workspace. For GPU code, it is `_cuda_workspace`.
  void emitWorkspaceEntry(LLVM::LLVMFuncOp kernel, const CallLayout &layout);
  /// Emits `<prefix>_<function>_output_sizes`, which computes the shapes of the
  /// outputs from those of the inputs. Emits `_output_sizes_by_values`, which
  /// also takes values of inputs and a buffer for a message, for a function
  /// with computed shapes.
  void emitOutputSizesEntries(LLVM::LLVMFuncOp kernel,
                              const CallLayout &layout);
  void emitMetadata(StringRef metadata);
  void emitSetParallelFor();
  /// Emits `<prefix>_weights_open`, which maps the file of the weights.
  void emitWeightsOpen();

private:
  LLVM::LLVMFuncOp createFunction(StringRef name, Type result,
                                  ArrayRef<Type> arguments,
                                  LLVM::Linkage linkage);
  /// Creates a constant array with at least one element, so that it has an
  /// address.
  void createTable(StringRef name, SmallVector<int64_t> values);
  void createText(StringRef name, StringRef text);
  void createVariants(LLVM::LLVMFuncOp kernel);
  Value constant(Location loc, int64_t value) {
    return LLVM::ConstantOp::create(builder, loc, i64, value);
  }
  Value address(Location loc, StringRef symbol) {
    return LLVM::AddressOfOp::create(builder, loc, pointer, symbol);
  }
  /// Begins an entry point that takes the kernel's arguments, a workspace if
  /// `hasWorkspace`, and `more`. Returns the arguments for the kernel support
  /// library: the description, the arguments, a buffer for the words of the
  /// call, and `more`.
  SmallVector<Value> beginTensorEntry(LLVM::LLVMFuncOp kernel,
                                      const CallLayout &layout,
                                      StringRef symbol, bool hasWorkspace,
                                      ArrayRef<Type> more);
  /// Begins a function that takes values of TVM FFI. Returns the arguments for
  /// the kernel support library: the description, the arguments of the function
  /// but the first, and buffers for the arguments and words of the call.
  SmallVector<Value> beginFfiEntry(LLVM::LLVMFuncOp kernel,
                                   const CallLayout &layout,
                                   const llvm::Twine &symbol);
  /// Appends the table of CUDA images and their number.
  void addImages(Location loc, SmallVector<Value> &operands);
  /// Returns the argument types of an entry point.
  SmallVector<Type> getArgumentTypes(const CallLayout &layout);
  /// Converts the arguments of an entry point to words.
  SmallVector<Value> createArgumentWords(Location loc, ValueRange arguments);
  /// Creates an array on the stack that begins with these words.
  Value createArray(Location loc, int64_t size, ValueRange words);
  /// Creates the words of a call on the stack. They begin with `words`.
  Value createWords(LLVM::LLVMFuncOp kernel, const CallLayout &layout,
                    ValueRange words, Value workspace);
  Value getDescription(LLVM::LLVMFuncOp kernel);
  std::string getSymbol(LLVM::LLVMFuncOp kernel, unsigned variant);
  /// Returns the type of `struct Kernel` of the kernel support library.
  Type getKernelType();
  /// Emits the constant that describes this variant, given its packed function.
  void emitKernel(LLVM::LLVMFuncOp kernel, const KernelConfig &config,
                  unsigned variant, LLVM::LLVMFuncOp packed);
  /// Creates an exported function and sets the insertion point to its body.
  Block *createEntry(StringRef name, ArrayRef<Type> types,
                     Type result = nullptr);
  /// Calls a function of the kernel support library and returns its result.
  void finishEntry(Location loc, StringRef launch, ValueRange operands);
  /// Whether functions of the module call the kernel. The answers are those of
  /// the first call.
  bool isCalled(LLVM::LLVMFuncOp kernel);
  Value getWordAddress(Location loc, Value words, int64_t number);
  Value loadWord(Location loc, Value words, int64_t number);

  ModuleOp module;
  OpBuilder builder;
  std::string prefix;
  ArrayRef<uint64_t> cpuFeatures;
  bool isGpu;
  /// The functions that are used in the module, once they have been needed.
  std::optional<llvm::StringSet<>> callees;
  Type pointer, i32, i64, nothing;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_ABI_CINTERFACEEMITTER_H

//===- VulkanProgram.cpp - a module's functions on Vulkan -------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Run/VulkanProgram.h"

#include "VulkanKernels.h"

#include "posenc/Codegen/CInterface.h"
#include "posenc/Codegen/Passes.h"
#include "posenc/Pipelines/Pipelines.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/Support/TargetSelect.h"

#include <cstring>

using namespace mlir;
using namespace mlir::posenc;

/// Bits of an address within a tensor.
static constexpr int kPlaceBits = 40;

struct VulkanProgram::Impl {
  struct Memory {
    VulkanBuffer buffer;
    std::vector<char> bytes;
  };

  llvm::Error buildHost(ModuleOp host);
  llvm::Error addMemory(const VulkanArgument &argument, Memory &memory);
  llvm::Error readBack(ArrayRef<VulkanArgument> arguments);
  static void enqueue(int64_t call, const char *const *kernel, int64_t blocks,
                      int64_t threads, void *const *parameters);

  VulkanKernels kernels;
  std::unique_ptr<llvm::orc::LLJIT> jit;
  // Of the call in progress.
  std::vector<Memory> memories;
  std::vector<std::string> launched;
  std::string error;
};

VulkanProgram::VulkanProgram(std::unique_ptr<Impl> impl)
    : impl(std::move(impl)) {}
VulkanProgram::~VulkanProgram() = default;

ArrayRef<std::string> VulkanProgram::getLaunched() const {
  return impl->launched;
}

ArrayRef<char> VulkanProgram::getMemory(size_t argument) const {
  return impl->memories[argument].bytes;
}

void VulkanProgram::setMostBlocks(uint32_t count) {
  impl->kernels.mostBlocks = count;
}

llvm::Expected<std::unique_ptr<VulkanProgram>>
VulkanProgram::create(ModuleOp module, uint32_t device) {
  PassManager manager(module.getContext());
  buildPosencToGpuPipeline(manager);
  if (failed(manager.run(module)))
    return llvm::createStringError("the module has no form for a GPU");
  auto impl = std::make_unique<Impl>();
  OwningOpRef<ModuleOp> kernels = module.clone();
  if (llvm::Error error = impl->kernels.create(*kernels, device))
    return std::move(error);
  if (llvm::Error error = impl->buildHost(module))
    return std::move(error);
  return std::unique_ptr<VulkanProgram>(new VulkanProgram(std::move(impl)));
}

static std::string getPackedName(StringRef function) {
  return ("packed." + function).str();
}

/// A form of a function that takes its arguments from a list of 64-bit words.
static void emitPacked(llvm::Function *function, StringRef name) {
  llvm::Module *module = function->getParent();
  llvm::LLVMContext &context = module->getContext();
  llvm::Type *pointer = llvm::PointerType::get(context, 0);
  auto *packed = llvm::Function::Create(
      llvm::FunctionType::get(llvm::Type::getVoidTy(context), pointer, false),
      llvm::Function::ExternalLinkage, getPackedName(name), module);
  llvm::IRBuilder<> builder(llvm::BasicBlock::Create(context, "", packed));
  SmallVector<llvm::Value *> arguments;
  for (llvm::Argument &argument : function->args()) {
    llvm::Value *place = builder.CreateConstGEP1_64(
        builder.getInt64Ty(), packed->getArg(0), argument.getArgNo());
    arguments.push_back(builder.CreateLoad(argument.getType(), place));
  }
  builder.CreateCall(function, arguments);
  builder.CreateRetVoid();
}

llvm::Error VulkanProgram::Impl::buildHost(ModuleOp host) {
  MLIRContext *context = host.getContext();
  registerBuiltinDialectTranslation(*context);
  registerLLVMDialectTranslation(*context);
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  PassManager launches(context), lowering(context);
  launches.addPass(createPosencLowerLaunchesPass());
  buildVectorToLLVMPipeline(lowering, PosencToCPUOptions());
  auto llvmContext = std::make_unique<llvm::LLVMContext>();
  std::unique_ptr<llvm::Module> code;
  SmallVector<std::string> names;
  if (succeeded(launches.run(host))) {
    for (auto kernels :
         llvm::make_early_inc_range(host.getOps<gpu::GPUModuleOp>()))
      kernels.erase();
    for (auto function : host.getOps<func::FuncOp>()) {
      function->setAttr(LLVM::LLVMDialect::getEmitCWrapperAttrName(),
                        UnitAttr::get(context));
      names.push_back(function.getName().str());
    }
    if (succeeded(lowering.run(host)))
      code = translateModuleToLLVMIR(host, *llvmContext);
  }
  if (!code)
    return llvm::createStringError("the host's part cannot be compiled");
  for (const std::string &name : names)
    if (llvm::Function *function = code->getFunction("_mlir_ciface_" + name))
      emitPacked(function, name);

  llvm::Expected<std::unique_ptr<llvm::orc::LLJIT>> made =
      llvm::orc::LLJITBuilder().create();
  if (!made)
    return made.takeError();
  jit = std::move(*made);
  code->setDataLayout(jit->getDataLayout());
  llvm::orc::SymbolMap symbols;
  symbols[jit->mangleAndIntern(kEnqueueSymbol)] = {
      llvm::orc::ExecutorAddr::fromPtr(&Impl::enqueue),
      llvm::JITSymbolFlags::Exported};
  if (llvm::Error error = jit->getMainJITDylib().define(
          llvm::orc::absoluteSymbols(std::move(symbols))))
    return error;
  return jit->addIRModule(
      llvm::orc::ThreadSafeModule(std::move(code), std::move(llvmContext)));
}

void VulkanProgram::Impl::enqueue(int64_t call, const char *const *kernel,
                                  int64_t blocks, int64_t,
                                  void *const *parameters) {
  auto *self = reinterpret_cast<Impl *>(call);
  if (!self->error.empty())
    return;
  self->launched.push_back(*kernel);
  auto findBuffer = [&](uint64_t address)
      -> llvm::Expected<std::pair<posenc_vulkan_buffer *, uint64_t>> {
    size_t number = (address >> kPlaceBits) - 1;
    if (number >= self->memories.size())
      return llvm::createStringError("a launch has the address of no tensor");
    return std::pair(self->memories[number].buffer.get(),
                     address & ((uint64_t(1) << kPlaceBits) - 1));
  };
  self->error = llvm::toString(
      self->kernels.launch(*kernel, blocks, parameters, findBuffer));
}

static int64_t countElements(const posenc_tensor &tensor) {
  int64_t count = 1;
  for (int32_t dim = 0; dim < tensor.rank; ++dim)
    count *= tensor.shape[dim];
  return count;
}

/// Copies a dense tensor to the memory that stands for it, or back.
static void copyRows(const VulkanArgument &layout, const posenc_tensor &tensor,
                     std::vector<char> &memory, bool isBack) {
  int64_t element = posenc_dtype_size(tensor.dtype);
  int64_t length = tensor.rank ? tensor.shape[tensor.rank - 1] : 1;
  int64_t rows = length ? countElements(tensor) / length : 0;
  for (int64_t row = 0; row < rows; ++row) {
    char *dense = static_cast<char *>(tensor.data) + row * length * element;
    char *place =
        memory.data() + layout.shift + row * (length + layout.gap) * element;
    std::memcpy(isBack ? dense : place, isBack ? place : dense,
                length * element);
  }
}

llvm::Error VulkanProgram::Impl::addMemory(const VulkanArgument &argument,
                                           Memory &memory) {
  const posenc_tensor &tensor = argument.value.tensor;
  int64_t element = posenc_dtype_size(tensor.dtype);
  int64_t length = tensor.rank ? tensor.shape[tensor.rank - 1] : 1;
  int64_t rows = length ? countElements(tensor) / length : 0;
  memory.bytes.resize(argument.shift +
                      rows * (length + argument.gap) * element);
  copyRows(argument, tensor, memory.bytes, /*isBack=*/false);
  llvm::Expected<VulkanBuffer> buffer =
      createBuffer(kernels.getDevice(), memory.bytes);
  if (!buffer)
    return buffer.takeError();
  memory.buffer = std::move(*buffer);
  return llvm::Error::success();
}

/// A memref as functions take it: twice an address, an offset, sizes, strides.
static SmallVector<int64_t> makeDescriptor(const VulkanArgument &layout,
                                           const posenc_tensor &tensor,
                                           size_t owner) {
  int64_t address = (int64_t(owner + 1) << kPlaceBits) + layout.shift;
  SmallVector<int64_t> descriptor{address, address, 0};
  descriptor.append(tensor.shape, tensor.shape + tensor.rank);
  SmallVector<int64_t> strides(tensor.rank);
  int64_t stride = 1;
  for (int32_t dim = tensor.rank - 1; dim >= 0; --dim) {
    strides[dim] = stride;
    stride *= tensor.shape[dim];
    if (dim + 1 == tensor.rank)
      stride += layout.gap;
  }
  descriptor.append(strides);
  return descriptor;
}

llvm::Error VulkanProgram::Impl::readBack(ArrayRef<VulkanArgument> arguments) {
  for (auto [number, argument] : llvm::enumerate(arguments)) {
    if (argument.value.kind != POSENC_TENSOR)
      continue;
    size_t owner = argument.alias.value_or(number);
    Memory &memory = memories[owner];
    if (llvm::Error error = toError(posenc_vulkan_download(
            memory.buffer.get(), 0, memory.bytes.data(), memory.bytes.size())))
      return error;
    copyRows(arguments[owner], argument.value.tensor, memory.bytes,
             /*isBack=*/true);
  }
  return llvm::Error::success();
}

llvm::Error VulkanProgram::call(StringRef function,
                                ArrayRef<VulkanArgument> arguments) {
  auto entry = impl->jit->lookup(getPackedName(function));
  if (!entry) {
    llvm::consumeError(entry.takeError());
    return llvm::createStringError(function +
                                   ": the function has no kernels for a GPU");
  }
  impl->error.clear();
  impl->launched.clear();
  impl->memories.clear();
  impl->memories.resize(arguments.size());
  SmallVector<SmallVector<int64_t>> descriptors(arguments.size());
  SmallVector<int64_t> words;
  for (auto [number, argument] : llvm::enumerate(arguments)) {
    if (argument.value.kind != POSENC_TENSOR) {
      words.push_back(argument.value.scalar);
      continue;
    }
    size_t owner = argument.alias.value_or(number);
    if (owner == number)
      if (llvm::Error error = impl->addMemory(argument, impl->memories[number]))
        return error;
    descriptors[number] =
        makeDescriptor(arguments[owner], argument.value.tensor, owner);
    words.push_back(reinterpret_cast<int64_t>(descriptors[number].data()));
  }
  words.push_back(reinterpret_cast<int64_t>(impl.get()));
  entry->toPtr<void (*)(int64_t *)>()(words.data());
  if (!impl->error.empty())
    return llvm::createStringError(impl->error);
  return impl->readBack(arguments);
}

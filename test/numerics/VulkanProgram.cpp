//===- VulkanProgram.cpp - a module's kernels on Vulkan ---------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VulkanProgram.h"

#include "Dispatch.h"
#include "posenc/Codegen/CInterface.h"
#include "posenc/Codegen/Passes.h"
#include "posenc/Codegen/SpirvKernels.h"
#include "posenc/IR/Posenc.h"
#include "posenc/Pipelines/Pipelines.h"
#include "posenc/Registration/Registration.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Target/SPIRV/Serialization.h"
#include "llvm/Support/TargetSelect.h"
#include "gtest/gtest.h"

#include <cstring>

using namespace mlir;
using ::posenc::test::VulkanProgram;
namespace runtime = ::posenc::runtime;
namespace compiler = mlir::posenc;
using compiler::PosencDialect;
using compiler::SpirvKernelAbi;

/// Bits of an address within a tensor.
static constexpr int placeBits = 40;

struct VulkanProgram::Kernel {
  posenc_vulkan_kernel *handle = nullptr;
  FunctionType type;
};

static bool check(posenc_status status) {
  EXPECT_EQ(status, POSENC_OK) << posenc_last_error();
  return status == POSENC_OK;
}

std::string VulkanProgram::whyNot() {
  uint32_t count = 0;
  if (posenc_vulkan_count_devices(&count))
    return posenc_last_error();
  if (!count)
    return "no Vulkan device";
  posenc_vulkan_facts facts;
  if (posenc_vulkan_query_device(0, &facts))
    return posenc_last_error();
  if (!facts.int64 || !facts.float64)
    return std::string(facts.name) + " has no i64 or f64";
  return "";
}

VulkanProgram::VulkanProgram(const std::string &text, bool fusedFma) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  DialectRegistry registry;
  compiler::registerAllDialects(registry);
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  context = std::make_unique<MLIRContext>(registry);
  hostModule = parseSourceString<ModuleOp>(text, context.get());
  failed = !hostModule || !build(fusedFma);
  EXPECT_FALSE(failed) << "cannot build\n" << text;
}

bool VulkanProgram::build(bool fusedFma) {
  PassManager manager(context.get());
  compiler::buildPosencToGpuPipeline(manager);
  if (::mlir::failed(manager.run(*hostModule)) ||
      !check(posenc_vulkan_open(0, &device)))
    return false;
  OwningOpRef<ModuleOp> kernelModule = hostModule->clone();
  return buildKernels(*kernelModule, fusedFma) && buildHost(*hostModule);
}

VulkanProgram::~VulkanProgram() {
  for (auto &[name, kernel] : kernels)
    posenc_vulkan_destroy_kernel(kernel.handle);
  for (Buffer &buffer : buffers)
    posenc_vulkan_destroy_buffer(buffer.handle);
  posenc_vulkan_destroy_buffer(constants);
  posenc_vulkan_destroy_module(module);
  posenc_vulkan_close(device);
}

bool VulkanProgram::buildKernels(ModuleOp kernelModule, bool fusedFma) {
  PassManager manager(context.get());
  compiler::PosencToSPIRVOptions options;
  options.fusedFma = fusedFma;
  compiler::buildGpuToSPIRVPipeline(manager, options);
  if (::mlir::failed(manager.run(kernelModule))) {
    ADD_FAILURE() << "no SPIR-V";
    return false;
  }
  auto spirvModules = kernelModule.getOps<spirv::ModuleOp>();
  if (spirvModules.empty()) {
    ADD_FAILURE() << "no kernels";
    return false;
  }
  spirv::ModuleOp spirvModule = *spirvModules.begin();
  llvm::SmallVector<uint32_t> words;
  if (::mlir::failed(spirv::serialize(spirvModule, words)) ||
      !check(posenc_vulkan_create_module(device, words.data(), words.size(),
                                         &module)))
    return false;
  auto data = kernelModule->getAttrOfType<DenseIntElementsAttr>(
      PosencDialect::kKernelConstantsAttrName);
  if (data) {
    auto values = llvm::to_vector(data.getValues<int32_t>());
    if (!check(posenc_vulkan_create_buffer(device, 4 * values.size(),
                                           &constants)) ||
        !check(posenc_vulkan_upload(constants, 0, values.data(),
                                    4 * values.size())))
      return false;
  }
  for (auto function : spirvModule.getOps<spirv::FuncOp>())
    if (auto type = function->getAttrOfType<TypeAttr>(
            PosencDialect::kKernelTypeAttrName))
      if (!createKernel(function.getName().str(),
                        cast<FunctionType>(type.getValue())))
        return false;
  return true;
}

bool VulkanProgram::createKernel(const std::string &name, FunctionType type) {
  SpirvKernelAbi abi(type, constants != nullptr);
  Kernel &kernel = kernels[name];
  kernel.type = type;
  return check(posenc_vulkan_create_kernel(
      module, name.c_str(), abi.numBuffers,
      abi.isPushed() ? 4 * abi.numWords : 0, &kernel.handle));
}

bool VulkanProgram::buildHost(ModuleOp host) {
  PassManager manager(context.get());
  manager.addPass(compiler::createPosencLowerLaunchesPass());
  if (::mlir::failed(manager.run(host))) {
    ADD_FAILURE() << "launches are not lowered";
    return false;
  }
  for (auto kernels :
       llvm::make_early_inc_range(host.getOps<gpu::GPUModuleOp>()))
    kernels.erase();
  for (auto function : host.getOps<func::FuncOp>())
    function->setAttr(LLVM::LLVMDialect::getEmitCWrapperAttrName(),
                      UnitAttr::get(context.get()));
  PassManager lowering(context.get());
  compiler::buildVectorToLLVMPipeline(lowering, compiler::PosencToCPUOptions());
  auto llvmContext = std::make_unique<llvm::LLVMContext>();
  std::unique_ptr<llvm::Module> code;
  if (succeeded(lowering.run(host)))
    code = translateModuleToLLVMIR(host, *llvmContext);
  if (!code) {
    ADD_FAILURE() << "no code for the host";
    return false;
  }
  auto made = llvm::orc::LLJITBuilder().create();
  if (!made) {
    ADD_FAILURE() << llvm::toString(made.takeError());
    return false;
  }
  jit = std::move(*made);
  code->setDataLayout(jit->getDataLayout());
  llvm::orc::SymbolMap symbols;
  symbols[jit->mangleAndIntern(compiler::kEnqueueSymbol)] = {
      llvm::orc::ExecutorAddr::fromPtr(&VulkanProgram::enqueue),
      llvm::JITSymbolFlags::Exported};
  llvm::Error error = jit->getMainJITDylib().define(
      llvm::orc::absoluteSymbols(std::move(symbols)));
  if (!error)
    error = jit->addIRModule(
        llvm::orc::ThreadSafeModule(std::move(code), std::move(llvmContext)));
  if (!error)
    return true;
  ADD_FAILURE() << llvm::toString(std::move(error));
  return false;
}

void VulkanProgram::enqueue(int64_t call, const char *const *kernel,
                            int64_t blocks, int64_t, void *const *places) {
  auto *self = reinterpret_cast<VulkanProgram *>(call);
  self->failed |= !self->launch(*kernel, blocks, places);
}

bool VulkanProgram::launch(const std::string &name, int64_t blocks,
                           void *const *places) {
  auto known = kernels.find(name);
  if (known == kernels.end()) {
    ADD_FAILURE() << "no kernel " << name;
    return false;
  }
  names.push_back(name);
  auto next = [&] { return *static_cast<const int64_t *>(*places++); };
  FunctionType type = known->second.type;
  SpirvKernelAbi abi(type, constants != nullptr);
  std::vector<uint32_t> words{0};
  std::vector<posenc_vulkan_buffer *> bound;
  for (Type input : type.getInputs()) {
    if (auto memref = dyn_cast<MemRefType>(input)) {
      uint64_t address = next();
      next();
      uint64_t offset = next();
      next();
      next();
      size_t number = (address >> placeBits) - 1;
      uint64_t bytes = address & ((uint64_t(1) << placeBits) - 1);
      if (number >= buffers.size()) {
        ADD_FAILURE() << "no tensor has the address " << address;
        return false;
      }
      bound.push_back(buffers[number].handle);
      words.push_back(bytes / (memref.getElementTypeBitWidth() / 8) + offset);
      continue;
    }
    uint64_t value = next();
    words.push_back(static_cast<uint32_t>(value));
    if (SpirvKernelAbi::countWords(input) == 2)
      words.push_back(value >> 32);
  }
  if (constants)
    bound.push_back(constants);
  posenc_vulkan_buffer *wordBuffer = nullptr;
  if (!abi.isPushed()) {
    if (!check(
            posenc_vulkan_create_buffer(device, 4 * words.size(), &wordBuffer)))
      return false;
    bound.push_back(wordBuffer);
  }
  int64_t most = posenc_vulkan_device_facts(device)->max_grid[0];
  if (mostBlocks)
    most = std::min<int64_t>(most, mostBlocks);
  bool good = true;
  for (int64_t first = 0; good && first < blocks; first += most) {
    words[0] = first;
    uint32_t grid[3] = {static_cast<uint32_t>(std::min(most, blocks - first)),
                        1, 1};
    good = !wordBuffer || check(posenc_vulkan_upload(
                              wordBuffer, 0, words.data(), 4 * words.size()));
    good = good && check(posenc_vulkan_run(
                       known->second.handle, grid, bound.data(), bound.size(),
                       words.data(), wordBuffer ? 0 : 4 * words.size()));
  }
  posenc_vulkan_destroy_buffer(wordBuffer);
  return good;
}

/// Copies a dense array to or from one with gaps behind its rows.
static void copyRows(const runtime::Array &array, int64_t gapBytes,
                     std::vector<char> &spaced, int64_t shift, bool read) {
  int64_t element = posenc_dtype_size(array.dtype());
  int64_t row =
      array.shape().empty() ? element : array.shape().back() * element;
  char *dense = array.dataAs<char>();
  for (size_t at = 0; row && at < array.sizeInBytes(); at += row) {
    char *place = spaced.data() + shift + at / row * (row + gapBytes);
    std::memcpy(read ? dense + at : place, read ? place : dense + at, row);
  }
}

bool VulkanProgram::call(const std::string &function,
                         const std::vector<VulkanArgument> &arguments) {
  if (failed)
    return false;
  names.clear();
  for (Buffer &buffer : buffers)
    posenc_vulkan_destroy_buffer(buffer.handle);
  buffers.assign(arguments.size(), {});
  std::vector<std::vector<int64_t>> descriptors(arguments.size());
  std::vector<std::vector<char>> images(arguments.size());
  std::vector<int64_t> values;
  for (auto [number, argument] : llvm::enumerate(arguments)) {
    if (!argument.array) {
      values.push_back(argument.scalar);
      continue;
    }
    const runtime::Array &array = *argument.array;
    int64_t element = posenc_dtype_size(array.dtype());
    int64_t owner = argument.alias < 0 ? number : argument.alias;
    const VulkanArgument &layout = arguments[owner];
    std::vector<int64_t> strides(array.shape().size(), 1);
    int64_t stride = 1;
    for (size_t dim = strides.size(); dim-- > 0;) {
      strides[dim] = stride;
      stride *= array.shape()[dim];
      if (dim + 1 == strides.size())
        stride += layout.gap;
    }
    if (owner == int64_t(number)) {
      int64_t bytes = layout.shift + (stride + layout.gap) * element;
      images[number].assign(bytes, '\x5a');
      copyRows(array, layout.gap * element, images[number], layout.shift,
               /*read=*/false);
      buffers[number].bytes = bytes;
      if (!check(posenc_vulkan_create_buffer(device, bytes,
                                             &buffers[number].handle)) ||
          !check(posenc_vulkan_upload(buffers[number].handle, 0,
                                      images[number].data(), bytes)))
        return false;
    }
    int64_t address = ((owner + 1) << placeBits) + layout.shift;
    std::vector<int64_t> &descriptor = descriptors[number];
    descriptor = {address, address, 0};
    llvm::append_range(descriptor, array.shape());
    llvm::append_range(descriptor, strides);
    values.push_back(reinterpret_cast<int64_t>(descriptor.data()));
  }
  values.push_back(reinterpret_cast<int64_t>(this));
  auto entry = jit->lookup("_mlir_ciface_" + function);
  if (!entry) {
    ADD_FAILURE() << llvm::toString(entry.takeError());
    return false;
  }
  runtime::dispatch<int64_t>(entry->toPtr<void *>(), values.data(),
                             values.size());
  bool good = !failed;
  failed = false;
  for (auto [number, argument] : llvm::enumerate(arguments)) {
    if (!good || !argument.array)
      continue;
    int64_t owner = argument.alias < 0 ? number : argument.alias;
    std::vector<char> image(buffers[owner].bytes);
    good = check(posenc_vulkan_download(buffers[owner].handle, 0, image.data(),
                                        image.size()));
    copyRows(*argument.array,
             arguments[owner].gap * posenc_dtype_size(argument.array->dtype()),
             image, arguments[owner].shift, /*read=*/true);
    // What lies between rows is nobody's.
    if (good && owner == int64_t(number)) {
      copyRows(*argument.array,
               argument.gap * posenc_dtype_size(argument.array->dtype()),
               images[number], argument.shift, /*read=*/false);
      EXPECT_TRUE(image == images[number])
          << "written beside argument " << number;
    }
  }
  return good;
}

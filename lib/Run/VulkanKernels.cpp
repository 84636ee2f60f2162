//===- VulkanKernels.cpp - a module's kernels on a device -------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VulkanKernels.h"

#include "posenc/Codegen/SpirvKernels.h"
#include "posenc/IR/Posenc.h"
#include "posenc/Pipelines/Pipelines.h"

#include "mlir/Dialect/SPIRV/IR/SPIRVOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/SPIRV/Serialization.h"

using namespace mlir;
using namespace mlir::posenc;

llvm::Error mlir::posenc::toError(posenc_status status) {
  return status ? llvm::createStringError(posenc_last_error())
                : llvm::Error::success();
}

llvm::Expected<VulkanBuffer>
mlir::posenc::createBuffer(const VulkanDevice &device, ArrayRef<char> bytes) {
  posenc_vulkan_buffer *made = nullptr;
  if (llvm::Error error = toError(
          posenc_vulkan_create_buffer(device.get(), bytes.size(), &made)))
    return std::move(error);
  VulkanBuffer buffer(made);
  if (llvm::Error error =
          toError(posenc_vulkan_upload(made, 0, bytes.data(), bytes.size())))
    return std::move(error);
  return buffer;
}

static ArrayRef<char> getBytes(ArrayRef<int32_t> words) {
  return {reinterpret_cast<const char *>(words.data()), 4 * words.size()};
}

llvm::Error VulkanKernels::create(ModuleOp module, uint32_t deviceNumber) {
  posenc_vulkan_device *opened = nullptr;
  if (llvm::Error error = toError(posenc_vulkan_open(deviceNumber, &opened)))
    return error;
  device.reset(opened);

  PassManager manager(module.getContext());
  buildGpuToSPIRVPipeline(manager, PosencToSPIRVOptions());
  if (failed(manager.run(module)))
    return llvm::createStringError("the kernels have no SPIR-V form");
  auto modules = module.getOps<spirv::ModuleOp>();
  if (modules.empty())
    return llvm::createStringError("no function has kernels for a GPU");
  spirv::ModuleOp kernelModule = *modules.begin();
  SmallVector<uint32_t> words;
  if (failed(spirv::serialize(kernelModule, words)))
    return llvm::createStringError("the kernels cannot be written as SPIR-V");
  posenc_vulkan_module *made = nullptr;
  if (llvm::Error error = toError(posenc_vulkan_create_module(
          device.get(), words.data(), words.size(), &made)))
    return error;
  code.reset(made);

  if (auto data = module->getAttrOfType<DenseIntElementsAttr>(
          PosencDialect::kKernelConstantsAttrName)) {
    auto values = llvm::to_vector(data.getValues<int32_t>());
    llvm::Expected<VulkanBuffer> buffer =
        createBuffer(device, getBytes(values));
    if (!buffer)
      return buffer.takeError();
    constants = std::move(*buffer);
  }
  for (auto function : kernelModule.getOps<spirv::FuncOp>())
    if (auto type = function->getAttrOfType<TypeAttr>(
            PosencDialect::kKernelTypeAttrName))
      kernels[function.getName()].type = cast<FunctionType>(type.getValue());
  return llvm::Error::success();
}

llvm::Error VulkanKernels::compile(StringRef name, Entry &entry) {
  SpirvKernelAbi abi(entry.type, constants != nullptr);
  posenc_vulkan_kernel *made = nullptr;
  if (llvm::Error error = toError(posenc_vulkan_create_kernel(
          code.get(), name.str().c_str(), abi.numBuffers,
          abi.isPushed() ? 4 * abi.numWords : 0, &made)))
    return error;
  entry.kernel.reset(made);
  return llvm::Error::success();
}

llvm::Error VulkanKernels::launch(StringRef name, int64_t blocks,
                                  void *const *parameters,
                                  FindBuffer findBuffer) {
  auto known = kernels.find(name);
  if (known == kernels.end())
    return llvm::createStringError("there is no kernel " + name);
  Entry &entry = known->second;
  if (!entry.kernel)
    if (llvm::Error error = compile(name, entry))
      return error;
  auto next = [&] { return *static_cast<const int64_t *>(*parameters++); };
  SmallVector<int32_t> words{0};
  SmallVector<posenc_vulkan_buffer *> buffers;
  auto addIndex = [&](int64_t value) {
    words.push_back(static_cast<int32_t>(value));
    return llvm::isInt<32>(value)
               ? llvm::Error::success()
               : llvm::createStringError(
                     name + ": " + Twine(value) +
                     " is too large for a Vulkan kernel, whose indices have "
                     "32 bits");
  };
  for (Type input : entry.type.getInputs()) {
    if (auto memref = dyn_cast<MemRefType>(input)) {
      uint64_t address = next();
      next();
      int64_t offset = next();
      next();
      next();
      auto place = findBuffer(address);
      if (!place)
        return place.takeError();
      buffers.push_back(place->first);
      uint64_t element = memref.getElementTypeBitWidth() / 8;
      if (llvm::Error error = addIndex(place->second / element + offset))
        return error;
      continue;
    }
    int64_t value = next();
    if (input.isIndex()) {
      if (llvm::Error error = addIndex(value))
        return error;
      continue;
    }
    words.push_back(static_cast<int32_t>(value));
    if (SpirvKernelAbi::countWords(input) == 2)
      words.push_back(static_cast<int32_t>(value >> 32));
  }
  if (constants)
    buffers.push_back(constants.get());

  bool isPushed = SpirvKernelAbi(entry.type, constants != nullptr).isPushed();
  VulkanBuffer wordBuffer;
  if (!isPushed) {
    llvm::Expected<VulkanBuffer> made = createBuffer(device, getBytes(words));
    if (!made)
      return made.takeError();
    wordBuffer = std::move(*made);
    buffers.push_back(wordBuffer.get());
  }
  int64_t most = posenc_vulkan_device_facts(device.get())->max_grid[0];
  if (mostBlocks)
    most = std::min<int64_t>(most, mostBlocks);
  for (int64_t first = 0; first < blocks; first += most) {
    words[0] = static_cast<int32_t>(first);
    if (!isPushed)
      if (llvm::Error error = toError(
              posenc_vulkan_upload(wordBuffer.get(), 0, words.data(), 4)))
        return error;
    uint32_t grid[3] = {static_cast<uint32_t>(std::min(most, blocks - first)),
                        1, 1};
    if (llvm::Error error = toError(posenc_vulkan_run(
            entry.kernel.get(), grid, buffers.data(), buffers.size(),
            words.data(), isPushed ? 4 * words.size() : 0)))
      return error;
  }
  return llvm::Error::success();
}

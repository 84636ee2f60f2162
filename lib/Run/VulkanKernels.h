//===- VulkanKernels.h - a module's kernels on a device ---------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_RUN_VULKANKERNELS_H
#define POSENC_LIB_RUN_VULKANKERNELS_H

#include "posenc/runtime/vulkan.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

#include <memory>

namespace mlir::posenc {

template <auto destroy> struct Destroyer {
  template <typename T> void operator()(T *object) const { destroy(object); }
};
using VulkanDevice =
    std::unique_ptr<posenc_vulkan_device, Destroyer<posenc_vulkan_close>>;
using VulkanBuffer = std::unique_ptr<posenc_vulkan_buffer,
                                     Destroyer<posenc_vulkan_destroy_buffer>>;
using VulkanModule = std::unique_ptr<posenc_vulkan_module,
                                     Destroyer<posenc_vulkan_destroy_module>>;
using VulkanKernel = std::unique_ptr<posenc_vulkan_kernel,
                                     Destroyer<posenc_vulkan_destroy_kernel>>;

/// What a call of the runtime has returned.
llvm::Error toError(posenc_status status);

llvm::Expected<VulkanBuffer> createBuffer(const VulkanDevice &device,
                                          ArrayRef<char> bytes);

/// The kernels of a module, as a launch of a `gpu.func` passes its parameters.
class VulkanKernels {
public:
  /// Lowers a module of launches and kernels to the latter in SPIR-V.
  llvm::Error create(ModuleOp module, uint32_t deviceNumber);

  const VulkanDevice &getDevice() const { return device; }

  /// Finds the buffer that has an address, and how many bytes into it that is.
  using FindBuffer = llvm::function_ref<
      llvm::Expected<std::pair<posenc_vulkan_buffer *, uint64_t>>(uint64_t)>;
  /// Launches kernel `name` and waits. `parameters` are pointers to 64 bits
  /// each: five for a memref, the first of them its address and the third its
  /// offset, one for a number.
  llvm::Error launch(StringRef name, int64_t blocks, void *const *parameters,
                     FindBuffer findBuffer);
  uint32_t mostBlocks = 0;

private:
  /// Compiled by the driver when it is launched first.
  struct Entry {
    FunctionType type;
    VulkanKernel kernel;
  };
  llvm::Error compile(StringRef name, Entry &entry);

  VulkanDevice device;
  VulkanModule code;
  VulkanBuffer constants;
  llvm::StringMap<Entry> kernels;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_RUN_VULKANKERNELS_H

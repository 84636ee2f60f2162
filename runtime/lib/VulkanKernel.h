//===- VulkanKernel.h - Modules and kernels on a Vulkan device --*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RUNTIME_LIB_VULKANKERNEL_H
#define POSENC_RUNTIME_LIB_VULKANKERNEL_H

#include "SpirvModule.h"
#include "VulkanBuffer.h"

namespace posenc::runtime {

/// UNSUPPORTED with a text if a device lacks what the module asks for.
posenc_status checkCapabilities(const SpirvModule &spirv,
                                const posenc_vulkan_facts &facts);

/// A module whose form has been checked, and that the device can run.
class VulkanModule {
public:
  explicit VulkanModule(std::shared_ptr<VulkanDevice> device)
      : device(std::move(device)) {}
  ~VulkanModule();
  VulkanModule(const VulkanModule &) = delete;
  VulkanModule &operator=(const VulkanModule &) = delete;

  posenc_status create(const uint32_t *words, size_t numWords);

  const std::shared_ptr<VulkanDevice> device;
  SpirvModule spirv;
  VkShaderModule handle = VK_NULL_HANDLE;
};

/// An entry point as a pipeline, with the descriptor set of its runs.
class VulkanKernel {
public:
  explicit VulkanKernel(std::shared_ptr<VulkanDevice> device)
      : device(std::move(device)) {}
  ~VulkanKernel();
  VulkanKernel(const VulkanKernel &) = delete;
  VulkanKernel &operator=(const VulkanKernel &) = delete;

  posenc_status create(const VulkanModule &module, const char *name,
                       uint32_t numBuffers, uint32_t pushBytes);
  posenc_status run(const uint32_t grid[3],
                    posenc_vulkan_buffer *const *buffers, uint32_t numBuffers,
                    const void *push, uint32_t pushBytes);

  const std::shared_ptr<VulkanDevice> device;

private:
  posenc_status check(const SpirvKernel &kernel) const;
  posenc_status createLayout();
  posenc_status createDescriptors();

  uint32_t numBuffers = 0, pushBytes = 0;
  VkDescriptorSetLayout setLayout = VK_NULL_HANDLE;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  VkPipeline pipeline = VK_NULL_HANDLE;
  VkDescriptorPool pool = VK_NULL_HANDLE;
  VkDescriptorSet set = VK_NULL_HANDLE;
};

} // namespace posenc::runtime

struct posenc_vulkan_module {
  explicit posenc_vulkan_module(
      std::shared_ptr<posenc::runtime::VulkanDevice> device)
      : module(std::move(device)) {}
  posenc::runtime::VulkanModule module;
};

struct posenc_vulkan_kernel {
  explicit posenc_vulkan_kernel(
      std::shared_ptr<posenc::runtime::VulkanDevice> device)
      : kernel(std::move(device)) {}
  posenc::runtime::VulkanKernel kernel;
};

#endif // POSENC_RUNTIME_LIB_VULKANKERNEL_H

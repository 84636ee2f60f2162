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

/// UNSUPPORTED if the device lacks a capability that the module declares.
posenc_status checkCapabilities(const SpirvModule &spirv,
                                const posenc_vulkan_facts &facts);

/// A SPIR-V module on a device.
class VulkanModule {
public:
  explicit VulkanModule(std::shared_ptr<VulkanDevice> device)
      : device(std::move(device)) {}
  ~VulkanModule();
  VulkanModule(const VulkanModule &) = delete;
  VulkanModule &operator=(const VulkanModule &) = delete;

  /// Errors: BAD_LIBRARY (not SPIR-V, or damaged), UNSUPPORTED (a version or
  /// capability that the device lacks), OUT_OF_MEMORY. The driver trusts the
  /// module, so it must come from a VulkanCode whose checksum was verified.
  posenc_status create(const uint32_t *words, size_t numWords);

  const std::shared_ptr<VulkanDevice> device;
  SpirvModule spirv;
  VkShaderModule handle = VK_NULL_HANDLE;
};

/// The compute pipeline of an entry point, and the descriptor set of its runs.
class VulkanKernel {
public:
  explicit VulkanKernel(std::shared_ptr<VulkanDevice> device)
      : device(std::move(device)) {}
  ~VulkanKernel();
  VulkanKernel(const VulkanKernel &) = delete;
  VulkanKernel &operator=(const VulkanKernel &) = delete;

  /// Compiles the entry point `name`, which takes `numBuffers` storage buffers
  /// (descriptor set 0, bindings from 0 on) and `pushBytes` of push constants.
  /// Errors: NOT_FOUND (no such entry point), UNSUPPORTED (beyond a limit of
  /// the device), OUT_OF_MEMORY, KERNEL_FAILED (the driver cannot compile it).
  posenc_status create(const VulkanModule &module, const char *name,
                       uint32_t numBuffers, uint32_t pushBytes);

  /// Runs `numWorkgroups` workgroups along x, at most max_grid[0], and waits
  /// until they are done. `buffers` are as many buffers of this device as the
  /// kernel takes, `push` its push constants. Errors: OUT_OF_MEMORY,
  /// KERNEL_FAILED (the device was lost).
  posenc_status run(uint32_t numWorkgroups,
                    posenc_vulkan_buffer *const *buffers, const void *push);

  const std::shared_ptr<VulkanDevice> device;

private:
  posenc_status checkLimits(const SpirvModule::Kernel &kernel) const;
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

#endif // POSENC_RUNTIME_LIB_VULKANKERNEL_H

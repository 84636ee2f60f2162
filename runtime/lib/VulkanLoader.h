//===- VulkanLoader.h - The Vulkan loader, opened at run time ---*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RUNTIME_LIB_VULKANLOADER_H
#define POSENC_RUNTIME_LIB_VULKANLOADER_H

#include "posenc/runtime/types.h"

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#include <memory>
#include <vector>

namespace posenc::runtime {

/// The functions of Vulkan that the runtime calls: those that
/// vkGetInstanceProcAddr and those that vkGetDeviceProcAddr looks up.
#define POSENC_VULKAN_INSTANCE_FUNCTIONS(F)                                    \
  F(DestroyInstance)                                                           \
  F(EnumeratePhysicalDevices)                                                  \
  F(GetPhysicalDeviceProperties)                                               \
  F(GetPhysicalDeviceProperties2)                                              \
  F(GetPhysicalDeviceFeatures2)                                                \
  F(GetPhysicalDeviceMemoryProperties)                                         \
  F(GetPhysicalDeviceQueueFamilyProperties)                                    \
  F(CreateDevice)                                                              \
  F(GetDeviceProcAddr)

#define POSENC_VULKAN_DEVICE_FUNCTIONS(F)                                      \
  F(DestroyDevice)                                                             \
  F(GetDeviceQueue)                                                            \
  F(CreateCommandPool)                                                         \
  F(DestroyCommandPool)                                                        \
  F(ResetCommandPool)                                                          \
  F(AllocateCommandBuffers)                                                    \
  F(CreateFence)                                                               \
  F(DestroyFence)                                                              \
  F(ResetFences)                                                               \
  F(WaitForFences)                                                             \
  F(CreateBuffer)                                                              \
  F(DestroyBuffer)                                                             \
  F(GetBufferMemoryRequirements)                                               \
  F(AllocateMemory)                                                            \
  F(FreeMemory)                                                                \
  F(BindBufferMemory)                                                          \
  F(MapMemory)                                                                 \
  F(FlushMappedMemoryRanges)                                                   \
  F(InvalidateMappedMemoryRanges)                                              \
  F(CreateShaderModule)                                                        \
  F(DestroyShaderModule)                                                       \
  F(CreateDescriptorSetLayout)                                                 \
  F(DestroyDescriptorSetLayout)                                                \
  F(CreatePipelineLayout)                                                      \
  F(DestroyPipelineLayout)                                                     \
  F(CreateComputePipelines)                                                    \
  F(DestroyPipeline)                                                           \
  F(CreateDescriptorPool)                                                      \
  F(DestroyDescriptorPool)                                                     \
  F(AllocateDescriptorSets)                                                    \
  F(UpdateDescriptorSets)                                                      \
  F(BeginCommandBuffer)                                                        \
  F(EndCommandBuffer)                                                          \
  F(CmdBindPipeline)                                                           \
  F(CmdBindDescriptorSets)                                                     \
  F(CmdPushConstants)                                                          \
  F(CmdDispatch)                                                               \
  F(CmdCopyBuffer)                                                             \
  F(CmdPipelineBarrier)                                                        \
  F(QueueSubmit)

/// An instance and its functions, called as `instance.CreateDevice()`.
struct VulkanInstance {
  VulkanInstance() = default;
  ~VulkanInstance();
  VulkanInstance(const VulkanInstance &) = delete;
  VulkanInstance &operator=(const VulkanInstance &) = delete;

  /// Opens the Vulkan loader `library` and creates an instance. Its handle is
  /// null on a system without a driver. Errors: NOT_FOUND (no loader),
  /// UNSUPPORTED (older than Vulkan 1.1, or it cannot be initialized),
  /// OUT_OF_MEMORY.
  static posenc_status create(const char *library,
                              std::shared_ptr<VulkanInstance> &out);

  /// Sets `devices` to the devices of all drivers.
  posenc_status listDevices(std::vector<VkPhysicalDevice> &devices) const;

  VkInstance handle = VK_NULL_HANDLE;
#define POSENC_MEMBER(NAME) PFN_vk##NAME NAME = nullptr;
  POSENC_VULKAN_INSTANCE_FUNCTIONS(POSENC_MEMBER)
#undef POSENC_MEMBER
};

/// The functions of a device, called as `vk.CreateBuffer()`.
struct VulkanFunctions {
  posenc_status load(const VulkanInstance &instance, VkDevice device);

#define POSENC_MEMBER(NAME) PFN_vk##NAME NAME = nullptr;
  POSENC_VULKAN_DEVICE_FUNCTIONS(POSENC_MEMBER)
#undef POSENC_MEMBER
};

/// The file name of the system's Vulkan loader.
extern const char *const vulkanLibrary;

/// Sets the error text for the Vulkan function `what`, which returned `result`,
/// and returns the status for it.
posenc_status failVulkan(VkResult result, const char *what);

} // namespace posenc::runtime

#endif // POSENC_RUNTIME_LIB_VULKANLOADER_H

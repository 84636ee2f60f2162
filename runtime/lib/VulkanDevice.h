//===- VulkanDevice.h - An open Vulkan device -------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RUNTIME_LIB_VULKANDEVICE_H
#define POSENC_RUNTIME_LIB_VULKANDEVICE_H

#include "VulkanLoader.h"
#include "posenc/runtime/vulkan.h"

#include <mutex>

namespace posenc::runtime {

/// An open device with one queue and one command buffer, which all calls share.
/// Buffers, modules and kernels of the device keep it alive.
class VulkanDevice {
public:
  VulkanDevice() = default;
  ~VulkanDevice();
  VulkanDevice(const VulkanDevice &) = delete;
  VulkanDevice &operator=(const VulkanDevice &) = delete;

  static posenc_status open(uint32_t index, std::shared_ptr<VulkanDevice> &out);

  const posenc_vulkan_facts &facts() const { return known; }

  /// Sets `index` to a memory type in the bit mask `types` that has all flags
  /// of `wanted`. Returns false if there is none.
  bool findMemoryType(uint32_t types, VkMemoryPropertyFlags wanted,
                      uint32_t &index) const;
  bool isCoherent(uint32_t memoryType) const;

  /// Records commands with `record(VkCommandBuffer)`, runs them and waits until
  /// they are done. Calls of several threads run one after the other.
  template <typename Record> posenc_status run(Record record) {
    std::lock_guard<std::mutex> lock(mutex);
    if (posenc_status status = begin())
      return status;
    record(commands);
    return submit();
  }

  std::shared_ptr<VulkanInstance> instance;
  VkDevice handle = VK_NULL_HANDLE;
  VulkanFunctions vk;
  /// Guards the queue, the command buffer and the fence.
  std::mutex mutex;

private:
  posenc_status create(VkPhysicalDevice physical);
  posenc_status begin();
  posenc_status submit();

  posenc_vulkan_facts known{};
  VkPhysicalDeviceMemoryProperties memory{};
  VkQueue queue = VK_NULL_HANDLE;
  VkCommandPool pool = VK_NULL_HANDLE;
  VkCommandBuffer commands = VK_NULL_HANDLE;
  VkFence fence = VK_NULL_HANDLE;
  bool lost = false;
};

} // namespace posenc::runtime

struct posenc_vulkan_device {
  std::shared_ptr<posenc::runtime::VulkanDevice> device;
};

#endif // POSENC_RUNTIME_LIB_VULKANDEVICE_H

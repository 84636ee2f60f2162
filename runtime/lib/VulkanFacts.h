//===- VulkanFacts.h - What a Vulkan device can do --------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RUNTIME_LIB_VULKANFACTS_H
#define POSENC_RUNTIME_LIB_VULKANFACTS_H

#include "VulkanLoader.h"
#include "posenc/runtime/vulkan.h"

namespace posenc::runtime {

/// The features that kernels may use, as a chain that Vulkan reads and writes.
struct VulkanFeatures {
  VulkanFeatures();
  VulkanFeatures(const VulkanFeatures &) = delete;
  VulkanFeatures &operator=(const VulkanFeatures &) = delete;

  /// Asks for what a device of version `apiVersion` has, and drops all else.
  void query(const VulkanInstance &instance, VkPhysicalDevice physical,
             uint32_t apiVersion);

  VkPhysicalDeviceFeatures2 core{};
  VkPhysicalDevice16BitStorageFeatures storage16{};
  VkPhysicalDevice8BitStorageFeatures storage8{};
  VkPhysicalDeviceShaderFloat16Int8Features small{};
};

/// UNSUPPORTED for a device older than Vulkan 1.1.
posenc_status getVulkanFacts(const VulkanInstance &instance,
                             VkPhysicalDevice physical,
                             VulkanFeatures &features,
                             posenc_vulkan_facts &facts);

/// The device at `index`; NOT_FOUND with a text that says how many there are.
posenc_status findVulkanDevice(const VulkanInstance &instance, uint32_t index,
                               VkPhysicalDevice &out);

} // namespace posenc::runtime

#endif // POSENC_RUNTIME_LIB_VULKANFACTS_H

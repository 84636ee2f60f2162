//===- VulkanFacts.h - The properties of a Vulkan device --------*- C++ -*-===//
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

/// The features that kernels may use, as the pNext chain of Vulkan structs that
/// queries a device and enables them.
struct VulkanFeatures {
  VulkanFeatures();
  VulkanFeatures(const VulkanFeatures &) = delete;
  VulkanFeatures &operator=(const VulkanFeatures &) = delete;

  /// Queries the features of a device of Vulkan version `apiVersion`, and
  /// clears those that kernels do not use.
  void query(const VulkanInstance &instance, VkPhysicalDevice physical,
             uint32_t apiVersion);

  VkPhysicalDeviceFeatures2 core{};
  VkPhysicalDevice16BitStorageFeatures storage16{};
  VkPhysicalDevice8BitStorageFeatures storage8{};
  VkPhysicalDeviceShaderFloat16Int8Features small{};
};

/// Queries the features and the properties of a device. Errors: UNSUPPORTED
/// (the device is older than Vulkan 1.1).
posenc_status getVulkanFacts(const VulkanInstance &instance,
                             VkPhysicalDevice physical,
                             VulkanFeatures &features,
                             posenc_vulkan_facts &facts);

/// Finds the device at `index`. Errors: NOT_FOUND, OUT_OF_MEMORY.
posenc_status findVulkanDevice(const VulkanInstance &instance, uint32_t index,
                               VkPhysicalDevice &out);

} // namespace posenc::runtime

#endif // POSENC_RUNTIME_LIB_VULKANFACTS_H

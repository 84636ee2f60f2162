//===- VulkanFacts.cpp - The properties of a Vulkan device ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VulkanFacts.h"
#include "Error.h"

#include <algorithm>
#include <cstdio>

using namespace posenc::runtime;

VulkanFeatures::VulkanFeatures() {
  core.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  core.pNext = &storage16;
  storage16.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES;
  storage8.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES;
  storage8.pNext = &small;
  small.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES;
}

void VulkanFeatures::query(const VulkanInstance &instance,
                           VkPhysicalDevice physical, uint32_t apiVersion) {
  // The last two structs are extensions in Vulkan 1.1.
  storage16.pNext = apiVersion >= VK_API_VERSION_1_2 ? &storage8 : nullptr;
  instance.GetPhysicalDeviceFeatures2(physical, &core);
  VkPhysicalDeviceFeatures used{};
  used.shaderInt16 = core.features.shaderInt16;
  used.shaderInt64 = core.features.shaderInt64;
  used.shaderFloat64 = core.features.shaderFloat64;
  core.features = used;
  storage16.uniformAndStorageBuffer16BitAccess = VK_FALSE;
  storage16.storagePushConstant16 = VK_FALSE;
  storage16.storageInputOutput16 = VK_FALSE;
  storage8.uniformAndStorageBuffer8BitAccess = VK_FALSE;
  storage8.storagePushConstant8 = VK_FALSE;
}

static bool isFlagSet(VkBool32 flag) { return flag != VK_FALSE; }

posenc_status posenc::runtime::getVulkanFacts(const VulkanInstance &instance,
                                              VkPhysicalDevice physical,
                                              VulkanFeatures &features,
                                              posenc_vulkan_facts &facts) {
  VkPhysicalDeviceProperties early{};
  instance.GetPhysicalDeviceProperties(physical, &early);
  if (early.apiVersion < VK_API_VERSION_1_1)
    return fail(POSENC_UNSUPPORTED, "%s: older than Vulkan 1.1",
                early.deviceName);
  VkPhysicalDeviceMaintenance3Properties allocation{};
  allocation.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES;
  VkPhysicalDeviceSubgroupProperties subgroup{};
  subgroup.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES;
  subgroup.pNext = &allocation;
  VkPhysicalDeviceProperties2 properties{};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  properties.pNext = &subgroup;
  instance.GetPhysicalDeviceProperties2(physical, &properties);
  features.query(instance, physical, early.apiVersion);

  const VkPhysicalDeviceLimits &limits = properties.properties.limits;
  facts = {};
  std::snprintf(facts.name, sizeof(facts.name), "%s",
                properties.properties.deviceName);
  facts.is_software =
      properties.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
  facts.int8 = isFlagSet(features.small.shaderInt8);
  facts.int16 = isFlagSet(features.core.features.shaderInt16);
  facts.int64 = isFlagSet(features.core.features.shaderInt64);
  facts.float16 = isFlagSet(features.small.shaderFloat16);
  facts.float64 = isFlagSet(features.core.features.shaderFloat64);
  facts.storage8 = isFlagSet(features.storage8.storageBuffer8BitAccess);
  facts.storage16 = isFlagSet(features.storage16.storageBuffer16BitAccess);
  facts.subgroup_size = subgroup.subgroupSize;
  for (int dim = 0; dim < 3; ++dim) {
    facts.max_workgroup_size[dim] = limits.maxComputeWorkGroupSize[dim];
    facts.max_grid[dim] = limits.maxComputeWorkGroupCount[dim];
  }
  facts.max_workgroup_invocations = limits.maxComputeWorkGroupInvocations;
  facts.max_workgroup_bytes = limits.maxComputeSharedMemorySize;
  facts.max_buffers = std::min({limits.maxPerStageDescriptorStorageBuffers,
                                limits.maxDescriptorSetStorageBuffers,
                                limits.maxPerStageResources});
  facts.max_push_bytes = limits.maxPushConstantsSize;
  facts.max_buffer_bytes =
      std::min<uint64_t>(limits.maxStorageBufferRange,
                         allocation.maxMemoryAllocationSize) &
      ~uint64_t(15);
  return POSENC_OK;
}

posenc_status posenc::runtime::findVulkanDevice(const VulkanInstance &instance,
                                                uint32_t index,
                                                VkPhysicalDevice &out) {
  std::vector<VkPhysicalDevice> devices;
  if (posenc_status status = instance.listDevices(devices))
    return status;
  if (devices.empty())
    return fail(POSENC_NOT_FOUND, "no Vulkan device");
  if (index >= devices.size())
    return fail(POSENC_NOT_FOUND, "no Vulkan device %u: the last is %zu", index,
                devices.size() - 1);
  out = devices[index];
  return POSENC_OK;
}

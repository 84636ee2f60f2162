//===- VulkanDevice.cpp - An open Vulkan device ---------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VulkanDevice.h"
#include "Error.h"
#include "VulkanFacts.h"

using namespace posenc::runtime;

posenc_status VulkanDevice::open(uint32_t index,
                                 std::shared_ptr<VulkanDevice> &out) {
  auto device = std::make_shared<VulkanDevice>();
  if (posenc_status status =
          VulkanInstance::create(vulkanLibrary, device->instance))
    return status;
  VkPhysicalDevice physical;
  if (posenc_status status =
          findVulkanDevice(*device->instance, index, physical))
    return status;
  if (posenc_status status = device->create(physical))
    return status;
  out = std::move(device);
  return POSENC_OK;
}

posenc_status VulkanDevice::create(VkPhysicalDevice physical) {
  VulkanFeatures features;
  if (posenc_status status =
          getVulkanFacts(*instance, physical, features, known))
    return status;
  instance->GetPhysicalDeviceMemoryProperties(physical, &memory);

  uint32_t count = 0;
  instance->GetPhysicalDeviceQueueFamilyProperties(physical, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  instance->GetPhysicalDeviceQueueFamilyProperties(physical, &count,
                                                   families.data());
  uint32_t family = 0;
  while (family < count &&
         !(families[family].queueFlags & VK_QUEUE_COMPUTE_BIT))
    ++family;
  if (family == count)
    return fail(POSENC_UNSUPPORTED, "%s: cannot compute", known.name);

  float priority = 1;
  VkDeviceQueueCreateInfo queueInfo{};
  queueInfo.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queueInfo.queueFamilyIndex = family;
  queueInfo.queueCount = 1;
  queueInfo.pQueuePriorities = &priority;
  VkDeviceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.pNext = &features.core;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queueInfo;
  VkResult result = instance->CreateDevice(physical, &info, nullptr, &handle);
  if (result != VK_SUCCESS) {
    handle = VK_NULL_HANDLE;
    return failVulkan(result, "vkCreateDevice");
  }
  if (posenc_status status = vk.load(*instance, handle))
    return status;
  vk.GetDeviceQueue(handle, family, 0, &queue);

  VkCommandPoolCreateInfo poolInfo{};
  poolInfo.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  poolInfo.flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT;
  poolInfo.queueFamilyIndex = family;
  result = vk.CreateCommandPool(handle, &poolInfo, nullptr, &pool);
  if (result != VK_SUCCESS)
    return failVulkan(result, "vkCreateCommandPool");
  VkCommandBufferAllocateInfo bufferInfo{};
  bufferInfo.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  bufferInfo.commandPool = pool;
  bufferInfo.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  bufferInfo.commandBufferCount = 1;
  result = vk.AllocateCommandBuffers(handle, &bufferInfo, &commands);
  if (result != VK_SUCCESS)
    return failVulkan(result, "vkAllocateCommandBuffers");
  VkFenceCreateInfo fenceInfo{};
  fenceInfo.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
  result = vk.CreateFence(handle, &fenceInfo, nullptr, &fence);
  return result == VK_SUCCESS ? POSENC_OK : failVulkan(result, "vkCreateFence");
}

VulkanDevice::~VulkanDevice() {
  if (!handle)
    return;
  // Null handles are allowed. A function is missing if create() failed.
  if (vk.DestroyFence)
    vk.DestroyFence(handle, fence, nullptr);
  if (vk.DestroyCommandPool)
    vk.DestroyCommandPool(handle, pool, nullptr);
  if (vk.DestroyDevice)
    vk.DestroyDevice(handle, nullptr);
}

bool VulkanDevice::findMemoryType(uint32_t types, VkMemoryPropertyFlags wanted,
                                  uint32_t &index) const {
  for (uint32_t i = 0; i < memory.memoryTypeCount; ++i)
    if (types >> i & 1 &&
        (memory.memoryTypes[i].propertyFlags & wanted) == wanted) {
      index = i;
      return true;
    }
  return false;
}

bool VulkanDevice::isCoherent(uint32_t memoryType) const {
  return memory.memoryTypes[memoryType].propertyFlags &
         VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
}

posenc_status VulkanDevice::begin() {
  if (lost)
    return fail(POSENC_KERNEL_FAILED, "%s: the device was lost", known.name);
  VkResult result = vk.ResetCommandPool(handle, pool, 0);
  if (result != VK_SUCCESS)
    return failVulkan(result, "vkResetCommandPool");
  VkCommandBufferBeginInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  info.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  result = vk.BeginCommandBuffer(commands, &info);
  return result == VK_SUCCESS ? POSENC_OK
                              : failVulkan(result, "vkBeginCommandBuffer");
}

posenc_status VulkanDevice::submit() {
  // A submission makes the writes of the host visible to the device. The
  // barrier makes the writes of the device visible to the host and to later
  // submissions.
  VkMemoryBarrier barrier{};
  barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  barrier.srcAccessMask =
      VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  barrier.dstAccessMask =
      VK_ACCESS_HOST_READ_BIT | VK_ACCESS_HOST_WRITE_BIT |
      VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT |
      VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  VkPipelineStageFlags device =
      VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
  vk.CmdPipelineBarrier(commands, device, device | VK_PIPELINE_STAGE_HOST_BIT,
                        0, 1, &barrier, 0, nullptr, 0, nullptr);
  VkResult result = vk.EndCommandBuffer(commands);
  if (result != VK_SUCCESS)
    return failVulkan(result, "vkEndCommandBuffer");
  VkSubmitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  info.commandBufferCount = 1;
  info.pCommandBuffers = &commands;
  const char *what = "vkQueueSubmit";
  result = vk.QueueSubmit(queue, 1, &info, fence);
  if (result == VK_SUCCESS) {
    what = "vkWaitForFences";
    result = vk.WaitForFences(handle, 1, &fence, VK_TRUE, UINT64_MAX);
    // The commands may still run, so nothing else may use the command buffer.
    if (result != VK_SUCCESS)
      lost = true;
  }
  if (result == VK_SUCCESS) {
    what = "vkResetFences";
    result = vk.ResetFences(handle, 1, &fence);
  }
  lost |= result == VK_ERROR_DEVICE_LOST;
  return result == VK_SUCCESS ? POSENC_OK : failVulkan(result, what);
}

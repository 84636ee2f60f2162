//===- VulkanBuffer.cpp - Memory of a Vulkan device -----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VulkanBuffer.h"
#include "Error.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>

using namespace posenc::runtime;

/// Kernels access buffers in vectors of this size, in bytes.
static constexpr uint64_t alignment = 16;

/// The size of the host buffer for copies to and from unmapped memory.
static constexpr uint64_t stagingBytes = uint64_t(16) << 20;

posenc_status VulkanBuffer::allocate(const VkMemoryRequirements &requirements,
                                     VkMemoryPropertyFlags flags, bool &found) {
  found =
      device->findMemoryType(requirements.memoryTypeBits, flags, memoryType);
  if (!found)
    return POSENC_OK;
  VkMemoryAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  info.allocationSize = requirements.size;
  info.memoryTypeIndex = memoryType;
  VkResult result =
      device->vk.AllocateMemory(device->handle, &info, nullptr, &memory);
  if (result == VK_SUCCESS)
    return POSENC_OK;
  found = false;
  memory = VK_NULL_HANDLE;
  return failVulkan(result, "vkAllocateMemory");
}

posenc_status VulkanBuffer::create(uint64_t bytes, Location location) {
  const posenc_vulkan_facts &facts = device->facts();
  if (bytes > facts.max_buffer_bytes)
    return fail(POSENC_UNSUPPORTED,
                "%s: no buffer of %" PRIu64 " bytes: the largest has %" PRIu64,
                facts.name, bytes, facts.max_buffer_bytes);
  VkBufferCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.size =
      std::max(alignment, (bytes + alignment - 1) / alignment * alignment);
  info.usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
               VK_BUFFER_USAGE_TRANSFER_DST_BIT |
               VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
  VkResult result =
      device->vk.CreateBuffer(device->handle, &info, nullptr, &handle);
  if (result != VK_SUCCESS) {
    handle = VK_NULL_HANDLE;
    return failVulkan(result, "vkCreateBuffer");
  }
  VkMemoryRequirements requirements{};
  device->vk.GetBufferMemoryRequirements(device->handle, handle, &requirements);

  // In order of preference. The part of device memory that the host can access
  // may be small; a buffer that does not fit there is not mapped.
  constexpr VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
                                  visible = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
  static constexpr VkMemoryPropertyFlags onDevice[] = {local | visible, local,
                                                       visible},
                                         onHost[] = {visible};
  const VkMemoryPropertyFlags *begin = onDevice, *end = std::end(onDevice);
  if (location == Location::Host) {
    begin = onHost;
    end = std::end(onHost);
  }
  posenc_status status = POSENC_OK;
  VkMemoryPropertyFlags flags = 0;
  for (bool found = false; begin != end && !found; ++begin) {
    flags = *begin;
    status = allocate(requirements, flags, found);
  }
  if (!memory)
    return status ? status
                  : fail(POSENC_UNSUPPORTED, "%s: no memory for buffers",
                         facts.name);
  result = device->vk.BindBufferMemory(device->handle, handle, memory, 0);
  if (result != VK_SUCCESS)
    return failVulkan(result, "vkBindBufferMemory");
  if (flags & visible && location != Location::DeviceUnmapped) {
    void *address = nullptr;
    result = device->vk.MapMemory(device->handle, memory, 0, VK_WHOLE_SIZE, 0,
                                  &address);
    if (result != VK_SUCCESS)
      return failVulkan(result, "vkMapMemory");
    mapped = static_cast<char *>(address);
  }
  size = bytes;
  return POSENC_OK;
}

VulkanBuffer::~VulkanBuffer() {
  // vkFreeMemory() also unmaps.
  device->vk.DestroyBuffer(device->handle, handle, nullptr);
  device->vk.FreeMemory(device->handle, memory, nullptr);
}

posenc_status VulkanBuffer::checkRange(uint64_t offset, const void *data,
                                       uint64_t bytes) const {
  if (!data && bytes)
    return fail(POSENC_INVALID_ARGUMENT, "data is NULL");
  if (offset > size || bytes > size - offset)
    return fail(POSENC_INVALID_ARGUMENT,
                "%" PRIu64 " bytes at %" PRIu64
                " are beyond the end of a buffer of %" PRIu64,
                bytes, offset, size);
  return POSENC_OK;
}

static VkMappedMemoryRange getWholeRange(VkDeviceMemory memory) {
  VkMappedMemoryRange range{};
  range.sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE;
  range.memory = memory;
  range.size = VK_WHOLE_SIZE;
  return range;
}

posenc_status VulkanBuffer::flush() const {
  if (device->isCoherent(memoryType))
    return POSENC_OK;
  VkMappedMemoryRange range = getWholeRange(memory);
  VkResult result =
      device->vk.FlushMappedMemoryRanges(device->handle, 1, &range);
  return result == VK_SUCCESS ? POSENC_OK
                              : failVulkan(result, "vkFlushMappedMemoryRanges");
}

posenc_status VulkanBuffer::invalidate() const {
  if (device->isCoherent(memoryType))
    return POSENC_OK;
  VkMappedMemoryRange range = getWholeRange(memory);
  VkResult result =
      device->vk.InvalidateMappedMemoryRanges(device->handle, 1, &range);
  return result == VK_SUCCESS
             ? POSENC_OK
             : failVulkan(result, "vkInvalidateMappedMemoryRanges");
}

static posenc_status copy(VulkanDevice &device, VkBuffer from,
                          uint64_t fromOffset, VkBuffer to, uint64_t toOffset,
                          uint64_t bytes) {
  return device.run([&](VkCommandBuffer commands) {
    VkBufferCopy region{fromOffset, toOffset, bytes};
    device.vk.CmdCopyBuffer(commands, from, to, 1, &region);
  });
}

posenc_status VulkanBuffer::upload(uint64_t offset, const void *data,
                                   uint64_t bytes) {
  if (posenc_status status = checkRange(offset, data, bytes))
    return status;
  if (!bytes)
    return POSENC_OK;
  if (mapped) {
    std::memcpy(mapped + offset, data, bytes);
    return flush();
  }
  VulkanBuffer staging(device);
  if (posenc_status status =
          staging.create(std::min(bytes, stagingBytes), Location::Host))
    return status;
  auto from = static_cast<const char *>(data);
  for (uint64_t done = 0; done < bytes; done += staging.size) {
    uint64_t count = std::min(staging.size, bytes - done);
    if (posenc_status status = staging.upload(0, from + done, count))
      return status;
    if (posenc_status status =
            copy(*device, staging.handle, 0, handle, offset + done, count))
      return status;
  }
  return POSENC_OK;
}

posenc_status VulkanBuffer::download(uint64_t offset, void *data,
                                     uint64_t bytes) const {
  if (posenc_status status = checkRange(offset, data, bytes))
    return status;
  if (!bytes)
    return POSENC_OK;
  if (mapped) {
    if (posenc_status status = invalidate())
      return status;
    std::memcpy(data, mapped + offset, bytes);
    return POSENC_OK;
  }
  VulkanBuffer staging(device);
  if (posenc_status status =
          staging.create(std::min(bytes, stagingBytes), Location::Host))
    return status;
  auto to = static_cast<char *>(data);
  for (uint64_t done = 0; done < bytes; done += staging.size) {
    uint64_t count = std::min(staging.size, bytes - done);
    if (posenc_status status =
            copy(*device, handle, offset + done, staging.handle, 0, count))
      return status;
    if (posenc_status status = staging.download(0, to + done, count))
      return status;
  }
  return POSENC_OK;
}

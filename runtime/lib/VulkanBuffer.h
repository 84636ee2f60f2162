//===- VulkanBuffer.h - Memory of a Vulkan device ---------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RUNTIME_LIB_VULKANBUFFER_H
#define POSENC_RUNTIME_LIB_VULKANBUFFER_H

#include "VulkanDevice.h"

namespace posenc::runtime {

/// A storage buffer and its memory, which is mapped if the host can access it.
class VulkanBuffer {
public:
  explicit VulkanBuffer(std::shared_ptr<VulkanDevice> device)
      : device(std::move(device)) {}
  ~VulkanBuffer();
  VulkanBuffer(const VulkanBuffer &) = delete;
  VulkanBuffer &operator=(const VulkanBuffer &) = delete;

  enum class Location {
    Device,         ///< device memory, mapped if possible
    DeviceUnmapped, ///< device memory that is never mapped, for tests
    Host,           ///< host memory, for copies to and from unmapped memory
  };
  /// Errors: UNSUPPORTED (more than max_buffer_bytes), OUT_OF_MEMORY.
  posenc_status create(uint64_t bytes, Location location = Location::Device);

  /// Copies `bytes` bytes, `offset` bytes after the beginning of the buffer.
  posenc_status upload(uint64_t offset, const void *data, uint64_t bytes);
  posenc_status download(uint64_t offset, void *data, uint64_t bytes) const;

  const std::shared_ptr<VulkanDevice> device;
  VkBuffer handle = VK_NULL_HANDLE;
  uint64_t size = 0; ///< in bytes, as requested; the allocation is rounded up

private:
  posenc_status allocate(const VkMemoryRequirements &requirements,
                         VkMemoryPropertyFlags flags, bool &found);
  posenc_status checkRange(uint64_t offset, const void *data,
                           uint64_t bytes) const;
  posenc_status flush() const;
  posenc_status invalidate() const;

  VkDeviceMemory memory = VK_NULL_HANDLE;
  uint32_t memoryType = 0;
  char *mapped = nullptr;
};

} // namespace posenc::runtime

struct posenc_vulkan_buffer {
  explicit posenc_vulkan_buffer(
      std::shared_ptr<posenc::runtime::VulkanDevice> device)
      : buffer(std::move(device)) {}
  posenc::runtime::VulkanBuffer buffer;
};

#endif // POSENC_RUNTIME_LIB_VULKANBUFFER_H

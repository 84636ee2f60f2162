//===- Vulkan.cpp - The C interface to Vulkan devices ---------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Error.h"
#include "VulkanBuffer.h"
#include "VulkanFacts.h"

using namespace posenc::runtime;

static posenc_status failNull(const char *name) {
  return fail(POSENC_INVALID_ARGUMENT, "%s is NULL", name);
}

posenc_status posenc_vulkan_count_devices(uint32_t *count) {
  if (!count)
    return failNull("count");
  *count = 0;
  return guarded([&] {
    std::shared_ptr<VulkanInstance> instance;
    if (posenc_status status = VulkanInstance::create(vulkanLibrary, instance))
      return status;
    std::vector<VkPhysicalDevice> devices;
    if (posenc_status status = instance->listDevices(devices))
      return status;
    *count = static_cast<uint32_t>(devices.size());
    return static_cast<posenc_status>(POSENC_OK);
  });
}

posenc_status posenc_vulkan_query_device(uint32_t index,
                                         posenc_vulkan_facts *facts) {
  if (!facts)
    return failNull("facts");
  *facts = {};
  return guarded([&] {
    std::shared_ptr<VulkanInstance> instance;
    if (posenc_status status = VulkanInstance::create(vulkanLibrary, instance))
      return status;
    VkPhysicalDevice physical;
    if (posenc_status status = findVulkanDevice(*instance, index, physical))
      return status;
    VulkanFeatures features;
    return getVulkanFacts(*instance, physical, features, *facts);
  });
}

posenc_status posenc_vulkan_open(uint32_t index, posenc_vulkan_device **out) {
  if (!out)
    return failNull("out");
  *out = nullptr;
  return guarded([&] {
    auto opened = std::make_unique<posenc_vulkan_device>();
    posenc_status status = VulkanDevice::open(index, opened->device);
    if (!status)
      *out = opened.release();
    return status;
  });
}

void posenc_vulkan_close(posenc_vulkan_device *device) { delete device; }

const posenc_vulkan_facts *
posenc_vulkan_device_facts(const posenc_vulkan_device *device) {
  return device ? &device->device->facts() : nullptr;
}

posenc_status posenc_vulkan_create_buffer(posenc_vulkan_device *device,
                                          uint64_t bytes,
                                          posenc_vulkan_buffer **out) {
  if (!out)
    return failNull("out");
  *out = nullptr;
  if (!device)
    return failNull("device");
  return guarded([&] {
    auto created = std::make_unique<posenc_vulkan_buffer>(device->device);
    posenc_status status = created->buffer.create(bytes);
    if (!status)
      *out = created.release();
    return status;
  });
}

void posenc_vulkan_destroy_buffer(posenc_vulkan_buffer *buffer) {
  delete buffer;
}

uint64_t posenc_vulkan_buffer_bytes(const posenc_vulkan_buffer *buffer) {
  return buffer ? buffer->buffer.size : 0;
}

posenc_status posenc_vulkan_upload(posenc_vulkan_buffer *buffer,
                                   uint64_t offset, const void *data,
                                   uint64_t bytes) {
  if (!buffer)
    return failNull("buffer");
  return guarded([&] { return buffer->buffer.upload(offset, data, bytes); });
}

posenc_status posenc_vulkan_download(const posenc_vulkan_buffer *buffer,
                                     uint64_t offset, void *data,
                                     uint64_t bytes) {
  if (!buffer)
    return failNull("buffer");
  return guarded([&] { return buffer->buffer.download(offset, data, bytes); });
}

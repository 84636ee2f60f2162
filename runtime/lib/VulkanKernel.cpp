//===- VulkanKernel.cpp - Kernels on a Vulkan device ------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VulkanKernel.h"
#include "Error.h"

#include <cinttypes>

using namespace posenc::runtime;

/// That a kernel keeps to its interface and to the limits of the device: a
/// driver does not look.
posenc_status VulkanKernel::check(const SpirvKernel &kernel) const {
  const posenc_vulkan_facts &facts = device->facts();
  const char *name = kernel.name.c_str();
  for (uint32_t binding : kernel.bindings)
    if (binding >= numBuffers)
      return fail(POSENC_INVALID_ARGUMENT,
                  "%s uses the buffer at binding %u, but there are %u", name,
                  binding, numBuffers);
  if (kernel.pushBytes > pushBytes)
    return fail(POSENC_INVALID_ARGUMENT,
                "%s has %" PRIu64 " bytes of push constants, not %u", name,
                kernel.pushBytes, pushBytes);
  if (pushBytes % 4)
    return fail(POSENC_INVALID_ARGUMENT,
                "%u bytes of push constants: not a multiple of 4", pushBytes);
  if (numBuffers > facts.max_buffers)
    return fail(POSENC_UNSUPPORTED, "%s: no kernel of %u buffers: at most %u",
                facts.name, numBuffers, facts.max_buffers);
  if (pushBytes > facts.max_push_bytes)
    return fail(POSENC_UNSUPPORTED,
                "%s: no %u bytes of push constants: at "
                "most %u",
                facts.name, pushBytes, facts.max_push_bytes);
  if (kernel.workgroupBytes > facts.max_workgroup_bytes)
    return fail(POSENC_UNSUPPORTED,
                "%s: %s shares %" PRIu64 " bytes in a workgroup: at most %u",
                facts.name, name, kernel.workgroupBytes,
                facts.max_workgroup_bytes);
  uint64_t invocations = 1;
  for (int dim = 0; dim < 3; ++dim) {
    uint32_t size = kernel.workgroup[dim];
    // Each is limited first, so that the product cannot overflow.
    invocations *= size;
    if (!size || size > facts.max_workgroup_size[dim] ||
        invocations > facts.max_workgroup_invocations)
      return fail(POSENC_UNSUPPORTED,
                  "%s: %s has a workgroup of %ux%ux%u: too large", facts.name,
                  name, kernel.workgroup[0], kernel.workgroup[1],
                  kernel.workgroup[2]);
  }
  return POSENC_OK;
}

posenc_status VulkanKernel::createLayout() {
  std::vector<VkDescriptorSetLayoutBinding> bindings(numBuffers);
  for (uint32_t i = 0; i < numBuffers; ++i)
    bindings[i] = {i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1,
                   VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
  VkDescriptorSetLayoutCreateInfo setInfo{};
  setInfo.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
  setInfo.bindingCount = numBuffers;
  setInfo.pBindings = bindings.data();
  VkResult result = device->vk.CreateDescriptorSetLayout(
      device->handle, &setInfo, nullptr, &setLayout);
  if (result != VK_SUCCESS)
    return failVulkan(result, "vkCreateDescriptorSetLayout");

  VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, pushBytes};
  VkPipelineLayoutCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  info.setLayoutCount = 1;
  info.pSetLayouts = &setLayout;
  info.pushConstantRangeCount = pushBytes ? 1 : 0;
  info.pPushConstantRanges = &range;
  result =
      device->vk.CreatePipelineLayout(device->handle, &info, nullptr, &layout);
  return result == VK_SUCCESS ? POSENC_OK
                              : failVulkan(result, "vkCreatePipelineLayout");
}

posenc_status VulkanKernel::createDescriptors() {
  // A pool of nothing is not allowed.
  VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                            numBuffers ? numBuffers : 1};
  VkDescriptorPoolCreateInfo poolInfo{};
  poolInfo.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
  poolInfo.maxSets = 1;
  poolInfo.poolSizeCount = 1;
  poolInfo.pPoolSizes = &size;
  VkResult result = device->vk.CreateDescriptorPool(device->handle, &poolInfo,
                                                    nullptr, &pool);
  if (result != VK_SUCCESS)
    return failVulkan(result, "vkCreateDescriptorPool");
  VkDescriptorSetAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
  info.descriptorPool = pool;
  info.descriptorSetCount = 1;
  info.pSetLayouts = &setLayout;
  result = device->vk.AllocateDescriptorSets(device->handle, &info, &set);
  return result == VK_SUCCESS ? POSENC_OK
                              : failVulkan(result, "vkAllocateDescriptorSets");
}

posenc_status VulkanKernel::create(const VulkanModule &module, const char *name,
                                   uint32_t buffers, uint32_t push) {
  numBuffers = buffers;
  pushBytes = push;
  const SpirvKernel *found = nullptr;
  std::string known;
  for (const SpirvKernel &kernel : module.spirv.kernels) {
    if (kernel.name == name)
      found = &kernel;
    known += (known.empty() ? "" : ", ") + kernel.name;
  }
  if (!found)
    return fail(POSENC_NOT_FOUND, "no kernel %s; there are: %s", name,
                known.c_str());
  if (posenc_status status = check(*found))
    return status;
  if (posenc_status status = createLayout())
    return status;
  VkComputePipelineCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module.handle;
  info.stage.pName = name;
  info.layout = layout;
  VkResult result = device->vk.CreateComputePipelines(
      device->handle, VK_NULL_HANDLE, 1, &info, nullptr, &pipeline);
  if (result != VK_SUCCESS)
    return failVulkan(result, "vkCreateComputePipelines");
  return createDescriptors();
}

VulkanKernel::~VulkanKernel() {
  device->vk.DestroyDescriptorPool(device->handle, pool, nullptr);
  device->vk.DestroyPipeline(device->handle, pipeline, nullptr);
  device->vk.DestroyPipelineLayout(device->handle, layout, nullptr);
  device->vk.DestroyDescriptorSetLayout(device->handle, setLayout, nullptr);
}

posenc_status VulkanKernel::run(const uint32_t grid[3],
                                posenc_vulkan_buffer *const *buffers,
                                uint32_t count, const void *push,
                                uint32_t bytes) {
  if (count != numBuffers || bytes != pushBytes)
    return fail(POSENC_INVALID_ARGUMENT,
                "the kernel takes %u buffers and %u bytes of push constants, "
                "not %u and %u",
                numBuffers, pushBytes, count, bytes);
  std::vector<VkDescriptorBufferInfo> infos(count);
  std::vector<VkWriteDescriptorSet> writes(count);
  for (uint32_t i = 0; i < count; ++i) {
    if (!buffers[i] || buffers[i]->buffer.device != device)
      return fail(POSENC_INVALID_ARGUMENT, "buffer %u is %s", i,
                  buffers[i] ? "of another device" : "NULL");
    infos[i] = {buffers[i]->buffer.handle, 0, VK_WHOLE_SIZE};
    writes[i] = {};
    writes[i].sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
    writes[i].dstBinding = i;
    writes[i].descriptorCount = 1;
    writes[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    writes[i].pBufferInfo = &infos[i];
  }
  const posenc_vulkan_facts &facts = device->facts();
  for (int dim = 0; dim < 3; ++dim)
    if (grid[dim] > facts.max_grid[dim])
      return fail(POSENC_UNSUPPORTED,
                  "%s: no grid of %ux%ux%u: at most %ux%ux%u", facts.name,
                  grid[0], grid[1], grid[2], facts.max_grid[0],
                  facts.max_grid[1], facts.max_grid[2]);
  if (!grid[0] || !grid[1] || !grid[2])
    return POSENC_OK;
  // The set is written in turn as well: another thread may use the kernel.
  return device->run([&](VkCommandBuffer commands) {
    for (VkWriteDescriptorSet &write : writes)
      write.dstSet = set;
    device->vk.UpdateDescriptorSets(device->handle, count, writes.data(), 0,
                                    nullptr);
    device->vk.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                               pipeline);
    device->vk.CmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                                     layout, 0, 1, &set, 0, nullptr);
    if (bytes)
      device->vk.CmdPushConstants(commands, layout, VK_SHADER_STAGE_COMPUTE_BIT,
                                  0, bytes, push);
    device->vk.CmdDispatch(commands, grid[0], grid[1], grid[2]);
  });
}

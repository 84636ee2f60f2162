//===- VulkanKernel.cpp - Kernels on a Vulkan device ----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VulkanKernel.h"
#include "Error.h"

using namespace posenc::runtime;

posenc_status
VulkanKernel::checkLimits(const SpirvModule::Kernel &kernel) const {
  const posenc_vulkan_facts &facts = device->facts();
  if (numBuffers > facts.max_buffers)
    return fail(POSENC_UNSUPPORTED,
                "%s: %s takes %u buffers; the device allows %u", facts.name,
                kernel.name.c_str(), numBuffers, facts.max_buffers);
  const uint32_t *size = kernel.workgroupSize;
  uint64_t invocations = 1;
  for (int dim = 0; dim < 3; ++dim) {
    // Each factor is limited first, so that the product cannot overflow.
    invocations *= size[dim];
    if (!size[dim] || size[dim] > facts.max_workgroup_size[dim] ||
        invocations > facts.max_workgroup_invocations)
      return fail(POSENC_UNSUPPORTED,
                  "%s: %s has a workgroup of %ux%ux%u; the device allows %u "
                  "invocations",
                  facts.name, kernel.name.c_str(), size[0], size[1], size[2],
                  facts.max_workgroup_invocations);
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
  // Vulkan does not allow an empty pool.
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
  const SpirvModule::Kernel *found = nullptr;
  std::string known;
  for (const SpirvModule::Kernel &kernel : module.spirv.kernels) {
    if (kernel.name == name)
      found = &kernel;
    known += (known.empty() ? "" : ", ") + kernel.name;
  }
  if (!found)
    return fail(POSENC_NOT_FOUND, "no kernel %s; the module has %s", name,
                known.c_str());
  if (posenc_status status = checkLimits(*found))
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

posenc_status VulkanKernel::run(uint32_t numWorkgroups,
                                posenc_vulkan_buffer *const *buffers,
                                const void *push) {
  std::vector<VkDescriptorBufferInfo> infos(numBuffers);
  std::vector<VkWriteDescriptorSet> writes(numBuffers);
  for (uint32_t i = 0; i < numBuffers; ++i) {
    infos[i] = {buffers[i]->buffer.handle, 0, VK_WHOLE_SIZE};
    writes[i] = {};
    writes[i].sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
    writes[i].dstBinding = i;
    writes[i].descriptorCount = 1;
    writes[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    writes[i].pBufferInfo = &infos[i];
  }
  if (!numWorkgroups)
    return POSENC_OK;
  // Threads share the descriptor set, so it is written under the same lock.
  return device->run([&](VkCommandBuffer commands) {
    for (VkWriteDescriptorSet &write : writes)
      write.dstSet = set;
    device->vk.UpdateDescriptorSets(device->handle, numBuffers, writes.data(),
                                    0, nullptr);
    device->vk.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                               pipeline);
    device->vk.CmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                                     layout, 0, 1, &set, 0, nullptr);
    if (pushBytes)
      device->vk.CmdPushConstants(commands, layout, VK_SHADER_STAGE_COMPUTE_BIT,
                                  0, pushBytes, push);
    device->vk.CmdDispatch(commands, numWorkgroups, 1, 1);
  });
}

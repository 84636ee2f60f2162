//===- VulkanModule.cpp - Modules on a Vulkan device ----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Error.h"
#include "VulkanKernel.h"

using namespace posenc::runtime;

namespace {
/// A SPIR-V capability and the flag of devices that support it; null if all
/// devices do.
struct Capability {
  uint32_t number;
  const char *name;
  int32_t posenc_vulkan_facts::*fact;
};
} // namespace

static constexpr Capability capabilities[] = {
    {0, "Matrix", nullptr},
    {1, "Shader", nullptr},
    {9, "Float16", &posenc_vulkan_facts::float16},
    {10, "Float64", &posenc_vulkan_facts::float64},
    {11, "Int64", &posenc_vulkan_facts::int64},
    {22, "Int16", &posenc_vulkan_facts::int16},
    {39, "Int8", &posenc_vulkan_facts::int8},
    {4433, "StorageBuffer16BitAccess", &posenc_vulkan_facts::storage16},
    {4448, "StorageBuffer8BitAccess", &posenc_vulkan_facts::storage8},
};

static posenc_status checkCapability(uint32_t number,
                                     const posenc_vulkan_facts &facts) {
  for (const Capability &capability : capabilities) {
    if (capability.number != number)
      continue;
    if (!capability.fact || facts.*capability.fact)
      return POSENC_OK;
    return fail(POSENC_UNSUPPORTED, "%s: has no %s, which the module needs",
                facts.name, capability.name);
  }
  return fail(POSENC_UNSUPPORTED,
              "the module needs the unknown SPIR-V capability %u", number);
}

posenc_status
posenc::runtime::checkCapabilities(const SpirvModule &spirv,
                                   const posenc_vulkan_facts &facts) {
  for (uint32_t number : spirv.capabilities)
    if (posenc_status status = checkCapability(number, facts))
      return status;
  return POSENC_OK;
}

posenc_status VulkanModule::create(const uint32_t *words, size_t numWords) {
  std::string error;
  if (!spirv.read(words, numWords, error))
    return fail(POSENC_BAD_LIBRARY, "%s", error.c_str());
  // The versions that Vulkan 1.1 must support.
  if (spirv.version < 0x10000 || spirv.version > 0x10300)
    return fail(POSENC_UNSUPPORTED, "SPIR-V of the version %u.%u",
                spirv.version >> 16, spirv.version >> 8 & 0xff);
  if (posenc_status status = checkCapabilities(spirv, device->facts()))
    return status;
  VkShaderModuleCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  info.codeSize = numWords * sizeof(uint32_t);
  info.pCode = words;
  VkResult result =
      device->vk.CreateShaderModule(device->handle, &info, nullptr, &handle);
  if (result == VK_SUCCESS)
    return POSENC_OK;
  handle = VK_NULL_HANDLE;
  return failVulkan(result, "vkCreateShaderModule");
}

VulkanModule::~VulkanModule() {
  device->vk.DestroyShaderModule(device->handle, handle, nullptr);
}

//===- VulkanLoader.cpp - The Vulkan loader, opened at run time -----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VulkanLoader.h"
#include "Error.h"

#include <dlfcn.h>

using namespace posenc::runtime;

const char *const posenc::runtime::vulkanLibrary = "libvulkan.so.1";

static const char *describe(VkResult result) {
  switch (result) {
  case VK_ERROR_OUT_OF_HOST_MEMORY:
    return "out of host memory";
  case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    return "out of device memory";
  case VK_ERROR_INITIALIZATION_FAILED:
    return "initialization failed";
  case VK_ERROR_DEVICE_LOST:
    return "the device was lost";
  case VK_ERROR_MEMORY_MAP_FAILED:
    return "memory cannot be mapped";
  case VK_ERROR_FEATURE_NOT_PRESENT:
    return "a feature is not present";
  case VK_ERROR_INCOMPATIBLE_DRIVER:
    return "no driver was found";
  case VK_ERROR_TOO_MANY_OBJECTS:
    return "too many objects";
  default:
    return "an unexpected error";
  }
}

posenc_status posenc::runtime::failVulkan(VkResult result, const char *what) {
  posenc_status status = POSENC_KERNEL_FAILED;
  if (result == VK_ERROR_OUT_OF_HOST_MEMORY ||
      result == VK_ERROR_OUT_OF_DEVICE_MEMORY ||
      result == VK_ERROR_MEMORY_MAP_FAILED ||
      result == VK_ERROR_TOO_MANY_OBJECTS)
    status = POSENC_OUT_OF_MEMORY;
  else if (result == VK_ERROR_INITIALIZATION_FAILED ||
           result == VK_ERROR_FEATURE_NOT_PRESENT ||
           result == VK_ERROR_INCOMPATIBLE_DRIVER)
    status = POSENC_UNSUPPORTED;
  return fail(status, "Vulkan: %s: %s (%d)", what, describe(result),
              static_cast<int>(result));
}

posenc_status VulkanInstance::create(const char *library,
                                     std::shared_ptr<VulkanInstance> &out) {
  // Never closed, since drivers leave threads and thread-local data behind.
  void *loader = ::dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!loader) {
    const char *reason = ::dlerror();
    return fail(POSENC_NOT_FOUND, "no Vulkan loader: %s",
                reason ? reason : library);
  }
  auto getProcAddr = reinterpret_cast<PFN_vkGetInstanceProcAddr>(
      ::dlsym(loader, "vkGetInstanceProcAddr"));
  PFN_vkCreateInstance createInstance = nullptr;
  PFN_vkEnumerateInstanceVersion enumerateVersion = nullptr;
  if (getProcAddr) {
    createInstance = reinterpret_cast<PFN_vkCreateInstance>(
        getProcAddr(nullptr, "vkCreateInstance"));
    enumerateVersion = reinterpret_cast<PFN_vkEnumerateInstanceVersion>(
        getProcAddr(nullptr, "vkEnumerateInstanceVersion"));
  }
  // Vulkan 1.0 has no vkEnumerateInstanceVersion().
  if (!createInstance || !enumerateVersion)
    return fail(POSENC_UNSUPPORTED, "%s: not a loader of Vulkan 1.1 or later",
                library);

  VkApplicationInfo application{};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.pApplicationName = "posenc";
  application.apiVersion = VK_API_VERSION_1_2;
  VkInstanceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  info.pApplicationInfo = &application;
  auto instance = std::make_shared<VulkanInstance>();
  VkResult result = createInstance(&info, nullptr, &instance->handle);
  if (result != VK_SUCCESS)
    instance->handle = VK_NULL_HANDLE;
  // The loader found no driver: there are no devices.
  if (result == VK_ERROR_INCOMPATIBLE_DRIVER) {
    out = std::move(instance);
    return POSENC_OK;
  }
  if (result != VK_SUCCESS)
    return failVulkan(result, "vkCreateInstance");
#define POSENC_LOAD(NAME)                                                      \
  instance->NAME = reinterpret_cast<PFN_vk##NAME>(                             \
      getProcAddr(instance->handle, "vk" #NAME));                              \
  if (!instance->NAME)                                                         \
    return fail(POSENC_UNSUPPORTED, "Vulkan: no function vk" #NAME);
  POSENC_VULKAN_INSTANCE_FUNCTIONS(POSENC_LOAD)
#undef POSENC_LOAD
  out = std::move(instance);
  return POSENC_OK;
}

VulkanInstance::~VulkanInstance() {
  if (handle && DestroyInstance)
    DestroyInstance(handle, nullptr);
}

posenc_status
VulkanInstance::listDevices(std::vector<VkPhysicalDevice> &devices) const {
  if (!handle)
    return POSENC_OK;
  VkResult result = VK_INCOMPLETE;
  // VK_INCOMPLETE: a device appeared between the two calls.
  while (result == VK_INCOMPLETE) {
    uint32_t count = 0;
    result = EnumeratePhysicalDevices(handle, &count, nullptr);
    if (result == VK_SUCCESS && count) {
      devices.resize(count);
      result = EnumeratePhysicalDevices(handle, &count, devices.data());
    }
    devices.resize(count);
  }
  // The loader found drivers, but none of them works: there are no devices.
  if (result == VK_ERROR_INITIALIZATION_FAILED) {
    devices.clear();
    return POSENC_OK;
  }
  return result == VK_SUCCESS
             ? POSENC_OK
             : failVulkan(result, "vkEnumeratePhysicalDevices");
}

posenc_status VulkanFunctions::load(const VulkanInstance &instance,
                                    VkDevice device) {
#define POSENC_LOAD(NAME)                                                      \
  NAME = reinterpret_cast<PFN_vk##NAME>(                                       \
      instance.GetDeviceProcAddr(device, "vk" #NAME));                         \
  if (!NAME)                                                                   \
    return fail(POSENC_UNSUPPORTED, "Vulkan: no function vk" #NAME);
  POSENC_VULKAN_DEVICE_FUNCTIONS(POSENC_LOAD)
#undef POSENC_LOAD
  return POSENC_OK;
}

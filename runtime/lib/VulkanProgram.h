//===- VulkanProgram.h - A library's functions on Vulkan --------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The host's part of a function runs on the CPU, as it does for any GPU, on
// addresses that are none: they have the number of a buffer in their upper
// bits. A launch finds its buffers by them.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RUNTIME_LIB_VULKANPROGRAM_H
#define POSENC_RUNTIME_LIB_VULKANPROGRAM_H

#include "posenc/runtime/vulkan.h"

#include <map>
#include <memory>
#include <mutex>

namespace posenc::runtime {

class VulkanDevice;

/// What a function's entry for Vulkan calls; as `struct Launcher` of the
/// kernel support library (runtime/kernel/Vulkan.h).
struct VulkanLauncher {
  void *context;
  int32_t (*launch)(void *context, const char *kernel, int64_t blocks,
                    void *const *parameters);
  uint64_t (*allocate)(void *context, int64_t bytes);
};

/// The programs of a library, by the number of the device.
class VulkanPrograms {
public:
  VulkanPrograms();
  ~VulkanPrograms();
  posenc_status get(const posenc_library &library, uint32_t device,
                    posenc_vulkan_program *&out) const;

private:
  mutable std::mutex mutex;
  mutable std::map<uint32_t, std::unique_ptr<posenc_vulkan_program>> programs;
};

} // namespace posenc::runtime

#endif // POSENC_RUNTIME_LIB_VULKANPROGRAM_H

//===- VulkanProgram.h - The programs of a library on Vulkan ----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The host code of a function, which allocates memory and launches kernels,
// runs on the CPU, as for any GPU. Vulkan buffers have no addresses, so host
// code gets made-up ones, with the number of a buffer in the upper bits and an
// offset in the lower bits. The launch of a kernel translates them back to
// buffers.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RUNTIME_LIB_VULKANPROGRAM_H
#define POSENC_RUNTIME_LIB_VULKANPROGRAM_H

#include "posenc/kernel/VulkanCode.h"
#include "posenc/runtime/vulkan.h"

#include <map>
#include <memory>
#include <mutex>

namespace posenc::runtime {

class VulkanDevice;

/// The programs of a library, by the index of the device.
class VulkanPrograms {
public:
  VulkanPrograms();
  ~VulkanPrograms();
  /// Returns the program for `device`; the first call opens the device.
  posenc_status get(const posenc_library &library, uint32_t device,
                    posenc_vulkan_program *&out) const;

private:
  mutable std::mutex mutex;
  mutable std::map<uint32_t, std::unique_ptr<posenc_vulkan_program>> programs;
};

} // namespace posenc::runtime

#endif // POSENC_RUNTIME_LIB_VULKANPROGRAM_H

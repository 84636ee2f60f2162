//===- VulkanLaunch.h - A call of a function on Vulkan ----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RUNTIME_LIB_VULKANLAUNCH_H
#define POSENC_RUNTIME_LIB_VULKANLAUNCH_H

#include "VulkanCode.h"
#include "VulkanKernel.h"
#include "VulkanProgram.h"

struct posenc_vulkan_program {
  posenc_vulkan_program(std::shared_ptr<posenc::runtime::VulkanDevice> device,
                        const posenc_library &library);
  posenc_status create();

  /// Compiled by the driver when it is launched first.
  struct Kernel {
    std::string arguments;
    bool isPushed = false;
    std::unique_ptr<posenc::runtime::VulkanKernel> kernel;
  };
  posenc_status compile(const char *name, Kernel &entry);

  const posenc_library &library;
  posenc::runtime::VulkanModule module;
  const std::shared_ptr<posenc::runtime::VulkanDevice> device;
  /// What tensors without elements have.
  std::unique_ptr<posenc_vulkan_buffer> nothing;
  std::unique_ptr<posenc_vulkan_buffer> constants;
  std::map<std::string, Kernel> kernels;
  posenc_vulkan_observer observer = nullptr;
  void *observed = nullptr;
  uint32_t mostBlocks = 0;
  /// Calls take turns.
  std::mutex mutex;
};

namespace posenc::runtime {

/// A call on the way.
class VulkanLaunch {
public:
  explicit VulkanLaunch(posenc_vulkan_program &program) : program(program) {}

  posenc_status call(const posenc_function &function,
                     const posenc_vulkan_argument *arguments, size_t count);

private:
  posenc_status addBuffer(posenc_vulkan_buffer *buffer, uint64_t &address);
  posenc_status addIndex(const char *kernel, int64_t value);
  posenc_status addParameters(const char *kernel, const std::string &letters,
                              void *const *parameters);
  posenc_status launch(const char *kernel, int64_t blocks,
                       void *const *parameters);

  posenc_status allocate(int64_t bytes, uint64_t &address);

  posenc_vulkan_program &program;
  /// What the function asks for until it ends.
  std::vector<std::unique_ptr<posenc_vulkan_buffer>> own;
  /// Of all tensors; their addresses have the numbers, from 1 on.
  std::vector<posenc_vulkan_buffer *> buffers;
  /// Of the launch on the way.
  std::vector<posenc_vulkan_buffer *> given;
  std::vector<uint32_t> words;
  /// What a launch has failed with.
  posenc_status status = POSENC_OK;
};

} // namespace posenc::runtime

#endif // POSENC_RUNTIME_LIB_VULKANLAUNCH_H

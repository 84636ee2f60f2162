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

  /// The driver compiles a kernel before its first launch.
  struct Kernel {
    std::string arguments; ///< as in VulkanCode
    bool usesPush = false; ///< whether its words fit in push constants
    std::unique_ptr<posenc::runtime::VulkanKernel> kernel;
  };
  posenc_status compile(const char *name, Kernel &entry);

  const posenc_library &library;
  posenc::runtime::VulkanModule module;
  const std::shared_ptr<posenc::runtime::VulkanDevice> device;
  /// Bound for tensors without elements, since a binding needs a buffer.
  std::unique_ptr<posenc_vulkan_buffer> emptyBuffer;
  std::unique_ptr<posenc_vulkan_buffer> constants; ///< null if there are none
  std::map<std::string, Kernel> kernels;
  posenc_vulkan_observer observer = nullptr;
  void *observerContext = nullptr;
  uint32_t maxBlocks = 0; ///< workgroups per dispatch; 0 for the device's limit
  std::mutex mutex;       ///< held during a call of a function
};

namespace posenc::runtime {

/// One call of a function.
class VulkanLaunch {
public:
  explicit VulkanLaunch(posenc_vulkan_program &program) : program(program) {}

  posenc_status call(const posenc_function &function,
                     const posenc_vulkan_argument *arguments, size_t count);

private:
  /// Sets `address` to the made-up address of the beginning of a buffer.
  posenc_status addBuffer(posenc_vulkan_buffer *buffer, uint64_t &address);
  /// Appends an index, which must fit in 32 bits, to `words`.
  posenc_status addIndex(const char *kernel, int64_t value);
  /// Sets `words` and `kernelBuffers` to the arguments of a kernel.
  posenc_status addParameters(const char *kernel, const std::string &letters,
                              void *const *parameters);
  posenc_status launch(const char *kernel, int64_t blocks,
                       void *const *parameters);

  posenc_status allocate(int64_t bytes, uint64_t &address);

  posenc_vulkan_program &program;
  /// The memory that the function allocates, released at the end of the call.
  std::vector<std::unique_ptr<posenc_vulkan_buffer>> temporaries;
  /// All buffers of the call; addresses have the index in this list plus 1.
  std::vector<posenc_vulkan_buffer *> buffers;
  /// The bindings of the kernel that is being launched.
  std::vector<posenc_vulkan_buffer *> kernelBuffers;
  /// Its other arguments; the first word is the number of the first workgroup.
  std::vector<uint32_t> words;
  /// The status of the last launch or allocation.
  posenc_status status = POSENC_OK;
};

} // namespace posenc::runtime

#endif // POSENC_RUNTIME_LIB_VULKANLAUNCH_H

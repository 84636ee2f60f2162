//===- VulkanCode.h - A library's kernels for Vulkan ------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RUNTIME_LIB_VULKANCODE_H
#define POSENC_RUNTIME_LIB_VULKANCODE_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace posenc::runtime {

/// The kernels for Vulkan of a library, in the format of
/// posenc/kernel/VulkanCode.h. The pointers point into the library.
struct VulkanCode {
  const uint32_t *spirv = nullptr, *constants = nullptr;
  size_t numSpirvWords = 0, numConstants = 0;
  /// The arguments of each kernel, by its name, in the order in which the host
  /// passes them: '1', '2', '4' and '8' are tensors with elements of that many
  /// bytes, 'i' is an index, 'w' a scalar of 32 bits and 'd' one of 64.
  std::map<std::string, std::string> kernels;

  /// Reads `numWords` 32-bit words and verifies their checksum. Returns false
  /// and sets `error` if they are damaged or of another version.
  bool read(const uint32_t *words, size_t numWords, std::string &error);
};

} // namespace posenc::runtime

#endif // POSENC_RUNTIME_LIB_VULKANCODE_H

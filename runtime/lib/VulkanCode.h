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

/// What posenc-compile keeps in a library, in the form that its SpirvCode.h
/// describes. Points into the library.
struct VulkanCode {
  const uint32_t *spirv = nullptr, *constants = nullptr;
  size_t numSpirvWords = 0, numConstants = 0;
  /// The arguments of each kernel as the host passes them: '1', '2', '4' and
  /// '8' are tensors of elements of so many bytes, 'i' is an index, 'w' has 32
  /// bits and 'd' has 64.
  std::map<std::string, std::string> kernels;

  /// Reads words that may be damaged. False with a text where they are.
  bool read(const uint32_t *words, size_t numWords, std::string &error);
};

} // namespace posenc::runtime

#endif // POSENC_RUNTIME_LIB_VULKANCODE_H

//===- SpirvModule.h - The requirements of a SPIR-V module ------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RUNTIME_LIB_SPIRVMODULE_H
#define POSENC_RUNTIME_LIB_SPIRVMODULE_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace posenc::runtime {

/// The capabilities and kernels of a SPIR-V module. VulkanCode
/// does not repeat these facts, and drivers do not check them.
struct SpirvModule {
  /// A compute entry point.
  struct Kernel {
    std::string name;
    uint32_t functionId = 0;
    uint32_t workgroupSize[3] = {1, 1, 1}; ///< invocations per dimension
  };

  uint32_t version = 0; ///< 0x00010300 is 1.3
  std::vector<uint32_t> capabilities;
  std::vector<Kernel> kernels;

  /// Reads the header, the capabilities, the entry points and their LocalSize.
  /// Checks the length of every instruction, but does not validate the module.
  /// Returns false and sets `error` if the module is damaged or has no kernel.
  bool read(const uint32_t *words, size_t numWords, std::string &error);
};

} // namespace posenc::runtime

#endif // POSENC_RUNTIME_LIB_SPIRVMODULE_H

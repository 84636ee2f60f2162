//===- SpirvModule.h - What a SPIR-V module asks for ------------*- C++ -*-===//
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

/// An entry point, and what the functions it reaches use.
struct SpirvKernel {
  std::string name;
  uint32_t workgroup[3] = {1, 1, 1};
  std::vector<uint32_t> bindings; ///< of descriptor set 0
  uint64_t pushBytes = 0;
  uint64_t workgroupBytes = 0; ///< of variables that a workgroup shares
};

struct SpirvModule {
  uint32_t version = 0; ///< 0x00010300 is 1.3
  std::vector<uint32_t> capabilities;
  std::vector<SpirvKernel> kernels;

  /// Reads a module that may be damaged: its frame, and the few instructions
  /// that say what it needs. False with a text where it is not a module of
  /// compute kernels.
  bool read(const uint32_t *words, size_t numWords, std::string &error);
};

} // namespace posenc::runtime

#endif // POSENC_RUNTIME_LIB_SPIRVMODULE_H

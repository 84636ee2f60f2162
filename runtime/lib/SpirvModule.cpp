//===- SpirvModule.cpp - The requirements of a SPIR-V module --------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SpirvModule.h"
#include "Error.h"

#include <algorithm>
#include <cstring>

using namespace posenc::runtime;

namespace {
enum Opcode : uint32_t {
  OpEntryPoint = 15,
  OpExecutionMode = 16,
  OpCapability = 17
};
} // namespace

static constexpr uint32_t spirvMagic = 0x07230203;
static constexpr uint32_t headerWords = 5;
static constexpr uint32_t executionModelGLCompute = 5;
static constexpr uint32_t executionModeLocalSize = 17;

/// The limit of the specification for ids; drivers allocate tables of the size
/// that the header names.
static constexpr uint32_t maxBound = 0x3fffff;

bool SpirvModule::read(const uint32_t *words, size_t numWords,
                       std::string &error) {
  *this = {};
  if (numWords < headerWords || words[0] != spirvMagic)
    return fail(
        error,
        "not SPIR-V: expected a header with the magic number 0x07230203");
  version = words[1];
  if (!words[3] || words[3] > maxBound || words[4])
    return fail(error, "damaged SPIR-V: bad header");
  for (size_t at = headerWords; at < numWords;) {
    uint32_t opcode = words[at] & 0xffff, length = words[at] >> 16;
    if (!length || length > numWords - at)
      return fail(error, "damaged SPIR-V: the instruction at word " +
                             std::to_string(at) + " has a length of " +
                             std::to_string(length));
    const uint32_t *operands = words + at + 1;
    at += length;
    if (opcode == OpCapability && length == 2) {
      capabilities.push_back(operands[0]);
    } else if (opcode == OpEntryPoint && length > 3 &&
               operands[0] == executionModelGLCompute) {
      auto name = reinterpret_cast<const char *>(operands + 2);
      size_t maxLength = 4 * (length - 3);
      kernels.push_back({std::string(name, strnlen(name, maxLength)),
                         operands[1],
                         {1, 1, 1}});
    } else if (opcode == OpExecutionMode && length == 6 &&
               operands[1] == executionModeLocalSize) {
      for (Kernel &kernel : kernels)
        if (kernel.functionId == operands[0])
          std::copy_n(operands + 2, 3, kernel.workgroupSize);
    }
  }
  if (kernels.empty())
    return fail(error, "SPIR-V without a compute kernel");
  return true;
}

//===- VulkanCode.cpp - A library's kernels for Vulkan --------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VulkanCode.h"
#include "posenc/kernel/VulkanCode.h"

using namespace posenc::runtime;

/// The longest name and the maximum number of arguments of a kernel.
static constexpr uint32_t maxKernelName = 4096, maxArguments = 4096;

namespace {
/// Consumes words from the front of a sequence.
class WordReader {
public:
  WordReader(const uint32_t *words, size_t count) : words(words), left(count) {}

  /// Returns the next `count` words, or null if fewer are left.
  const uint32_t *take(uint64_t count) {
    if (count > left)
      return nullptr;
    const uint32_t *result = words;
    words += count;
    left -= count;
    return result;
  }
  bool takeText(uint32_t length, uint32_t maxLength, std::string &out) {
    const uint32_t *at = length <= maxLength ? take((length + 3) / 4) : nullptr;
    if (at)
      out.assign(reinterpret_cast<const char *>(at), length);
    return at;
  }
  bool isEmpty() const { return left == 0; }

private:
  const uint32_t *words;
  size_t left;
};
} // namespace

static bool readKernel(WordReader &reader, VulkanCode &code) {
  const uint32_t *sizes = reader.take(2);
  std::string name, arguments;
  if (!sizes || !reader.takeText(sizes[0], maxKernelName, name) ||
      !reader.takeText(sizes[1], maxArguments, arguments))
    return false;
  // Names are part of error texts and are passed to the driver.
  for (unsigned char c : name)
    if (c < 0x20 || c >= 0x7F)
      return false;
  return !name.empty() &&
         arguments.find_first_not_of("1248iwd") == std::string::npos &&
         code.kernels.emplace(name, arguments).second;
}

bool VulkanCode::read(const uint32_t *words, size_t numWords,
                      std::string &error) {
  error = "the kernels for Vulkan are ";
  WordReader reader(words, numWords);
  const uint32_t *head = reader.take(kVulkanHeaderWords);
  if (!head || head[0] != kVulkanMagic) {
    error += "damaged: expected the magic number 'PSNV'";
    return false;
  }
  if (head[1] != kVulkanVersion) {
    error += "of version " + std::to_string(head[1]) + ", not " +
             std::to_string(kVulkanVersion);
    return false;
  }
  if (head[2] != numWords) {
    error += "damaged: " + std::to_string(numWords) + " words, not " +
             std::to_string(head[2]);
    return false;
  }
  if (posencSumVulkanWords(words + 4, numWords - 4) != head[3]) {
    error += "damaged: their checksum is wrong";
    return false;
  }
  // The counts are checked, too: FNV-1a only detects accidental damage.
  *this = {};
  numSpirvWords = head[4];
  numConstants = head[5];
  spirv = reader.take(numSpirvWords);
  constants = reader.take(numConstants);
  bool isWhole = spirv && constants;
  for (uint32_t i = 0; isWhole && i < head[6]; ++i)
    isWhole = readKernel(reader, *this);
  if (!isWhole || !reader.isEmpty()) {
    error += "malformed";
    return false;
  }
  error.clear();
  return true;
}

//===- VulkanCode.h - kernels for Vulkan and their launcher -------*- C -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_KERNEL_VULKANCODE_H
#define POSENC_KERNEL_VULKANCODE_H

#include <stddef.h>
#include <stdint.h>

/* The kernels for Vulkan of a library, in 32-bit words of the host's byte
 * order:
 *
 *   0  kVulkanMagic, "PSNV"
 *   1  kVulkanVersion
 *   2  the number of words in all
 *   3  posencSumVulkanWords of the words that follow
 *   4  the number of words of the SPIR-V module
 *   5  the number of constants
 *   6  the number of kernels
 *
 * then the SPIR-V module, the constants, and for each kernel: the bytes of its
 * name; the number of its arguments, as the host passes them; the name; the
 * arguments, one byte each: '1', '2', '4' and '8' are tensors with elements of
 * that many bytes, 'i' is an index, 'w' has 32 bits and 'd' has 64. Name and
 * arguments are padded with zeros to a whole word. */
enum { kVulkanMagic = 0x564e5350, kVulkanVersion = 1, kVulkanHeaderWords = 7 };

/* The 32-bit FNV-1a hash, a word at a time. It detects accidental damage
 * only. */
static inline uint32_t posencSumVulkanWords(const uint32_t *words,
                                            size_t count) {
  uint32_t sum = 0x811c9dc5;
  for (size_t i = 0; i < count; ++i)
    sum = (sum ^ words[i]) * 0x01000193;
  return sum;
}

/* The callbacks of the Vulkan entry points, which the runtime provides. A
 * Vulkan buffer has no address, so addresses are numbers that only the
 * launcher can interpret. */
struct PosencVulkanLauncher {
  void *context;
  /* Runs `kernel` in `blocks` workgroups and waits. `parameters` are pointers
   * to 64-bit arguments; a memref has five. Returns 0, or a nonzero status. */
  int32_t (*launch)(void *context, const char *kernel, int64_t blocks,
                    void *const *parameters);
  /* Returns the address of `bytes` bytes, released when the call ends; 0 on
   * failure. */
  uint64_t (*allocate)(void *context, int64_t bytes);
};

#endif

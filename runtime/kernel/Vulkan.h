//===- Vulkan.h - calls on Vulkan devices -------------------------*- C -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_KERNEL_VULKAN_H
#define POSENC_KERNEL_VULKAN_H

#include "Gpu.h"
#include "posenc/kernel/VulkanCode.h"

struct VulkanCall {
  struct GpuCall gpu;
  const struct PosencVulkanLauncher *launcher;
};

static void launchOnVulkan(struct GpuCall *gpu, struct GpuKernel *kernel,
                           const struct GpuLaunch *shape, void **parameters) {
  const struct PosencVulkanLauncher *launcher =
      ((struct VulkanCall *)gpu)->launcher;
  if (launcher->launch(launcher->context, kernel->name, shape->blocks,
                       parameters))
    gpu->code =
        fail(gpu->call, kEntryGpuFailed, "a kernel cannot be launched", NULL);
}

static uint64_t allocateOnVulkan(struct GpuCall *gpu, int64_t bytes) {
  const struct PosencVulkanLauncher *launcher =
      ((struct VulkanCall *)gpu)->launcher;
  uint64_t address = launcher->allocate(launcher->context, bytes);
  if (!address)
    gpu->code =
        fail(gpu->call, kEntryGpuFailed,
             "cannot allocate device memory for an intermediate tensor", NULL);
  return address;
}

int32_t launchVulkan(const struct Description *description,
                     const int64_t *arguments, int64_t *words,
                     const struct PosencVulkanLauncher *launcher, char *message,
                     size_t size) __asm__("posenc.launch_vulkan");

/* As launchTensors, for tensors on a Vulkan device. */
int32_t launchVulkan(const struct Description *description,
                     const int64_t *arguments, int64_t *words,
                     const struct PosencVulkanLauncher *launcher, char *message,
                     size_t size) {
  struct Call call = {description, words,     message, size,
                      0,           kDLVulkan, NULL,    NULL};
  if (message && size > 0)
    *message = 0;
  struct VulkanCall vulkan = {{&call, kEntryOk, /*exactArch=*/0,
                               /*multiprocessors=*/0, launchOnVulkan,
                               /*encode=*/NULL, allocateOnVulkan, 0, 0},
                              launcher};
  int64_t outputBytes;
  int32_t code = bindArguments(&call, arguments);
  if (!code)
    code = checkMemory(&call, &outputBytes);
  if (code || outputBytes == 0)
    return code;
  return runGpu(&vulkan.gpu);
}

#endif

//===- Gpu.h - calls whose kernels run on a GPU -----------------*-- C --*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_KERNEL_GPU_H
#define POSENC_KERNEL_GPU_H

#include "Memory.h"
#include "Tensors.h"

enum { kMaxCudaDevices = 64 };

/* A kernel, and its handle on each CUDA device once it is loaded there. Made by
 * posenc-lower-launches. */
struct GpuKernel {
  const char *name;
  void *handles[kMaxCudaDevices];
};

/* A call on the way, and who launches its kernels. What launches sets the code
 * when it fails; nothing is launched after that. */
struct GpuCall {
  struct Call *call;
  int32_t code;
  void (*launch)(struct GpuCall *gpu, struct GpuKernel *kernel, int64_t blocks,
                 int64_t threads, void **parameters);
  uint64_t (*allocate)(struct GpuCall *gpu, int64_t bytes);
  void (*release)(struct GpuCall *gpu, uint64_t address);
};

void enqueue(struct GpuCall *gpu, struct GpuKernel *kernel, int64_t blocks,
             int64_t threads, void **parameters) __asm__("posenc.enqueue");

/* Called by the kernel's code on the host, for each of its launches. */
void enqueue(struct GpuCall *gpu, struct GpuKernel *kernel, int64_t blocks,
             int64_t threads, void **parameters) {
  if (gpu->code || blocks == 0)
    return;
  if (blocks < 0 || blocks > INT32_MAX) {
    gpu->code =
        fail(gpu->call, kEntrySize, "too many positions for a GPU", NULL);
    return;
  }
  gpu->launch(gpu, kernel, blocks, threads, parameters);
}

uint64_t allocate(struct GpuCall *gpu,
                  int64_t bytes) __asm__("posenc.allocate");
void release(struct GpuCall *gpu, uint64_t address) __asm__("posenc.release");

/* Memory of the device for what is between a function's kernels; 0 if there is
 * none. */
uint64_t allocate(struct GpuCall *gpu, int64_t bytes) {
  return gpu->code || bytes == 0 ? 0 : gpu->allocate(gpu, bytes);
}

/* Gives it back, once the kernels that were launched are done. */
void release(struct GpuCall *gpu, uint64_t address) {
  if (address)
    gpu->release(gpu, address);
}

/* Runs the host's code, which launches what is in the words. */
static int32_t runGpu(struct GpuCall *gpu) {
  gpu->call->description->variants[0].kernel->packed(gpu->call->words,
                                                     (int64_t)gpu, 0);
  return gpu->code;
}

#endif

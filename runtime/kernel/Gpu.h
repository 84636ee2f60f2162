//===- Gpu.h - calls on a GPU -------------------------------------*- C -*-===//
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

/* A kernel and its handle on each CUDA device, NULL until it is loaded there.
 * posenc-lower-launches creates these globals. */
struct GpuKernel {
  const char *name;
  int64_t maxSharedBytes; /* the largest `sharedBytes` of its launches */
  void *handles[kMaxCudaDevices];
};

/* The shape of a launch. */
struct GpuLaunch {
  int64_t blocks, threads;
  int64_t sharedBytes; /* dynamic shared memory of a block */
};

/* A tensor map as the driver encodes it: a tensor and the box of it that one
 * bulk copy moves. */
struct GpuTensorMap {
  uint64_t words[16];
} __attribute__((aligned(64)));

/* What a tensor map is encoded from, with the numbers of the driver. */
struct TensorMapWords {
  int64_t dataType, swizzle, l2Promotion; /* of enumerations of the driver */
  int64_t elementBytes, address;
  int64_t rank;
  /* The sizes, the strides of all dimensions but the first in bytes, and the
   * sizes of the box. The first dimension is the contiguous one. */
  int64_t values[];
};

/* A call in progress and the functions of its driver. A function that fails
 * sets `code`; no kernel is launched after that. */
struct GpuCall {
  struct Call *call;
  int32_t code;
  int32_t exactArch; /* of kernels for one architecture alone, else 0 */
  void (*launch)(struct GpuCall *gpu, struct GpuKernel *kernel,
                 const struct GpuLaunch *shape, void **parameters);
  void (*encode)(
      struct GpuCall *gpu, struct GpuTensorMap *map,
      const struct TensorMapWords *words); /* NULL if not supported */
  uint64_t (*allocate)(struct GpuCall *gpu, int64_t bytes);
  void (*release)(struct GpuCall *gpu, uint64_t address);
};

void enqueue(struct GpuCall *gpu, struct GpuKernel *kernel, int64_t blocks,
             int64_t threads, int64_t sharedBytes,
             void **parameters) __asm__("posenc.enqueue");

/* Called by the host code of a function for each launch of a kernel. */
void enqueue(struct GpuCall *gpu, struct GpuKernel *kernel, int64_t blocks,
             int64_t threads, int64_t sharedBytes, void **parameters) {
  if (gpu->code || blocks == 0)
    return;
  if (blocks < 0 || blocks > INT32_MAX) {
    gpu->code = fail(gpu->call, kEntrySize,
                     "the grid has more than 2^31 - 1 blocks", NULL);
    return;
  }
  struct GpuLaunch shape = {blocks, threads, sharedBytes};
  gpu->launch(gpu, kernel, &shape, parameters);
}

int64_t runsOn(struct GpuCall *gpu, int64_t arch) __asm__("posenc.runs_on");

/* Whether the kernels are those for this architecture alone, such as sm_90a. */
int64_t runsOn(struct GpuCall *gpu, int64_t arch) {
  return !gpu->code && gpu->exactArch == arch;
}

void encodeTensorMap(
    struct GpuCall *gpu, struct GpuTensorMap *map,
    const struct TensorMapWords *words) __asm__("posenc.encode_tensor_map");

/* Encodes a tensor map that a launch passes to its kernel. */
void encodeTensorMap(struct GpuCall *gpu, struct GpuTensorMap *map,
                     const struct TensorMapWords *words) {
  if (!gpu->code)
    gpu->encode(gpu, map, words);
}

uint64_t allocate(struct GpuCall *gpu,
                  int64_t bytes) __asm__("posenc.allocate");
void release(struct GpuCall *gpu, uint64_t address) __asm__("posenc.release");

/* Allocates device memory for an intermediate tensor. Returns 0 for 0 bytes and
 * after an error. */
uint64_t allocate(struct GpuCall *gpu, int64_t bytes) {
  return gpu->code || bytes == 0 ? 0 : gpu->allocate(gpu, bytes);
}

/* Releases the memory after the kernels that have been launched. */
void release(struct GpuCall *gpu, uint64_t address) {
  if (address)
    gpu->release(gpu, address);
}

/* Runs the host code of the function, which launches its kernels. */
static int32_t runGpu(struct GpuCall *gpu) {
  gpu->call->description->variants[0].kernel->packed(gpu->call->words,
                                                     (int64_t)gpu, 0);
  return gpu->code;
}

#endif

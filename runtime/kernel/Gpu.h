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
#include "Workspace.h"

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

/* A call in progress and the functions of its driver, none of which are there
 * if the call only measures the workspace. A function that fails sets `code`;
 * no kernel is launched after that. */
struct GpuCall {
  struct Call *call;
  int32_t code;
  int32_t exactArch;       /* of kernels for one architecture alone, else 0 */
  int32_t multiprocessors; /* of the device; 0 if it is not known */
  void (*launch)(struct GpuCall *gpu, struct GpuKernel *kernel,
                 const struct GpuLaunch *shape, void **parameters);
  void (*encode)(
      struct GpuCall *gpu, struct GpuTensorMap *map,
      const struct TensorMapWords *words); /* NULL if not supported */
  /* Allocates memory until the end of the call; NULL if intermediate tensors
   * are in the workspace. */
  uint64_t (*allocate)(struct GpuCall *gpu, int64_t bytes);
  uint64_t workspace; /* its address, aligned */
  int64_t usedBytes;  /* of the workspace, by the tensors so far */
};

void enqueue(struct GpuCall *gpu, struct GpuKernel *kernel, int64_t blocks,
             int64_t threads, int64_t sharedBytes,
             void **parameters) __asm__("posenc.enqueue");

/* Called by the host code of a function for each launch of a kernel. */
void enqueue(struct GpuCall *gpu, struct GpuKernel *kernel, int64_t blocks,
             int64_t threads, int64_t sharedBytes, void **parameters) {
  if (gpu->code || blocks == 0 || !gpu->launch)
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

int64_t
countMultiprocessors(struct GpuCall *gpu) __asm__("posenc.multiprocessors");

/* The number of the device's multiprocessors, at least 1. */
int64_t countMultiprocessors(struct GpuCall *gpu) {
  return gpu->multiprocessors > 0 ? gpu->multiprocessors : 1;
}

void encodeTensorMap(
    struct GpuCall *gpu, struct GpuTensorMap *map,
    const struct TensorMapWords *words) __asm__("posenc.encode_tensor_map");

/* Encodes a tensor map that a launch passes to its kernel. */
void encodeTensorMap(struct GpuCall *gpu, struct GpuTensorMap *map,
                     const struct TensorMapWords *words) {
  if (!gpu->code && gpu->launch)
    gpu->encode(gpu, map, words);
}

uint64_t allocate(struct GpuCall *gpu,
                  uint64_t bytes) __asm__("posenc.allocate");

/* Returns the address of an intermediate tensor, arbitrary for 0 bytes and
 * after an error. Sizes that overflow are passed as INT64_MAX or more. */
uint64_t allocate(struct GpuCall *gpu, uint64_t bytes) {
  /* Larger than any memory, so that sums do not overflow. */
  const uint64_t max = (uint64_t)1 << 62;
  uint64_t begin = (uint64_t)gpu->usedBytes;
  uint64_t end = begin;
  if (bytes <= max)
    end += (bytes + kDeviceAlignment - 1) / kDeviceAlignment * kDeviceAlignment;
  if (gpu->code)
    return 0;
  if (bytes > max || end > max) {
    gpu->code =
        fail(gpu->call, kEntrySize,
             "the sizes of intermediate tensors exceed 2^62 bytes", NULL);
    return 0;
  }
  if (gpu->allocate)
    return bytes ? gpu->allocate(gpu, (int64_t)bytes) : 0;
  gpu->usedBytes = (int64_t)end;
  return gpu->workspace + begin;
}

/* Runs the host code of the function, which launches its kernels. */
static int32_t runGpu(struct GpuCall *gpu) {
  gpu->call->description->variants[0].kernel->packed(gpu->call->words,
                                                     (int64_t)gpu, 0);
  return gpu->code;
}

/* Sets *bytes to the size of the workspace on the device for the sizes in the
 * words, including padding for the alignment. The host code computes it as in a
 * call, but launches nothing. */
static int32_t measureGpu(struct Call *call, int64_t *bytes) {
  struct GpuCall gpu = {call, kEntryOk, 0, 0, NULL, NULL, NULL, 0, 0};
  int32_t code = runGpu(&gpu);
  *bytes = gpu.usedBytes ? gpu.usedBytes + kDeviceAlignment - 1 : 0;
  return code;
}

/* Checks the workspace of a call and sets its address. */
static int32_t bindDeviceWorkspace(struct GpuCall *gpu) {
  struct Call *call = gpu->call;
  int64_t bytes;
  int32_t code = measureGpu(call, &bytes);
  if (!code)
    code = checkWorkspace(call, bytes);
  uint64_t address =
      (uint64_t)*getLastWord(call->description, call->words, kScratchWord);
  gpu->workspace =
      (address + kDeviceAlignment - 1) / kDeviceAlignment * kDeviceAlignment;
  return code;
}

int64_t
getDeviceWorkspace(const struct Description *description,
                   int64_t *words) __asm__("posenc.get_device_workspace");

/* Returns the bytes of workspace on the device for calls with the sizes in the
 * words, or -1 if calls with these sizes fail. The other words are 0, so
 * relations, in which scalars may be, are left to the call. */
int64_t getDeviceWorkspace(const struct Description *description,
                           int64_t *words) {
  struct Call call = {description, words, NULL, 0, 0, kDLCUDA, NULL, NULL};
  for (int64_t i = 0; i < description->numSizes; ++i)
    if (description->sizes[i] == -1 && words[getSizeWord(description, i)] < 0)
      return -1;
  if (!evaluateTerms(&call) || bindTermSizes(&call))
    return -1;
  int isEmpty = 1;
  for (int64_t i = 0; i < getNumArguments(description); ++i) {
    const struct Argument *argument = &description->arguments[i];
    struct View view;
    if (argument->rank < 0)
      continue;
    setContiguous(description, argument, words);
    if (createView(description, i, words, &view))
      return -1;
    isEmpty &= i < description->numInputs || view.isEmpty;
  }
  /* Such calls do nothing, and the host code may divide by their sizes. */
  if (isEmpty)
    return 0;
  int64_t bytes;
  return measureGpu(&call, &bytes) ? -1 : bytes;
}

#endif

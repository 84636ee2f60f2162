//===- CudaMemory.cpp - Memory of NVIDIA GPUs -----------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/runtime/cuda.h"

#include "CudaDriver.h"
#include "Error.h"

using namespace posenc::runtime;

static uint64_t toAddress(const void *pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}

posenc_status posenc_cuda_allocate(int32_t index, size_t bytes,
                                   void **address) {
  if (!address)
    return fail(POSENC_INVALID_ARGUMENT, "posenc_cuda_allocate: NULL argument");
  *address = nullptr;
  const CudaDriver *driver;
  int device;
  if (posenc_status status = findCudaDevice(index, driver, device))
    return status;
  if (bytes == 0)
    return POSENC_OK;
  CudaContext context(*driver, device);
  if (posenc_status status = context.enter())
    return status;
  uint64_t memory = 0;
  if (int error = driver->allocate(&memory, bytes))
    return failCuda(*driver, error, "cannot allocate device memory");
  // The memory would end with the context.
  context.keep();
  *address = reinterpret_cast<void *>(memory);
  return POSENC_OK;
}

posenc_status posenc_cuda_free(int32_t index, void *address) {
  if (!address)
    return POSENC_OK;
  const CudaDriver *driver;
  int device;
  if (posenc_status status = findCudaDevice(index, driver, device))
    return status;
  CudaContext context(*driver, device);
  if (posenc_status status = context.enter())
    return status;
  if (int error = driver->release(toAddress(address)))
    return failCuda(*driver, error, "cannot free device memory");
  // Ends what posenc_cuda_allocate() keeps.
  driver->releasePrimaryContext(device);
  return POSENC_OK;
}

/// Copies in a direction. `name` is the function's.
static posenc_status copy(const char *name, bool isToDevice, int32_t index,
                          void *to, const void *from, size_t bytes) {
  if (bytes > 0 && (!to || !from))
    return fail(POSENC_INVALID_ARGUMENT, "%s: NULL argument", name);
  const CudaDriver *driver;
  int device;
  if (posenc_status status = findCudaDevice(index, driver, device))
    return status;
  if (bytes == 0)
    return POSENC_OK;
  CudaContext context(*driver, device);
  if (posenc_status status = context.enter())
    return status;
  int error = isToDevice ? driver->copyToDevice(toAddress(to), from, bytes)
                         : driver->copyFromDevice(to, toAddress(from), bytes);
  return error ? failCuda(*driver, error,
                          isToDevice ? "cannot copy to the device"
                                     : "cannot copy from the device")
               : POSENC_OK;
}

posenc_status posenc_cuda_copy_to_device(int32_t device, void *to,
                                         const void *from, size_t bytes) {
  return copy("posenc_cuda_copy_to_device", true, device, to, from, bytes);
}

posenc_status posenc_cuda_copy_to_host(int32_t device, void *to,
                                       const void *from, size_t bytes) {
  return copy("posenc_cuda_copy_to_host", false, device, to, from, bytes);
}

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

#include <optional>

using namespace posenc::runtime;

static uint64_t toAddress(const void *pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}

/// Enters the context of the device at `index`, or only looks for the device if
/// there is nothing to do there.
static posenc_status enterDevice(int32_t index, bool isEmpty,
                                 std::optional<CudaContext> &context) {
  const CudaDriver *driver;
  int device;
  posenc_status status = findCudaDevice(index, driver, device);
  return status || isEmpty ? status : context.emplace(*driver, device).enter();
}

posenc_status posenc_cuda_allocate(int32_t index, size_t bytes,
                                   void **address) {
  if (!address)
    return fail(POSENC_INVALID_ARGUMENT, "posenc_cuda_allocate: NULL argument");
  *address = nullptr;
  std::optional<CudaContext> context;
  posenc_status status = enterDevice(index, bytes == 0, context);
  if (status || !context)
    return status;
  uint64_t memory = 0;
  if (int error = context->driver.allocate(&memory, bytes))
    return failCuda(context->driver, error, "cannot allocate device memory");
  *address = reinterpret_cast<void *>(memory);
  return POSENC_OK;
}

posenc_status posenc_cuda_free(int32_t index, void *address) {
  if (!address)
    return POSENC_OK;
  std::optional<CudaContext> context;
  posenc_status status = enterDevice(index, /*isEmpty=*/false, context);
  if (status || !context)
    return status;
  if (int error = context->driver.release(toAddress(address)))
    return failCuda(context->driver, error, "cannot free device memory");
  return POSENC_OK;
}

/// Copies in a direction. `name` is the function's.
static posenc_status copy(const char *name, bool isToDevice, int32_t index,
                          void *to, const void *from, size_t bytes) {
  if (bytes > 0 && (!to || !from))
    return fail(POSENC_INVALID_ARGUMENT, "%s: NULL argument", name);
  std::optional<CudaContext> context;
  posenc_status status = enterDevice(index, bytes == 0, context);
  if (status || !context)
    return status;
  const CudaDriver &driver = context->driver;
  int error = isToDevice ? driver.copyToDevice(toAddress(to), from, bytes)
                         : driver.copyFromDevice(to, toAddress(from), bytes);
  return error ? failCuda(driver, error,
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

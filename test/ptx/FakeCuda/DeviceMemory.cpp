//===- DeviceMemory.cpp - memory of the fake CUDA driver ------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeCuda.h"

using namespace llvm;
using namespace posenc;
using namespace posenc::fakecuda;

static CUresult freeMemory(CUdeviceptr address) {
  for (Device &device : Driver::get().devices)
    if (device.memory.free(address))
      return CUDA_SUCCESS;
  return CUDA_ERROR_INVALID_VALUE;
}

POSENC_CUDA cuMemAlloc_v2(CUdeviceptr *address, size_t size) {
  LOCK_DRIVER
  if (CUresult result = checkUncaptured(driver))
    return result;
  if (!size)
    return CUDA_ERROR_INVALID_VALUE;
  if (size > size_t(16) << 30)
    return CUDA_ERROR_OUT_OF_MEMORY;
  *address = getCurrentDevice().memory.allocate(size, "device memory");
  return CUDA_SUCCESS;
}
POSENC_CUDA_SYMBOL(cuMemAlloc_v2)

POSENC_CUDA cuMemFree_v2(CUdeviceptr address) {
  LOCK_DRIVER
  if (CUresult result = checkUncaptured(driver))
    return result;
  if (!address)
    return CUDA_SUCCESS;
  return freeMemory(address);
}
POSENC_CUDA_SYMBOL(cuMemFree_v2)

// The memory exists from the allocation to the free in stream order. A captured
// allocation has the same address in each launch of the graph.
POSENC_CUDA cuMemAllocAsync(CUdeviceptr *address, size_t size, void *stream) {
  LOCK_DRIVER
  if (!size)
    return CUDA_ERROR_INVALID_VALUE;
  if (size > size_t(16) << 30)
    return CUDA_ERROR_OUT_OF_MEMORY;
  Stream *found = findStream(driver, stream);
  if (!found)
    return CUDA_ERROR_INVALID_HANDLE;
  Device *device = found->device;
  uint64_t reserved = device->memory.reserve(size);
  *address = reserved;
  return submit(driver, stream, [=] {
    Driver &driver = Driver::get();
    // The graph was launched before and has not freed the memory.
    if (device->memory.find(reserved, 1))
      return CUDA_ERROR_INVALID_VALUE;
    device->memory.allocateAt(reserved, size, "memory of a stream");
    driver.note("allocate " + Twine(size));
    return CUDA_SUCCESS;
  });
}
POSENC_CUDA_SYMBOL(cuMemAllocAsync)

POSENC_CUDA cuMemFreeAsync(CUdeviceptr address, void *stream) {
  LOCK_DRIVER
  return submit(driver, stream, [=] {
    CUresult result = freeMemory(address);
    if (!result)
      Driver::get().note("release");
    return result;
  });
}
POSENC_CUDA_SYMBOL(cuMemFreeAsync)

// Addresses are unified: copies find the device of a pointer.
static CUresult write(CUdeviceptr to, const void *from, size_t size) {
  Device *device = Driver::get().findDevice(to);
  return !size || (device && device->memory.write(to, from, size))
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_VALUE;
}
static ptx::Region *findRegion(CUdeviceptr address, size_t size) {
  Device *device = Driver::get().findDevice(address);
  return device ? device->memory.find(address, size) : nullptr;
}
static Work copyToDevice(CUdeviceptr to, const void *from, size_t size) {
  return [=] { return write(to, from, size); };
}
static Work copyToHost(void *to, CUdeviceptr from, size_t size) {
  return [=] {
    Device *device = Driver::get().findDevice(from);
    return !size || (device && device->memory.read(from, to, size))
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
  };
}
// Bytes that have not been written are copied as such.
static Work copyOnDevice(CUdeviceptr to, CUdeviceptr from, size_t size) {
  return [=] {
    if (!size)
      return CUDA_SUCCESS;
    ptx::Region *source = findRegion(from, size);
    ptx::Region *target = findRegion(to, size);
    if (!source || !target)
      return CUDA_ERROR_INVALID_VALUE;
    uint64_t at = from - source->address, into = to - target->address;
    std::memmove(target->data + into, source->data + at, size);
    for (size_t i = 0; i < size && !target->valid.empty(); ++i)
      target->valid[into + i] = source->valid.empty() || source->valid[at + i];
    return CUDA_SUCCESS;
  };
}
template <typename T>
static Work fillDevice(CUdeviceptr to, T value, size_t count) {
  return [=] {
    std::vector<T> values(count, value);
    return write(to, values.data(), count * sizeof(T));
  };
}

// Runs work of the default stream; refused during a capture.
static CUresult runNow(Work work) {
  LOCK_DRIVER
  if (CUresult result = checkUncaptured(driver))
    return result;
  return submit(driver, nullptr, std::move(work));
}
// Runs work on a stream, or records it during a capture.
static CUresult enqueue(void *stream, Work work) {
  LOCK_DRIVER
  return submit(driver, stream, std::move(work));
}

POSENC_CUDA cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t size) {
  return runNow(copyToDevice(to, from, size));
}
POSENC_CUDA_SYMBOL(cuMemcpyHtoD_v2)
POSENC_CUDA cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t size) {
  return runNow(copyToHost(to, from, size));
}
POSENC_CUDA_SYMBOL(cuMemcpyDtoH_v2)
POSENC_CUDA cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t size) {
  return runNow(copyOnDevice(to, from, size));
}
POSENC_CUDA_SYMBOL(cuMemcpyDtoD_v2)
POSENC_CUDA cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t size,
                                 void *stream) {
  return enqueue(stream, copyToDevice(to, from, size));
}
POSENC_CUDA_SYMBOL(cuMemcpyHtoDAsync_v2)
POSENC_CUDA cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t size,
                                 void *stream) {
  return enqueue(stream, copyToHost(to, from, size));
}
POSENC_CUDA_SYMBOL(cuMemcpyDtoHAsync_v2)
POSENC_CUDA cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t size,
                                 void *stream) {
  return enqueue(stream, copyOnDevice(to, from, size));
}
POSENC_CUDA_SYMBOL(cuMemcpyDtoDAsync_v2)

POSENC_CUDA cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count) {
  return runNow(fillDevice(to, value, count));
}
POSENC_CUDA_SYMBOL(cuMemsetD8_v2)
POSENC_CUDA cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t count) {
  return runNow(fillDevice(to, value, count));
}
POSENC_CUDA_SYMBOL(cuMemsetD32_v2)
POSENC_CUDA cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count,
                            void *stream) {
  return enqueue(stream, fillDevice(to, value, count));
}
POSENC_CUDA_SYMBOL(cuMemsetD8Async)
POSENC_CUDA cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count,
                             void *stream) {
  return enqueue(stream, fillDevice(to, value, count));
}
POSENC_CUDA_SYMBOL(cuMemsetD32Async)

POSENC_CUDA cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size,
                                    CUdeviceptr address) {
  LOCK_DRIVER
  ptx::Region *region = findRegion(address, 1);
  if (!region)
    return CUDA_ERROR_NOT_FOUND;
  if (base)
    *base = region->address;
  if (size)
    *size = region->size;
  return CUDA_SUCCESS;
}
POSENC_CUDA_SYMBOL(cuMemGetAddressRange_v2)

POSENC_CUDA cuPointerGetAttribute(void *value, int attribute,
                                  CUdeviceptr address) {
  LOCK_DRIVER
  Device *device = driver.findDevice(address);
  ptx::Region *region = findRegion(address, 1);
  if (!region)
    return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
  case 1: // context
    *static_cast<Context **>(value) = &device->primary;
    return CUDA_SUCCESS;
  case 2: // memory type: device
    *static_cast<unsigned *>(value) = 2;
    return CUDA_SUCCESS;
  case 3: // device pointer
    *static_cast<CUdeviceptr *>(value) = address;
    return CUDA_SUCCESS;
  case 8: // whether the memory is managed
    *static_cast<unsigned *>(value) = 0;
    return CUDA_SUCCESS;
  case 9: // device ordinal
    *static_cast<int *>(value) = device->ordinal;
    return CUDA_SUCCESS;
  case 11: // start of the allocation
    *static_cast<CUdeviceptr *>(value) = region->address;
    return CUDA_SUCCESS;
  case 12: // size of the allocation
    *static_cast<size_t *>(value) = region->size;
    return CUDA_SUCCESS;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}
POSENC_CUDA_SYMBOL(cuPointerGetAttribute)

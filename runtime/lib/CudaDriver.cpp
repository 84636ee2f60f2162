//===- CudaDriver.cpp - The CUDA driver, opened at run time ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaDriver.h"
#include "Error.h"
#include "posenc/kernel/CudaLibrary.h"

#include <dlfcn.h>

#include <mutex>
#include <set>

using namespace posenc::runtime;

posenc_status posenc::runtime::failCuda(const CudaDriver &driver, int error,
                                        const char *what) {
  enum { outOfMemory = 2 };
  const char *text = nullptr;
  if (driver.getErrorString)
    driver.getErrorString(error, &text);
  return fail(error == outOfMemory ? POSENC_OUT_OF_MEMORY
                                   : POSENC_KERNEL_FAILED,
              "CUDA: %s: %s (%d)", what, text ? text : "unknown error", error);
}

/// Looks up the functions. Returns the name of the first missing one, or null.
static const char *loadFunctions(void *library, CudaDriver &driver) {
  const char *missing = nullptr;
  auto get = [&](auto &function, const char *name) {
    void *address = ::dlsym(library, name);
    if (!address && !missing)
      missing = name;
    function =
        reinterpret_cast<std::remove_reference_t<decltype(function)>>(address);
  };
  get(driver.init, "cuInit");
  get(driver.getErrorString, "cuGetErrorString");
  get(driver.getDeviceCount, "cuDeviceGetCount");
  get(driver.getDevice, "cuDeviceGet");
  get(driver.getDeviceName, "cuDeviceGetName");
  get(driver.getDeviceAttribute, "cuDeviceGetAttribute");
  get(driver.getDeviceMemory, "cuDeviceTotalMem_v2");
  get(driver.retainPrimaryContext, "cuDevicePrimaryCtxRetain");
  get(driver.releasePrimaryContext, "cuDevicePrimaryCtxRelease_v2");
  get(driver.pushContext, "cuCtxPushCurrent_v2");
  get(driver.popContext, "cuCtxPopCurrent_v2");
  get(driver.synchronizeContext, "cuCtxSynchronize");
  get(driver.allocate, "cuMemAlloc_v2");
  get(driver.release, "cuMemFree_v2");
  get(driver.copyToDevice, "cuMemcpyHtoD_v2");
  get(driver.copyFromDevice, "cuMemcpyDtoH_v2");
  return missing;
}

posenc_status posenc::runtime::getCudaDriver(const CudaDriver *&result) {
  static std::mutex mutex;
  static CudaDriver driver;
  static bool isOpen = false;
  std::lock_guard<std::mutex> lock(mutex);
  if (!isOpen) {
    void *library = ::dlopen(POSENC_CUDA_DRIVER, RTLD_NOW | RTLD_LOCAL);
    if (!library)
      return fail(POSENC_NOT_FOUND, "there is no CUDA driver: %s", ::dlerror());
    if (const char *missing = loadFunctions(library, driver))
      return fail(POSENC_UNSUPPORTED, "the CUDA driver has no %s", missing);
    if (int error = driver.init(0)) {
      failCuda(driver, error, "cuInit");
      return POSENC_UNSUPPORTED;
    }
    isOpen = true;
  }
  result = &driver;
  return POSENC_OK;
}

posenc_status posenc::runtime::findCudaDevice(int32_t index,
                                              const CudaDriver *&driver,
                                              int &device) {
  if (posenc_status status = getCudaDriver(driver))
    return status;
  int count = 0;
  if (int error = driver->getDeviceCount(&count))
    return failCuda(*driver, error, "cannot count the devices");
  if (index < 0 || index >= count)
    return fail(POSENC_NOT_FOUND,
                "there is no CUDA device %d: there are %d devices", index,
                count);
  if (int error = driver->getDevice(&device, index))
    return failCuda(*driver, error, "cannot get the device");
  return POSENC_OK;
}

/// Returns whether this is the first call for `device`.
static bool isFirstUse(int device) {
  static std::mutex mutex;
  static std::set<int> devices;
  std::lock_guard<std::mutex> lock(mutex);
  return devices.insert(device).second;
}

CudaContext::~CudaContext() {
  void *old;
  if (isCurrent)
    driver.popContext(&old);
  if (isReleased)
    driver.releasePrimaryContext(device);
}

posenc_status CudaContext::enter() {
  void *context;
  int error = driver.retainPrimaryContext(&context, device);
  // The first of all is kept for the rest of the process, as the CUDA runtime
  // does: to create the context again takes tenths of a second, and loaded
  // kernels and allocated memory end with it.
  isReleased = !error && !isFirstUse(device);
  if (!error)
    error = driver.pushContext(context);
  isCurrent = !error;
  return error ? failCuda(driver, error, "cannot make a context current")
               : POSENC_OK;
}

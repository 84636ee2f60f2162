//===- CudaDriver.h - The CUDA driver, opened at run time -------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RUNTIME_LIB_CUDADRIVER_H
#define POSENC_RUNTIME_LIB_CUDADRIVER_H

#include "posenc/runtime/types.h"

#include <cstddef>
#include <cstdint>

namespace posenc::runtime {

/// The functions of the CUDA driver that the runtime calls. They return a
/// CUresult, 0 for success. CUcontext is a pointer, CUdevice an int, and
/// CUdeviceptr a uint64_t.
struct CudaDriver {
  int (*init)(unsigned flags);
  int (*getErrorString)(int error, const char **text);
  int (*getDeviceCount)(int *count);
  int (*getDevice)(int *device, int index);
  int (*getDeviceName)(char *name, int size, int device);
  int (*getDeviceAttribute)(int *value, int attribute, int device);
  int (*getDeviceMemory)(size_t *bytes, int device);
  int (*retainPrimaryContext)(void **context, int device);
  int (*releasePrimaryContext)(int device);
  int (*pushContext)(void *context);
  int (*popContext)(void **context);
  int (*synchronizeContext)();
  int (*allocate)(uint64_t *address, size_t bytes);
  int (*release)(uint64_t address);
  int (*copyToDevice)(uint64_t to, const void *from, size_t bytes);
  int (*copyFromDevice)(void *to, uint64_t from, size_t bytes);
};

/// Returns the driver, which the first call opens and nothing closes. Errors:
/// NOT_FOUND (no driver), UNSUPPORTED (too old, or it finds no device).
posenc_status getCudaDriver(const CudaDriver *&driver);

/// Sets the error text for the CUresult `error`; `what` names the failed step.
/// Returns OUT_OF_MEMORY or KERNEL_FAILED.
posenc_status failCuda(const CudaDriver &driver, int error, const char *what);

/// Finds the driver and its CUdevice for the device at `index`. Errors: those
/// of getCudaDriver(), NOT_FOUND (no such device).
posenc_status findCudaDevice(int32_t index, const CudaDriver *&driver,
                             int &device);

/// The primary context of a device. It is current on this thread from enter()
/// until the destructor, and exists for the rest of the process.
class CudaContext {
public:
  CudaContext(const CudaDriver &driver, int device)
      : driver(driver), device(device) {}
  ~CudaContext();
  posenc_status enter();

  const CudaDriver &driver;
  const int device;

private:
  /// Whether the destructor releases what enter() has retained.
  bool isReleased = false;
  bool isCurrent = false;
};

} // namespace posenc::runtime

#endif // POSENC_RUNTIME_LIB_CUDADRIVER_H

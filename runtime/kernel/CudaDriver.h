//===- CudaDriver.h - the CUDA driver, opened at run time ---------*- C -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_KERNEL_CUDADRIVER_H
#define POSENC_KERNEL_CUDADRIVER_H

#include "Loader.h"
#include "Report.h"
#include "posenc/kernel/CudaLibrary.h"

/* Functions of the driver return a CUresult, 0 for success. Handles are
 * pointers. */
typedef int (*CudaFunction)();

/* Indices into cudaFunctions. The cuLibrary functions, whose handles are valid
 * in all contexts, require CUDA 12. */
enum {
  kCuInit,
  kCuGetErrorString,
  kCuDeviceGet,
  kCuDeviceGetAttribute,
  kCuDevicePrimaryCtxRetain,
  kCuCtxGetCurrent,
  kCuCtxGetDevice,
  kCuCtxPushCurrent,
  kCuCtxPopCurrent,
  kCuLibraryLoadData,
  kCuLibraryGetKernel,
  kCuKernelGetFunction,
  kCuKernelSetAttribute,
  kCuLaunchKernel,
  kCuThreadExchangeStreamCaptureMode,
  kNumCudaFunctions
};

static const char *const cudaFunctionNames[kNumCudaFunctions] = {
    "cuInit",
    "cuGetErrorString",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDevicePrimaryCtxRetain",
    "cuCtxGetCurrent",
    "cuCtxGetDevice",
    "cuCtxPushCurrent_v2",
    "cuCtxPopCurrent_v2",
    "cuLibraryLoadData",
    "cuLibraryGetKernel",
    "cuKernelGetFunction",
    "cuKernelSetAttribute",
    "cuLaunchKernel",
    "cuThreadExchangeStreamCaptureMode"};

static CudaFunction cudaFunctions[kNumCudaFunctions];

/* The handle of the driver, once it is open. */
static void *cudaDriver;

/* A function of the driver with these parameter types. */
#define CUDA(function, ...) (((int (*)(__VA_ARGS__))cudaFunctions[function]))

extern int sched_yield(void);

/* A lock for the initialization of the driver and its devices. Waiting threads
 * yield, since the driver may compile PTX for seconds. */
static int cudaLock;

static void lockCuda(void) {
  while (__atomic_exchange_n(&cudaLock, 1, __ATOMIC_ACQUIRE))
    sched_yield();
}

static void unlockCuda(void) {
  __atomic_store_n(&cudaLock, 0, __ATOMIC_RELEASE);
}

/* Reports `what`, in the format of fail(), and the driver's text for `error`.
 * Returns `code`. */
static int32_t failCuda(struct Call *call, int32_t code, const char *what,
                        const int64_t *values, int error) {
  const char *text = NULL;
  if (cudaFunctions[kCuGetErrorString])
    CUDA(kCuGetErrorString, int, const char **)(error, &text);
  fail(call, code, what, values);
  putText(call, ": ");
  if (text)
    putText(call, text);
  else
    putNumber(call, error);
  if (call->message && call->size > 0)
    call->message[call->used] = 0;
  return code;
}

/* Opens the driver, unless it is open. */
static int32_t openCuda(struct Call *call) {
  static int isOpen;
  if (__atomic_load_n(&isOpen, __ATOMIC_ACQUIRE))
    return kEntryOk;
  enum { kNow = 2 };
  int canOpen = dlopen && dlsym && dlerror;
  void *driver = canOpen ? dlopen(POSENC_CUDA_DRIVER, kNow) : NULL;
  if (!driver) {
    const char *text = canOpen ? dlerror() : NULL;
    fail(call, kEntryNoGpu, "there is no CUDA driver", NULL);
    putText(call, ": ");
    putText(call, text ? text : POSENC_CUDA_DRIVER " cannot be opened");
    if (call->message && call->size > 0)
      call->message[call->used] = 0;
    return kEntryNoGpu;
  }
  lockCuda();
  /* Another thread may have opened it meanwhile, and may call its functions. */
  if (isOpen) {
    unlockCuda();
    return kEntryOk;
  }
  int32_t code = kEntryOk;
  for (int i = 0; i < kNumCudaFunctions && !code; ++i) {
    cudaFunctions[i] = (CudaFunction)dlsym(driver, cudaFunctionNames[i]);
    if (!cudaFunctions[i])
      code =
          fail(call, kEntryNoGpu,
               "the CUDA driver is older than CUDA 12, which is needed", NULL);
  }
  int error = code ? 0 : CUDA(kCuInit, unsigned)(0);
  if (error)
    code = failCuda(call, kEntryNoGpu, "the CUDA driver finds no GPU", NULL,
                    error);
  cudaDriver = driver;
  __atomic_store_n(&isOpen, !code, __ATOMIC_RELEASE);
  unlockCuda();
  return code;
}

#endif

//===- CudaFfi.h - calls on NVIDIA GPUs by TVM FFI ----------------*- C -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_KERNEL_CUDAFFI_H
#define POSENC_KERNEL_CUDAFFI_H

#include "Cuda.h"
#include "TvmFfi.h"

/* The type of an exported function of TVM FFI. */
typedef int32_t (*FfiFunction)(void *handle, const struct Any *args,
                               int32_t count, struct Any *result);

/* Weak, as TVMFFIErrorSetRaisedFromCStr. */
extern void *TVMFFIEnvGetStream(int32_t deviceType, int32_t deviceId)
    __attribute__((weak));

typedef void *(*GetFfiStream)(int32_t deviceType, int32_t deviceId);

/* Returns the current stream of the first tensor's device: TVM FFI knows that
 * of the framework that the tensors are from. The default stream if TVM FFI is
 * not loaded. */
static void *getFfiStream(const struct Any *args, int32_t count) {
  GetFfiStream get = TVMFFIEnvGetStream;
  void *everywhere = NULL;
  if (!get && dlsym)
    get = (GetFfiStream)dlsym(everywhere, "TVMFFIEnvGetStream");
  for (int32_t i = 0; get && i < count; ++i) {
    const struct PosencDlTensor *tensor = getTensor(&args[i]);
    if (tensor)
      return get(kDLCUDA, tensor->deviceId);
  }
  return NULL;
}

int32_t launchFfiCuda(const struct Description *description,
                      const struct Any *args, int32_t count, struct Any *result,
                      int64_t *arguments, int64_t *words,
                      const struct CudaImage *images,
                      int64_t numImages) __asm__("posenc.launch_ffi_cuda");

/* As launchFfi, for tensors on a GPU. */
int32_t launchFfiCuda(const struct Description *description,
                      const struct Any *args, int32_t count, struct Any *result,
                      int64_t *arguments, int64_t *words,
                      const struct CudaImage *images, int64_t numImages) {
  char message[256] = "";
  struct Call call = {description, words,   message, sizeof(message),
                      0,           kDLCUDA, NULL,    NULL};
  int64_t workspaceBytes;
  int32_t code =
      unpackArguments(&call, args, count, arguments, &workspaceBytes);
  if (!code)
    code = callCuda(&call, arguments, getFfiStream(args, count), images,
                    numImages);
  if (!code && result)
    *result = (struct Any){.type = kFfiNone};
  return raise(&call, code);
}

#endif

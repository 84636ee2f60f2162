//===- cuda.h - Runs kernel libraries on NVIDIA GPUs --------------*- C -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Runs the functions of kernel libraries that were compiled with
/// --target=cuda:sm_NN, on tensors in host memory. Usable from C11 and C++. The
/// CUDA driver is opened by the first call of a function of this file; building
/// and linking need nothing of CUDA.
///
/// A caller whose tensors are on the GPU already calls the entry points
/// `<prefix>_<function>_cuda` of the library, which do not copy, and gives them
/// workspaces. Functions of this file allocate such memory and copy to and from
/// it.
///
/// No function aborts, exits or throws; posenc_last_error() describes an error.
/// Every function may be called from several threads at once.
///
//===----------------------------------------------------------------------===//

#ifndef POSENC_RUNTIME_CUDA_H
#define POSENC_RUNTIME_CUDA_H

#include "posenc/runtime/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/// The properties of a device.
typedef struct {
  char name[256];
  int32_t arch;          ///< 10 x the compute capability: 90 for sm_90
  uint64_t memory_bytes; ///< total memory
} posenc_cuda_facts;

/// Counts the devices. Errors: INVALID_ARGUMENT, NOT_FOUND (no CUDA driver),
/// UNSUPPORTED (the driver finds no device or is too old).
POSENC_RUNTIME_API posenc_status posenc_cuda_count_devices(int32_t *count);

/// Queries the properties of the device at `index`. Errors: those of
/// posenc_cuda_count_devices(), NOT_FOUND (no such device).
POSENC_RUNTIME_API posenc_status
posenc_cuda_query_device(int32_t index, posenc_cuda_facts *facts);

/// Does what posenc_call() does, but on the device at index `device`: copies
/// the inputs there, runs the function on the default stream with a workspace,
/// if it takes one, waits, and copies the outputs back. An output in place of
/// an input uses the memory of that input. Errors: those of
/// posenc_cuda_query_device() and posenc_call(), UNSUPPORTED (the function has
/// no code for CUDA, or none for this GPU), OUT_OF_MEMORY (on the host or on
/// the device), KERNEL_FAILED.
POSENC_RUNTIME_API posenc_status posenc_cuda_call(
    const posenc_function *function, int32_t device, const posenc_value *inputs,
    size_t num_inputs, const posenc_value *outputs, size_t num_outputs);

/// Allocates memory of the device at index `device`; `*address` is NULL for 0
/// bytes. The device keeps its context until the memory is freed. Errors: those
/// of posenc_cuda_query_device(), OUT_OF_MEMORY.
POSENC_RUNTIME_API posenc_status posenc_cuda_allocate(int32_t device,
                                                      size_t bytes,
                                                      void **address);

/// Frees memory of posenc_cuda_allocate() on the same device, after the work
/// that the device has begun. Does nothing for NULL. Errors: those of
/// posenc_cuda_query_device(), KERNEL_FAILED.
POSENC_RUNTIME_API posenc_status posenc_cuda_free(int32_t device,
                                                  void *address);

/// Copies to or from memory of the device, after the work of the default
/// stream, and waits. A failure of that work is an error of the copy. Errors:
/// those of posenc_cuda_query_device(), KERNEL_FAILED.
POSENC_RUNTIME_API posenc_status posenc_cuda_copy_to_device(int32_t device,
                                                            void *to,
                                                            const void *from,
                                                            size_t bytes);
POSENC_RUNTIME_API posenc_status posenc_cuda_copy_to_host(int32_t device,
                                                          void *to,
                                                          const void *from,
                                                          size_t bytes);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // POSENC_RUNTIME_CUDA_H

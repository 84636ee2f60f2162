//===- cuda.h - kernels on NVIDIA GPUs --------------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The CUDA driver is opened when the first of these functions is called, and
// not needed to build or link. A caller with data on a GPU calls the entries
// `<prefix>_<function>_cuda` of a library itself; what is here copies.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RUNTIME_CUDA_H
#define POSENC_RUNTIME_CUDA_H

#include "posenc/runtime/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/// What a device is.
typedef struct {
  char name[256];
  int32_t arch; ///< ten times the compute capability
  uint64_t memory_bytes;
} posenc_cuda_facts;

/// The number of devices. Errors: NOT_FOUND where there is no driver,
/// UNSUPPORTED where it finds no device or is too old.
POSENC_RUNTIME_API posenc_status posenc_cuda_count_devices(int32_t *count);

/// What the device at `index` is. Errors: as above; NOT_FOUND for no such
/// device.
POSENC_RUNTIME_API posenc_status
posenc_cuda_query_device(int32_t index, posenc_cuda_facts *facts);

/// As posenc_call(), but on a device: copies the inputs there, runs the
/// function, waits, and copies the outputs back. In place stays in place.
/// Errors: as above and as posenc_call(); UNSUPPORTED for a function without
/// code for GPUs; OUT_OF_MEMORY also for the device's.
POSENC_RUNTIME_API posenc_status posenc_cuda_call(
    const posenc_function *function, int32_t device, const posenc_value *inputs,
    size_t num_inputs, const posenc_value *outputs, size_t num_outputs);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // POSENC_RUNTIME_CUDA_H

//===- vulkan.h - Runs kernels on Vulkan devices ------------------*- C -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A small host for compute kernels, and calls of the functions of kernel
/// libraries that have kernels for Vulkan. Usable from C11 and C++. The
/// system's Vulkan loader is opened when the first function here is called;
/// nothing of Vulkan is linked.
///
/// No function aborts, exits or lets a C++ exception out; posenc_last_error()
/// says in words what went wrong. Every function is safe to call from several
/// threads: those on one device take turns. An object must not be destroyed
/// while another thread still uses it. Objects may be destroyed in any order:
/// each keeps what it was made from. The exception is a kernel library, which
/// must outlive its programs.
///
//===----------------------------------------------------------------------===//

#ifndef POSENC_RUNTIME_VULKAN_H
#define POSENC_RUNTIME_VULKAN_H

#include "posenc/runtime/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/// An open device.
typedef struct posenc_vulkan_device posenc_vulkan_device;
/// Memory of a device.
typedef struct posenc_vulkan_buffer posenc_vulkan_buffer;
/// The functions of a kernel library on a device.
typedef struct posenc_vulkan_program posenc_vulkan_program;

/// What a device is and can do. Flags are 0 or 1; all that are 1 are enabled
/// when it is opened.
typedef struct {
  char name[256];
  int32_t is_software; ///< runs on the CPU
  int32_t int8, int16, int64, float16, float64;
  int32_t storage8, storage16; ///< such elements in storage buffers
  uint32_t subgroup_size;
  uint32_t max_workgroup_size[3], max_workgroup_invocations;
  uint32_t max_grid[3];
  uint32_t max_workgroup_bytes; ///< memory that a workgroup shares
  uint32_t max_buffers;         ///< of one kernel
  uint32_t max_push_bytes;
  uint64_t max_buffer_bytes;
} posenc_vulkan_facts;

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

/// The number of devices, software ones included. Errors: NOT_FOUND where
/// there is no Vulkan loader, UNSUPPORTED where it refuses to start,
/// OUT_OF_MEMORY. A system without a device has 0 and is no error.
POSENC_RUNTIME_API posenc_status posenc_vulkan_count_devices(uint32_t *count);

/// What the device at `index` can do, without opening it. Errors: as above;
/// NOT_FOUND for no such device.
POSENC_RUNTIME_API posenc_status
posenc_vulkan_query_device(uint32_t index, posenc_vulkan_facts *facts);

/// Opens the device at `index`. On success `*out` is the caller's, to be given
/// to posenc_vulkan_close(); on failure it is NULL. Errors: as above;
/// UNSUPPORTED for a device that cannot compute or is older than Vulkan 1.1.
POSENC_RUNTIME_API posenc_status posenc_vulkan_open(uint32_t index,
                                                    posenc_vulkan_device **out);

/// NULL is allowed.
POSENC_RUNTIME_API void posenc_vulkan_close(posenc_vulkan_device *device);

/// What an open device can do; lives as long as the device. NULL for NULL.
POSENC_RUNTIME_API const posenc_vulkan_facts *
posenc_vulkan_device_facts(const posenc_vulkan_device *device);

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Allocates `bytes` of the device's memory; what it holds is not defined.
/// Errors: INVALID_ARGUMENT, UNSUPPORTED (beyond max_buffer_bytes),
/// OUT_OF_MEMORY.
POSENC_RUNTIME_API posenc_status posenc_vulkan_create_buffer(
    posenc_vulkan_device *device, uint64_t bytes, posenc_vulkan_buffer **out);

/// NULL is allowed.
POSENC_RUNTIME_API void
posenc_vulkan_destroy_buffer(posenc_vulkan_buffer *buffer);

/// 0 for NULL.
POSENC_RUNTIME_API uint64_t
posenc_vulkan_buffer_bytes(const posenc_vulkan_buffer *buffer);

/// Copies `bytes` from `data` to the buffer, `offset` bytes into it. Errors:
/// INVALID_ARGUMENT (also for a range beyond the buffer's end), OUT_OF_MEMORY,
/// KERNEL_FAILED (the device was lost).
POSENC_RUNTIME_API posenc_status
posenc_vulkan_upload(posenc_vulkan_buffer *buffer, uint64_t offset,
                     const void *data, uint64_t bytes);

/// The other way.
POSENC_RUNTIME_API posenc_status
posenc_vulkan_download(const posenc_vulkan_buffer *buffer, uint64_t offset,
                       void *data, uint64_t bytes);

//===----------------------------------------------------------------------===//
// Kernel libraries
//===----------------------------------------------------------------------===//

/// As posenc_call(), but on the device at `index`: copies the inputs there,
/// runs the function, waits, and copies the outputs back. In place stays in
/// place. The device is opened by the first call and closed with the library.
/// Errors: as posenc_vulkan_open(), posenc_call() and posenc_vulkan_launch();
/// UNSUPPORTED for a function without code for Vulkan.
POSENC_RUNTIME_API posenc_status posenc_vulkan_call(
    const posenc_function *function, uint32_t index, const posenc_value *inputs,
    size_t num_inputs, const posenc_value *outputs, size_t num_outputs);

/// Makes the functions of a library ready to run on an open device. The library
/// must outlive the program. Errors: INVALID_ARGUMENT, UNSUPPORTED (the library
/// has no code for Vulkan, or the device lacks a capability), BAD_LIBRARY (the
/// code is damaged), OUT_OF_MEMORY.
POSENC_RUNTIME_API posenc_status posenc_vulkan_create_program(
    posenc_vulkan_device *device, const posenc_library *library,
    posenc_vulkan_program **out);

/// NULL is allowed.
POSENC_RUNTIME_API void
posenc_vulkan_destroy_program(posenc_vulkan_program *program);

/// An argument on a device: a scalar, or a tensor within a buffer.
typedef struct {
  union {
    int64_t scalar;
    double real; ///< where the type is f64 or f32
  };
  /// May be NULL for a tensor without elements, or of which only the shape
  /// counts.
  posenc_vulkan_buffer *buffer;
  uint64_t offset;              ///< of the first element, in bytes
  int32_t rank;
  const int64_t *shape;   ///< in elements
  const int64_t *strides; ///< in elements, may be negative; NULL: contiguous
} posenc_vulkan_argument;

/// Runs a function of the program's library on tensors of its device, inputs
/// then outputs, and waits until it is done. Nothing is copied. What is asked
/// of strides and of outputs that share memory is said in the header of the
/// library. Errors: INVALID_ARGUMENT (NULL, a buffer of another device, a view
/// beyond its buffer, a scalar beyond its type, what the function refuses),
/// SHAPE_MISMATCH (rank or sizes, as in posenc_call()), UNSUPPORTED (a function
/// without code for Vulkan, an index beyond 32 bits), OUT_OF_MEMORY,
/// KERNEL_FAILED.
POSENC_RUNTIME_API posenc_status posenc_vulkan_launch(
    posenc_vulkan_program *program, const posenc_function *function,
    const posenc_vulkan_argument *arguments, size_t num_arguments);

/// Told of each kernel before it runs, and in how many workgroups. It must not
/// launch anything of the same program, which would wait for itself.
typedef void (*posenc_vulkan_observer)(void *ctx, const char *kernel,
                                       int64_t blocks);

/// For all launches after this: the observer (NULL for none), and the most
/// workgroups of one command (0 for the device's own limit); kernels of more
/// run in parts. Not to be called while a function of the program runs.
POSENC_RUNTIME_API posenc_status posenc_vulkan_configure_program(
    posenc_vulkan_program *program, posenc_vulkan_observer observer, void *ctx,
    uint32_t most_blocks);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // POSENC_RUNTIME_VULKAN_H

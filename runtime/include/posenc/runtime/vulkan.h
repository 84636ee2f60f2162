//===- vulkan.h - Runs kernel libraries on Vulkan devices ---------*- C -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Runs the functions of kernel libraries that were compiled with
/// --target=vulkan. Usable from C11 and C++. The system's Vulkan loader is
/// opened by the first call of a function of this file; building and linking
/// need nothing of Vulkan.
///
/// posenc_vulkan_call() takes tensors in host memory. To keep tensors on a
/// device between calls, open the device, create buffers and a program, and
/// call posenc_vulkan_launch().
///
/// No function aborts, exits or throws; posenc_last_error() describes an error.
/// Every function may be called from several threads at once; calls on one
/// device run one after the other. An object must not be destroyed while
/// another thread uses it. Objects may be destroyed in any order, since each
/// keeps the objects that it needs alive. The exception is a kernel library,
/// which must outlive its programs.
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
/// Memory on a device.
typedef struct posenc_vulkan_buffer posenc_vulkan_buffer;
/// The functions of a kernel library, ready to run on a device.
typedef struct posenc_vulkan_program posenc_vulkan_program;

/// The properties of a device. Flags are 0 or 1; posenc_vulkan_open() enables
/// all features whose flag is 1.
typedef struct {
  char name[256];
  int32_t is_software; ///< 1 if the device runs kernels on the CPU
  int32_t int8, int16, int64, float16, float64; ///< arithmetic types
  int32_t storage8, storage16; ///< 8-bit and 16-bit elements in buffers
  uint32_t subgroup_size;      ///< in invocations
  uint32_t max_workgroup_size[3], max_workgroup_invocations;
  uint32_t max_grid[3];         ///< workgroups of one dispatch, per dimension
  uint32_t max_workgroup_bytes; ///< shared memory of a workgroup
  uint32_t max_buffers;         ///< storage buffers of one kernel
  uint32_t max_push_bytes;      ///< push constants of one kernel
  uint64_t max_buffer_bytes;    ///< size of one buffer
} posenc_vulkan_facts;

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

/// Counts the devices, including software devices. Sets `*count` to 0 and
/// succeeds on a system with a Vulkan loader but no device. Errors:
/// INVALID_ARGUMENT, NOT_FOUND (no Vulkan loader), UNSUPPORTED (the loader
/// cannot be initialized or is older than Vulkan 1.1), OUT_OF_MEMORY.
POSENC_RUNTIME_API posenc_status posenc_vulkan_count_devices(uint32_t *count);

/// Queries the properties of the device at `index` without opening it. Errors:
/// those of posenc_vulkan_count_devices(), NOT_FOUND (no such device),
/// UNSUPPORTED (the device is older than Vulkan 1.1).
POSENC_RUNTIME_API posenc_status
posenc_vulkan_query_device(uint32_t index, posenc_vulkan_facts *facts);

/// Opens the device at `index`. On success `*out` belongs to the caller, who
/// passes it to posenc_vulkan_close(); on failure it is NULL. Errors: those of
/// posenc_vulkan_query_device(), UNSUPPORTED (the device has no compute queue).
POSENC_RUNTIME_API posenc_status posenc_vulkan_open(uint32_t index,
                                                    posenc_vulkan_device **out);

/// Does nothing for NULL.
POSENC_RUNTIME_API void posenc_vulkan_close(posenc_vulkan_device *device);

/// The properties of an open device, valid until it is closed. NULL for NULL.
POSENC_RUNTIME_API const posenc_vulkan_facts *
posenc_vulkan_device_facts(const posenc_vulkan_device *device);

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Allocates `bytes` bytes of memory on the device; their contents are
/// undefined. Errors: INVALID_ARGUMENT, UNSUPPORTED (more than
/// max_buffer_bytes), OUT_OF_MEMORY.
POSENC_RUNTIME_API posenc_status posenc_vulkan_create_buffer(
    posenc_vulkan_device *device, uint64_t bytes, posenc_vulkan_buffer **out);

/// Does nothing for NULL.
POSENC_RUNTIME_API void
posenc_vulkan_destroy_buffer(posenc_vulkan_buffer *buffer);

/// The size of the buffer in bytes; 0 for NULL.
POSENC_RUNTIME_API uint64_t
posenc_vulkan_buffer_bytes(const posenc_vulkan_buffer *buffer);

/// Copies `bytes` bytes from `data` to the buffer, starting `offset` bytes
/// after its beginning, and waits until they have been copied. Errors:
/// INVALID_ARGUMENT (NULL, or a range beyond the end of the buffer),
/// OUT_OF_MEMORY, KERNEL_FAILED (the device was lost).
POSENC_RUNTIME_API posenc_status
posenc_vulkan_upload(posenc_vulkan_buffer *buffer, uint64_t offset,
                     const void *data, uint64_t bytes);

/// Copies `bytes` bytes from the buffer, starting `offset` bytes after its
/// beginning, to `data`. Errors: those of posenc_vulkan_upload().
POSENC_RUNTIME_API posenc_status
posenc_vulkan_download(const posenc_vulkan_buffer *buffer, uint64_t offset,
                       void *data, uint64_t bytes);

//===----------------------------------------------------------------------===//
// Kernel libraries
//===----------------------------------------------------------------------===//

/// Does what posenc_call() does, but on the device at `index`: copies the
/// inputs there, runs the function, waits, and copies the outputs back. An
/// output in place of an input uses the buffer of that input. The first call
/// opens the device, and it is closed with the library. Errors: those of
/// posenc_vulkan_open(), posenc_call() and posenc_vulkan_launch().
POSENC_RUNTIME_API posenc_status posenc_vulkan_call(
    const posenc_function *function, uint32_t index, const posenc_value *inputs,
    size_t num_inputs, const posenc_value *outputs, size_t num_outputs);

/// Prepares the functions of a library to run on an open device. The library
/// must outlive the program. On success `*out` belongs to the caller, who
/// passes it to posenc_vulkan_destroy_program(); on failure it is NULL. Errors:
/// INVALID_ARGUMENT, UNSUPPORTED (the library has no code for Vulkan, or the
/// device lacks a capability), BAD_LIBRARY (the code is damaged),
/// OUT_OF_MEMORY.
POSENC_RUNTIME_API posenc_status posenc_vulkan_create_program(
    posenc_vulkan_device *device, const posenc_library *library,
    posenc_vulkan_program **out);

/// Does nothing for NULL.
POSENC_RUNTIME_API void
posenc_vulkan_destroy_program(posenc_vulkan_program *program);

/// An argument on a device: a scalar, or a tensor within a buffer. The kind and
/// the element type are those of the signature.
typedef struct {
  union {
    int64_t scalar; ///< of an integer type
    double real;    ///< of f64 or f32
  };
  /// The memory of the tensor. May be NULL for a tensor without elements and
  /// for a shape-only input.
  posenc_vulkan_buffer *buffer;
  uint64_t offset;        ///< of the element at index 0, in bytes
  int32_t rank;           ///< 0 for a single element
  const int64_t *shape;   ///< `rank` sizes in elements
  const int64_t *strides; ///< `rank` strides in elements, which may be
                          ///< negative; NULL for a contiguous row-major tensor
} posenc_vulkan_argument;

/// Runs a function of the program's library on tensors in the memory of its
/// device, without copies, and waits until it is done. `arguments` are the
/// inputs, then the outputs. The C header that posenc-compile writes for the
/// library documents which strides are supported and which outputs may share
/// memory with an input. Errors: INVALID_ARGUMENT (NULL, a buffer of another
/// device, a view beyond its buffer, a scalar out of range, an unsupported
/// overlap or stride), SHAPE_MISMATCH (rank or sizes), UNSUPPORTED (the
/// function has no code for Vulkan, or an element index needs more than 32
/// bits), OUT_OF_MEMORY, KERNEL_FAILED.
POSENC_RUNTIME_API posenc_status posenc_vulkan_launch(
    posenc_vulkan_program *program, const posenc_function *function,
    const posenc_vulkan_argument *arguments, size_t num_arguments);

/// Called before each kernel runs, with its name and its number of workgroups.
/// It must not launch a function of the same program: that would deadlock.
typedef void (*posenc_vulkan_observer)(void *ctx, const char *kernel,
                                       int64_t blocks);

/// Sets the observer (NULL for none) and the maximum number of workgroups of
/// one dispatch (0 for the limit of the device) for all later launches; larger
/// grids are split. For tests and profiling. Must not be called while a
/// function of the program runs. Errors: INVALID_ARGUMENT.
POSENC_RUNTIME_API posenc_status posenc_vulkan_configure_program(
    posenc_vulkan_program *program, posenc_vulkan_observer observer, void *ctx,
    uint32_t max_blocks);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // POSENC_RUNTIME_VULKAN_H

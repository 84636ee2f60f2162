//===- types.h - Status codes, element types, tensors and values --*- C -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RUNTIME_TYPES_H
#define POSENC_RUNTIME_TYPES_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define POSENC_RUNTIME_API __attribute__((visibility("default")))
#else
#define POSENC_RUNTIME_API
#endif

/// The version of the binary interface between this runtime and a kernel
/// library; the metadata of a library names the one it was built for.
#define POSENC_ABI 1

/// No function with more arguments than this (pointers, scalars, sizes and
/// workspace together) can be called through the runtime.
#define POSENC_MAX_ARGUMENTS 32

/// The largest rank of a tensor.
#define POSENC_MAX_RANK 32

/// Stands for a size that is known only when the function is called.
#define POSENC_DYNAMIC ((int64_t)-1)

#ifdef __cplusplus
extern "C" {
#endif

/// The result of a call; anything but POSENC_OK is an error, and
/// posenc_last_error() tells it in words. Values never change their meaning.
typedef int32_t posenc_status;
enum {
  POSENC_OK = 0,
  POSENC_INVALID_ARGUMENT = 1, ///< NULL, a bad count, alignment or overlap, ...
  POSENC_NOT_FOUND = 2,        ///< no such file, function or symbol
  POSENC_IO_ERROR = 3,         ///< the file cannot be read or written
  POSENC_BAD_LIBRARY = 4,      ///< not a kernel library, or a damaged one
  POSENC_SHAPE_MISMATCH = 5,   ///< rank or sizes against the signature
  POSENC_DTYPE_MISMATCH = 6,   ///< element type against the signature
  POSENC_KERNEL_FAILED = 7,    ///< the kernel itself returned an error code
  POSENC_OUT_OF_MEMORY = 8,
  POSENC_UNSUPPORTED = 9 ///< this CPU or this runtime cannot do that
};

/// The type of one element. Zero is no type, so that a struct that was only
/// cleared is noticed. Types of 16 bits are uint16_t in memory.
typedef int32_t posenc_dtype;
enum {
  POSENC_DTYPE_INVALID = 0,
  POSENC_F64 = 1,
  POSENC_F32 = 2,
  POSENC_F16 = 3,
  POSENC_BF16 = 4,
  POSENC_I64 = 5,
  POSENC_I32 = 6,
  POSENC_INDEX = 7, ///< int64_t in memory; interchangeable with POSENC_I64
  POSENC_I8 = 8,
  POSENC_I1 = 9,        ///< one byte; any value but 0 is true
  POSENC_F8E4M3FN = 10, ///< without infinities; uint8_t in memory
  POSENC_F8E5M2 = 11    ///< with infinities; uint8_t in memory
};

/// What an argument is: a pointer to data, or a number by value.
typedef int32_t posenc_kind;
enum { POSENC_TENSOR = 0, POSENC_SCALAR = 1 };

/// A contiguous row-major array in host memory. Nothing is owned: `data` and
/// `shape` must live until the call they are passed to returns.
typedef struct {
  /// Aligned to the element; may be NULL when a size is 0, or when only the
  /// shape counts (posenc_argument_is_shape_only()).
  void *data;
  posenc_dtype dtype;
  int32_t rank;         ///< 0 is a single element
  const int64_t *shape; ///< `rank` sizes in elements; may be NULL for rank 0
} posenc_tensor;

/// One argument of a call: `tensor` counts for POSENC_TENSOR; for POSENC_SCALAR
/// `scalar` where its type is an integer and `real` where it is f64 or f32, to
/// which it is rounded. What does not count is ignored.
typedef struct {
  posenc_kind kind;
  posenc_tensor tensor;
  union {
    int64_t scalar;
    double real;
  };
} posenc_value;

/// The size of one element in bytes, 0 for no such type.
POSENC_RUNTIME_API size_t posenc_dtype_size(posenc_dtype dtype);

/// The name as in metadata and MLIR ("bf16"), "invalid" for no such type.
POSENC_RUNTIME_API const char *posenc_dtype_name(posenc_dtype dtype);

/// The inverse; POSENC_DTYPE_INVALID for an unknown name or NULL.
POSENC_RUNTIME_API posenc_dtype posenc_dtype_from_name(const char *name);

/// A short constant text ("shape mismatch"); "unknown status" otherwise.
POSENC_RUNTIME_API const char *posenc_status_name(posenc_status status);

/// What went wrong in the last call of this thread that failed, as one line
/// without a newline; "" before the first failure. A call that succeeds leaves
/// it alone. The text belongs to the runtime and stays until the next failure
/// in the same thread. Long texts are cut.
POSENC_RUNTIME_API const char *posenc_last_error(void);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // POSENC_RUNTIME_TYPES_H

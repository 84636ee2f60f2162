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

/// The version of the binary interface between this runtime and kernel
/// libraries. The metadata of a library contains the version it was built for.
#define POSENC_ABI 1

/// The maximum number of arguments of a function that the runtime can call:
/// pointers, scalars, dynamic sizes and the workspace together. A decoder has
/// four caches a layer: those before and after the call, of keys and values.
#define POSENC_MAX_ARGUMENTS 512

/// The largest rank of a tensor.
#define POSENC_MAX_RANK 32

/// The size of a dimension that is known only when the function is called.
#define POSENC_DYNAMIC ((int64_t)-1)

#ifdef __cplusplus
extern "C" {
#endif

/// The result of a call. Anything but POSENC_OK is an error, which
/// posenc_last_error() describes. The values are part of the binary interface.
typedef int32_t posenc_status;
enum {
  POSENC_OK = 0,
  POSENC_INVALID_ARGUMENT = 1, ///< NULL, a bad count, alignment or overlap, ...
  POSENC_NOT_FOUND = 2,        ///< no such file, function or symbol
  POSENC_IO_ERROR = 3,         ///< the file cannot be read or written
  POSENC_BAD_LIBRARY = 4,      ///< not a kernel library, or a damaged one
  POSENC_SHAPE_MISMATCH = 5,   ///< rank or sizes differ from the signature
  POSENC_DTYPE_MISMATCH = 6,   ///< element type differs from the signature
  POSENC_KERNEL_FAILED = 7,    ///< the kernel itself returned an error code
  POSENC_OUT_OF_MEMORY = 8,    ///< in host memory or on the device
  POSENC_UNSUPPORTED = 9       ///< this CPU, device or runtime lacks a feature
};

/// The type of one element. Zero is not a type, so that a zero-initialized
/// struct is refused. Types of 16 bits are uint16_t in memory.
typedef int32_t posenc_dtype;
enum {
  POSENC_DTYPE_INVALID = 0,
  POSENC_F64 = 1,
  POSENC_F32 = 2,
  POSENC_F16 = 3,
  POSENC_BF16 = 4,
  POSENC_I64 = 5,
  POSENC_I32 = 6,
  POSENC_INDEX = 7, ///< int64_t in memory; accepted where I64 is expected
  POSENC_I8 = 8,
  POSENC_I1 = 9,        ///< one byte; 0 is false, any other value is true
  POSENC_F8E4M3FN = 10, ///< uint8_t in memory; no infinities
  POSENC_F8E5M2 = 11,   ///< uint8_t in memory; has infinities
  POSENC_U8 = 12        ///< uint8_t; accepted where I1 or F8 types are expected
};

/// Whether an argument is a tensor, passed as a pointer to its data, or a
/// number, passed by value.
typedef int32_t posenc_kind;
enum { POSENC_TENSOR = 0, POSENC_SCALAR = 1 };

/// A contiguous row-major array in host memory. It owns nothing: `data` and
/// `shape` must stay valid until the call that takes the tensor returns.
typedef struct {
  /// Aligned to the element. May be NULL if a size is 0 or if the function
  /// reads only the shape (posenc_argument_is_shape_only()).
  void *data;
  posenc_dtype dtype;
  int32_t rank;         ///< 0 for a single element
  const int64_t *shape; ///< `rank` sizes in elements; may be NULL for rank 0
} posenc_tensor;

/// One argument of a call. A POSENC_TENSOR is in `tensor`. A POSENC_SCALAR is
/// in `scalar` if the signature has an integer type, and in `real` if it has
/// f64 or f32; `real` is rounded to f32. The other members are ignored.
typedef struct {
  posenc_kind kind;
  posenc_tensor tensor;
  union {
    int64_t scalar;
    double real;
  };
} posenc_value;

/// The size of one element in bytes, 0 for an unknown type.
POSENC_RUNTIME_API size_t posenc_dtype_size(posenc_dtype dtype);

/// The name in metadata and MLIR ("bf16"), "invalid" for an unknown type.
POSENC_RUNTIME_API const char *posenc_dtype_name(posenc_dtype dtype);

/// The type called `name`; POSENC_DTYPE_INVALID for an unknown name or NULL.
POSENC_RUNTIME_API posenc_dtype posenc_dtype_from_name(const char *name);

/// The name of a status ("shape mismatch"), "unknown status" for other values.
POSENC_RUNTIME_API const char *posenc_status_name(posenc_status status);

/// The error of the last call that failed in this thread, as one line without
/// a newline; "" before the first failure. A call that succeeds does not change
/// it. The text is owned by the runtime and valid until the next failure in the
/// same thread. It is truncated to 4095 bytes.
POSENC_RUNTIME_API const char *posenc_last_error(void);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // POSENC_RUNTIME_TYPES_H

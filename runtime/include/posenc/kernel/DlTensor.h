//===- DlTensor.h - DLPack tensors --------------------------------*- C -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_KERNEL_DLTENSOR_H
#define POSENC_KERNEL_DLTENSOR_H

#include <stdint.h>

/* DLTensor of DLPack, in the layout that all its versions share. Debian's
 * dlpack.h is older than the codes of the 8-bit floating-point types. */
struct PosencDlTensor {
  void *data;
  int32_t deviceType, deviceId;
  int32_t ndim;
  uint8_t code, bits; /* of the element type */
  uint16_t lanes;
  const int64_t *shape;
  const int64_t *strides; /* in elements; NULL: contiguous */
  uint64_t byteOffset;
};

/* DLDeviceType. */
enum { kDLCPU = 1, kDLCUDA = 2, kDLVulkan = 7, kDLCUDAManaged = 13 };

/* DLDataTypeCode. */
enum {
  kDLInt = 0,
  kDLUInt = 1,
  kDLFloat = 2,
  kDLBfloat = 4,
  kDLBool = 6,
  kDLFloat8_e4m3fn = 10,
  kDLFloat8_e5m2 = 12
};

/* The element types of kernels, as X(name, text, bytes, code): the text in
 * metadata and headers, the bytes of an element in memory, and its DLPack
 * code. In the order of posenc_dtype. */
#define POSENC_ELEMENT_TYPES(X)                                                \
  X(F64, "f64", 8, kDLFloat)                                                   \
  X(F32, "f32", 4, kDLFloat)                                                   \
  X(F16, "f16", 2, kDLFloat)                                                   \
  X(BF16, "bf16", 2, kDLBfloat)                                                \
  X(I64, "i64", 8, kDLInt)                                                     \
  X(I32, "i32", 4, kDLInt)                                                     \
  X(Index, "index", 8, kDLInt)                                                 \
  X(I8, "i8", 1, kDLInt)                                                       \
  X(I1, "i1", 1, kDLBool)                                                      \
  X(F8E4M3FN, "f8E4M3FN", 1, kDLFloat8_e4m3fn)                                 \
  X(F8E5M2, "f8E5M2", 1, kDLFloat8_e5m2)                                       \
  X(U8, "u8", 1, kDLUInt)

#endif

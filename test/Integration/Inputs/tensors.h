/*===- tensors.h - DLPack tensors ---------------------------------*- C -*-===*\
|*
|* Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
\*===----------------------------------------------------------------------===*/

#ifndef TENSORS_H
#define TENSORS_H

/* Included after the header of a library, which defines DLTensor. */

#include "check.h"

#if defined(EXPECT_DLPACK) && defined(POSENC_DLTENSOR)
#error "the header of DLPack was not used"
#elif defined(EXPECT_OWN) && !defined(POSENC_DLTENSOR)
#error "the header of DLPack was used"
#endif

/* Type codes of DLPack. */
enum { kInt = 0, kUInt = 1, kFloat = 2, kBfloat = 4 };

/* In DLPack's header the type is an enum, to which C++ does not convert
 * numbers. */
static inline void setDevice(DLTensor *tensor, int32_t type) {
  CHECK(sizeof(tensor->device.device_type) == sizeof(type));
  memcpy(&tensor->device.device_type, &type, sizeof(type));
}

static inline DLTensor makeTensor(void *data, int code, int bits, int rank,
                                  int64_t *shape, int64_t *strides) {
  DLTensor result;
  memset(&result, 0, sizeof(result));
  result.data = data;
  setDevice(&result, 1);
  result.ndim = rank;
  result.dtype.code = (uint8_t)code;
  result.dtype.bits = (uint8_t)bits;
  result.dtype.lanes = 1;
  result.shape = shape;
  result.strides = strides;
  return result;
}

#endif

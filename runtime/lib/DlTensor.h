//===- DlTensor.h - DLPack tensors ------------------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RUNTIME_LIB_DLTENSOR_H
#define POSENC_RUNTIME_LIB_DLTENSOR_H

#include "Signature.h"

namespace posenc::runtime {

/// DLTensor of DLPack, which the DLPack and GPU entry points take.
struct DlTensor {
  void *data;
  int32_t deviceType, deviceId, rank;
  uint8_t code, bits;
  uint16_t lanes;
  const int64_t *shape, *strides;
  uint64_t byteOffset;
};

enum { kDlCpu = 1, kDlCuda = 2, kDlVulkan = 7 };

/// The DLTensor of a contiguous tensor in host memory, with the element type of
/// `argument`.
inline DlTensor toDlTensor(const posenc_argument &argument,
                           const posenc_tensor &tensor) {
  enum {
    integer = 0,
    floating = 2,
    bfloat = 4,
    boolean = 6,
    float8E4M3FN = 10,
    float8E5M2 = 12
  };
  posenc_dtype dtype = argument.dtype;
  bool isFloat =
      dtype == POSENC_F64 || dtype == POSENC_F32 || dtype == POSENC_F16;
  int code = dtype == POSENC_BF16       ? bfloat
             : dtype == POSENC_I1       ? boolean
             : dtype == POSENC_F8E4M3FN ? float8E4M3FN
             : dtype == POSENC_F8E5M2   ? float8E5M2
             : isFloat                  ? floating
                                        : integer;
  return {tensor.data,
          kDlCpu,
          0,
          tensor.rank,
          static_cast<uint8_t>(code),
          static_cast<uint8_t>(8 * posenc_dtype_size(dtype)),
          1,
          tensor.shape,
          nullptr,
          0};
}

/// A pointer as an argument of CallArguments.
inline int64_t toWord(const void *pointer) {
  return static_cast<int64_t>(reinterpret_cast<uintptr_t>(pointer));
}

} // namespace posenc::runtime

#endif // POSENC_RUNTIME_LIB_DLTENSOR_H

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
#include "posenc/kernel/DlTensor.h"

namespace posenc::runtime {

/// The DLTensor of a contiguous tensor in host memory, with the element type of
/// `argument`.
inline PosencDlTensor toDlTensor(const posenc_argument &argument,
                                 const posenc_tensor &tensor) {
  static constexpr uint8_t codes[] = {0, // POSENC_DTYPE_INVALID
#define POSENC_ELEMENT_TYPE(name, text, bytes, code) code,
                                      POSENC_ELEMENT_TYPES(POSENC_ELEMENT_TYPE)
#undef POSENC_ELEMENT_TYPE
  };
  posenc_dtype dtype = argument.dtype;
  return {tensor.data,
          kDLCPU,
          0,
          tensor.rank,
          codes[dtype],
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

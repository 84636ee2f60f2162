//===- DType.h - element types of the runtime and the oracle ----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TOOLS_RUN_DTYPE_H
#define POSENC_TOOLS_RUN_DTYPE_H

#include "posenc/Reference/Tensor.h"
#include "posenc/runtime/Array.h"

#include <optional>

namespace mlir::posenc {

/// Whether two types are the same in memory, as i64 and index are.
inline bool isSameType(posenc_dtype a, posenc_dtype b) {
  auto plain = [](posenc_dtype type) {
    return type == POSENC_INDEX ? POSENC_I64 : type;
  };
  return plain(a) == plain(b);
}

/// Sets the type of an array of bytes to that of the argument: a .npy file does
/// not record which f8 type its bytes are, and may have booleans as u1.
inline void interpretBytes(::posenc::runtime::Array &array,
                           posenc_dtype wanted) {
  bool isByte = array.dtype() == POSENC_U8 || array.dtype() == POSENC_F8E4M3FN;
  bool isFloat = wanted == POSENC_F8E4M3FN || wanted == POSENC_F8E5M2;
  if ((isByte && isFloat) ||
      (array.dtype() == POSENC_U8 && wanted == POSENC_I1))
    array.reinterpret(wanted);
}

/// Returns the oracle's type for a runtime type; nullopt if the oracle does not
/// support it.
inline std::optional<::posenc::reference::DType>
getOracleType(posenc_dtype dtype) {
  using ::posenc::reference::DType;
  switch (dtype) {
  case POSENC_F64:
    return DType::F64;
  case POSENC_F32:
    return DType::F32;
  case POSENC_F16:
    return DType::F16;
  case POSENC_BF16:
    return DType::BF16;
  case POSENC_I64:
  case POSENC_INDEX:
    return DType::I64;
  case POSENC_I32:
    return DType::I32;
  case POSENC_I8:
  case POSENC_U8: // The same bits.
    return DType::I8;
  case POSENC_F8E4M3FN:
    return DType::F8E4M3;
  case POSENC_F8E5M2:
    return DType::F8E5M2;
  default:
    return std::nullopt;
  }
}

} // namespace mlir::posenc

#endif // POSENC_TOOLS_RUN_DTYPE_H

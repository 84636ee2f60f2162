//===- TensorMap.cpp - descriptors of tensor copies -----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorMap.h"

namespace posenc::ptx {

// The rules of cuTensorMapEncodeTiled for tensors without interleaving.
const char *TensorMap::check() const {
  if (magic != magicNumber)
    return "the bytes are not a tensor map";
  if (rank < 1 || rank > 5)
    return "the rank is not 1 to 5";
  if (elementBytes != 1 && elementBytes != 2 && elementBytes != 4 &&
      elementBytes != 8)
    return "an element does not have 1, 2, 4 or 8 bytes";
  if (swizzle > Swizzle128)
    return "the swizzle pattern is unknown";
  if (!address || address % 16)
    return "the address is not a multiple of 16";
  for (unsigned i = 0; i < rank; ++i) {
    if (!sizes[i] || sizes[i] > uint64_t(1) << 32)
      return "a size is not 1 to 2^32";
    if (!box[i] || box[i] > 256)
      return "a size of the box is not 1 to 256";
  }
  for (unsigned i = 0; i + 1 < rank; ++i)
    if (strides[i] % 16 || strides[i] >= uint64_t(1) << 40)
      return "a stride is not a multiple of 16 below 2^40";
  if (getRowBytes() % 16)
    return "the innermost size of the box is not a multiple of 16 bytes";
  if (swizzle != None && getRowBytes() > getSwizzleBytes(swizzle))
    return "the innermost size of the box exceeds the swizzled bytes";
  return nullptr;
}

} // namespace posenc::ptx

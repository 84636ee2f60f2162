//===- Types.h - Element types and sizes of tensors -------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RUNTIME_LIB_TYPES_H
#define POSENC_RUNTIME_LIB_TYPES_H

#include "posenc/runtime/types.h"

namespace posenc::runtime {

/// Sets `bytes` to the size of a tensor in bytes. Returns false if a size is
/// negative, or if the product of the nonzero sizes and the element size
/// overflows int64_t. Zeros are left out of the product, because strides are
/// products of some of the sizes and must not overflow either.
bool tensorBytes(posenc_dtype dtype, const int64_t *shape, int32_t rank,
                 uint64_t &bytes);

/// Whether data of type `given` is accepted where `wanted` is expected: the
/// types are equal, or i64 and index.
bool isCompatible(posenc_dtype given, posenc_dtype wanted);

/// Allocates `bytes` bytes aligned to 64 bytes, to be released by free().
/// Returns null if there is no memory, and for 2^47 bytes or more, for which
/// the allocators of sanitizers abort.
void *allocateAligned(uint64_t bytes);

} // namespace posenc::runtime

#endif // POSENC_RUNTIME_LIB_TYPES_H

//===- Types.h - Sizes of tensors -------------------------------*- C++ -*-===//
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

/// The size of a tensor in bytes. False when a size is negative, or when the
/// product of the sizes and the element size is beyond what a pointer
/// difference holds. Zeros do not hide a product that overflows, because the
/// strides are such products too.
bool tensorBytes(posenc_dtype dtype, const int64_t *shape, int32_t rank,
                 uint64_t &bytes);

/// Whether data of type `given` may be used where `wanted` is asked for.
bool isCompatible(posenc_dtype given, posenc_dtype wanted);

/// Memory aligned to 64 bytes for free(), or null. An amount that no machine
/// has is not asked for: some allocators abort on that.
void *allocateAligned(uint64_t bytes);

} // namespace posenc::runtime

#endif // POSENC_RUNTIME_LIB_TYPES_H

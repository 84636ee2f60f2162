//===- Array.cpp - An owned contiguous array ------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/runtime/Array.h"
#include "Error.h"
#include "Types.h"

#include <cstdlib>
#include <cstring>

using namespace posenc::runtime;

Array::~Array() { std::free(memory); }

bool Array::allocate(posenc_dtype dtype, std::vector<int64_t> shape, Array &out,
                     std::string &error) {
  if (!posenc_dtype_size(dtype))
    return fail(error, "unknown element type");
  if (shape.size() > POSENC_MAX_RANK)
    return fail(error, "rank " + std::to_string(shape.size()) +
                           " is more than " + std::to_string(POSENC_MAX_RANK));
  uint64_t bytes = 0;
  if (!tensorBytes(dtype, shape.data(), static_cast<int32_t>(shape.size()),
                   bytes))
    return fail(error, "a size is negative, or the sizes are too large");
  void *memory = allocateAligned(bytes);
  if (!memory)
    return fail(error, "out of memory: " + std::to_string(bytes) + " bytes");
  std::memset(memory, 0, bytes);
  Array result;
  result.type = dtype;
  result.memory = memory;
  result.bytes = bytes;
  result.sizes = std::move(shape);
  out = std::move(result);
  return true;
}

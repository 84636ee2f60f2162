//===- TensorMaps.cpp - tensor maps of the fake CUDA driver ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../TensorMap.h"
#include "FakeCuda.h"

#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace posenc;
using namespace posenc::fakecuda;

// Returns the bytes of an element of a CUtensorMapDataType; 0 if it is unknown.
static uint8_t getElementBytes(int type) {
  // u8, u16, u32, i32, u64, i64, f16, f32, f64, bf16, and f32 and tf32 with and
  // without denormal numbers.
  static const uint8_t bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
  return type >= 0 && type < int(std::size(bytes)) ? bytes[type] : 0;
}

// Returns why the map is refused, or null.
static const char *encode(ptx::TensorMap &map, int type, uint32_t rank,
                          uint64_t address, const uint64_t *sizes,
                          const uint64_t *strides, const uint32_t *box,
                          const uint32_t *steps, int swizzle, int promotion) {
  map.elementBytes = getElementBytes(type);
  if (!map.elementBytes)
    return "the type of the elements is unknown";
  if (rank < 1 || rank > 5)
    return "the rank is not 1 to 5";
  if (swizzle < 0 || swizzle > 3 || promotion < 0 || promotion > 3)
    return "the swizzle pattern or the promotion is unknown";
  map.rank = rank;
  map.address = address;
  map.swizzle = ptx::TensorMap::Swizzle(swizzle);
  for (uint32_t i = 0; i < rank; ++i) {
    map.sizes[i] = sizes[i];
    map.box[i] = box[i];
    if (i + 1 < rank)
      map.strides[i] = strides[i];
    if (steps[i] != 1)
      return "strides between elements are not supported here";
  }
  return map.check();
}

// Needs no context, as the real function.
POSENC_CUDA cuTensorMapEncodeTiled(void *map, int type, uint32_t rank,
                                   void *address, const uint64_t *sizes,
                                   const uint64_t *strides, const uint32_t *box,
                                   const uint32_t *steps, int interleave,
                                   int swizzle, int promotion, int fill) {
  if (interleave || fill)
    return CUDA_ERROR_NOT_SUPPORTED;
  ptx::TensorMap encoded;
  const char *reason =
      reinterpret_cast<uintptr_t>(map) % alignof(ptx::TensorMap)
          ? "the map is not aligned to 64 bytes"
          : encode(encoded, type, rank, reinterpret_cast<uintptr_t>(address),
                   sizes, strides, box, steps, swizzle, promotion);
  if (reason) {
    errs() << "fake CUDA: tensor map: " << reason << "\n";
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::memcpy(map, &encoded, sizeof(encoded));
  return CUDA_SUCCESS;
}
POSENC_CUDA_SYMBOL(cuTensorMapEncodeTiled)

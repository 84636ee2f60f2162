//===- TensorMap.h - descriptors of tensor copies ---------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_PTX_TENSORMAP_H
#define POSENC_TEST_PTX_TENSORMAP_H

#include <cstdint>

namespace posenc::ptx {

/// The bytes of a CUtensorMap of the fake driver. Dimension 0 is the fastest.
/// NVIDIA does not document its own layout.
struct alignas(64) TensorMap {
  static constexpr uint32_t magicNumber = 0x50414d54;

  /// The pattern in which 16-byte chunks of shared memory are permuted, with
  /// the values of CUtensorMapSwizzle.
  enum Swizzle : uint8_t { None, Swizzle32, Swizzle64, Swizzle128 };

  uint32_t magic = magicNumber;
  uint8_t rank = 0; // 1 to 5
  uint8_t elementBytes = 0;
  Swizzle swizzle = None;
  uint64_t address = 0;
  uint64_t sizes[5] = {};   // in elements
  uint64_t strides[4] = {}; // in bytes, of the dimensions from 1 on
  uint32_t box[5] = {};     // elements that one copy moves

  /// Returns why cuTensorMapEncodeTiled refuses the map, or null. Elements
  /// outside of the tensor read as zeros and are not written; strides between
  /// elements and interleaved layouts do not exist here.
  const char *check() const;

  uint32_t getRowBytes() const { return box[0] * elementBytes; }
  uint64_t getBoxBytes() const {
    uint64_t bytes = elementBytes;
    for (unsigned i = 0; i < rank; ++i)
      bytes *= box[i];
    return bytes;
  }
};
static_assert(sizeof(TensorMap) == 128);

/// Returns the address in shared memory of a byte that would be at `address`
/// without swizzling. The pattern permutes chunks of 16 bytes.
inline uint32_t swizzleAddress(uint32_t address, TensorMap::Swizzle swizzle) {
  uint32_t mask = (1u << swizzle) - 1;
  return address ^ (((address >> 7) & mask) << 4);
}
/// The bytes of a row of a swizzled tile: 16 without swizzling.
inline uint32_t getSwizzleBytes(TensorMap::Swizzle swizzle) {
  return 16u << swizzle;
}

} // namespace posenc::ptx

#endif // POSENC_TEST_PTX_TENSORMAP_H

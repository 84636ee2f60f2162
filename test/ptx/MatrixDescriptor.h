//===- MatrixDescriptor.h - matrices of wgmma in shared memory --*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_PTX_MATRIXDESCRIPTOR_H
#define POSENC_TEST_PTX_MATRIXDESCRIPTOR_H

#include "TensorMap.h"

namespace posenc::ptx {

/// The matrix descriptor of wgmma on sm_90, for elements of 16 bits. An operand
/// has rows (the M or N dimension) and 16 columns (K).
struct MatrixDescriptor {
  uint32_t start, leading, stride; // bytes
  uint32_t baseOffset;
  TensorMap::Swizzle swizzle;

  explicit MatrixDescriptor(uint64_t bits)
      : start(uint32_t(bits & 0x3fff) << 4),
        leading(uint32_t((bits >> 16) & 0x3fff) << 4),
        stride(uint32_t((bits >> 32) & 0x3fff) << 4),
        baseOffset((bits >> 49) & 7) {
    constexpr TensorMap::Swizzle modes[] = {
        TensorMap::None, TensorMap::Swizzle128, TensorMap::Swizzle64,
        TensorMap::Swizzle32};
    swizzle = modes[bits >> 62];
  }

  /// Returns the address of the 16 bytes with the columns from `column` on, a
  /// multiple of 8, of a matrix whose rows are contiguous.
  uint32_t getColumns(uint32_t row, uint32_t column) const {
    uint32_t span = getSwizzleBytes(swizzle);
    uint32_t address = start + row / 8 * stride + row % 8 * span;
    address += swizzle == TensorMap::None ? column / 8 * leading : column * 2;
    return swizzleAddress(address, swizzle);
  }
  /// The same for the rows from `row` on, of a matrix whose columns are
  /// contiguous. Without swizzling, the roles of the two strides are exchanged.
  uint32_t getRows(uint32_t row, uint32_t column) const {
    uint32_t span = getSwizzleBytes(swizzle);
    uint32_t perSpan = span / 2; // rows
    bool isPlain = swizzle == TensorMap::None;
    uint32_t address = start + row / perSpan * (isPlain ? stride : leading) +
                       column / 8 * (isPlain ? leading : stride) +
                       column % 8 * span + row % perSpan * 2;
    return swizzleAddress(address, swizzle);
  }
};

} // namespace posenc::ptx

#endif // POSENC_TEST_PTX_MATRIXDESCRIPTOR_H

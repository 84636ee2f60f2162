//===- Fragments.h - matrices in the registers of a warp --------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_PTX_FRAGMENTS_H
#define POSENC_TEST_PTX_FRAGMENTS_H

#include "Lanes.h"
#include "Rounding.h"

namespace posenc::ptx {

// Lane l has row l / 4 of an 8x8 matrix: the columns 2 * (l % 4) and
// 2 * (l % 4) + 1. Larger matrices consist of several of them.

/// The values of f16 or bf16 as f32, which is exact.
inline float widen(uint16_t bits, bool isBFloat) {
  return isBFloat ? bitCast<float>(uint32_t(bits) << 16)
                  : float(toDouble(Half{bits}));
}

/// Calls `function(row, column, value)` for the elements of an 8x8 matrix of
/// f16 or bf16 in a register of 4 bytes.
template <typename F>
void forHalves(const Warp &warp, const Operand &operand, bool isBFloat,
               F function) {
  for (unsigned lane = 0; lane < warpSize; ++lane) {
    uint32_t pair = warp.get<uint32_t>(operand, lane);
    function(lane / 4, 2 * (lane % 4), widen(pair, isBFloat));
    function(lane / 4, 2 * (lane % 4) + 1, widen(pair >> 16, isBFloat));
  }
}

/// Adds products of A (rows x 16) and B (16 x columns) to `sums`. The sums are
/// exact to f64: the rounding of a tensor core to f32 is not specified.
inline void addProducts(double *sums, const float *a, const float *b,
                        unsigned rows, unsigned columns) {
  for (unsigned row = 0; row < rows; ++row)
    for (unsigned k = 0; k < 16; ++k)
      for (unsigned column = 0; column < columns; ++column)
        sums[row * columns + column] +=
            double(a[row * 16 + k]) * double(b[k * columns + column]);
}

/// Rounds a sum to f32.
inline float roundSum(double sum) {
  return sum == sum ? float(sum) : bitCast<float>(0x7fffffffu);
}

} // namespace posenc::ptx

#endif // POSENC_TEST_PTX_FRAGMENTS_H

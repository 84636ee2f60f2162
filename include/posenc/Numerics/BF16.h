//===- BF16.h - bf16 rounding and bf16 halves of words ----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The bits of a bf16 are the upper half of the bits of the same f32. In a
// vector that is read as 32-bit words, a shift converts the even elements to
// f32 and a mask the odd ones, without the shuffles that an extension in order
// needs.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_NUMERICS_BF16_H
#define POSENC_NUMERICS_BF16_H

#include "posenc/Numerics/ElementwiseBuilder.h"

namespace mlir::posenc {

/// Rounds f32 values, given as i32 bits, to the nearest bf16, ties to even, and
/// returns the bf16 bits in the lower halves of i32. Values for which `isNaN`
/// (i1) holds become quiet NaNs of the same sign.
Value roundToBF16(ElementwiseBuilder &b, Value bits, Value isNaN);

struct BF16Halves {
  Value even, odd;
};

/// Returns the even and the odd elements of a bf16 vector of even length, in
/// f32.
BF16Halves splitBF16(OpBuilder &builder, Location loc, Value value);

/// Joins the upper halves of the 32-bit words in `bits` to one bf16 vector.
Value joinRoundedBF16(OpBuilder &builder, Location loc, BF16Halves bits);

/// The inverse of `splitBF16`, rounding to nearest even in integer arithmetic.
/// The conversion instructions of some processors flush subnormals, and make
/// LLVM drop streaming stores. The lower 16 bits of a NaN must be 0, as a carry
/// would change it; those of NaNs from bf16, and of NaNs that a processor
/// generates, are.
Value joinBF16(OpBuilder &builder, Location loc, BF16Halves halves);

/// Replaces subnormal f32 numbers by zeros of their sign, as the products of
/// bf16 of AVX512-BF16 and AMX do with inputs and results.
Value flushSubnormals(ElementwiseBuilder &b, Value x);

} // namespace mlir::posenc

#endif // POSENC_NUMERICS_BF16_H

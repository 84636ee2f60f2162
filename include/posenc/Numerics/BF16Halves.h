//===- BF16Halves.h - vectors of bf16 as halves of words --------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The bits of a bf16 are the upper half of those of its f32. In a vector read
// as 32-bit words, a shift makes f32 of the even elements and a mask of the odd
// ones, where widening element by element takes shuffles.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_NUMERICS_BF16HALVES_H
#define POSENC_NUMERICS_BF16HALVES_H

#include "mlir/IR/Builders.h"

namespace mlir::posenc {

struct BF16Halves {
  Value even, odd;
};

/// The even and the odd elements of a vector of bf16 of even length, in f32.
BF16Halves splitBF16(OpBuilder &builder, Location loc, Value value);

/// The bf16 in the upper halves of words, side by side.
Value joinRoundedBF16(OpBuilder &builder, Location loc, BF16Halves bits);

/// The inverse of `splitBF16`, rounded to the nearest even, on all processors
/// alike: the instructions of some flush subnormals, and make LLVM take back
/// streaming stores. A NaN must have nothing in its lower 16 bits, from where a
/// carry would go through it: one that came from a bf16, or that the processor
/// makes itself, has not.
Value joinBF16(OpBuilder &builder, Location loc, BF16Halves halves);

} // namespace mlir::posenc

#endif // POSENC_NUMERICS_BF16HALVES_H

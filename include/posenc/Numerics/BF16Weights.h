//===- BF16Weights.h - softmax weights rounded to bf16 ----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An online softmax for weights that are rounded to bf16. A row of scores x, in
// base 2, has an offset, and the weight of a key is 2^(x + offset). The offset
// is -m - 30, where m is the ceiling of the maximum of the first keys that the
// row sees. It is an integer as long as it fits in the mantissa, so a later
// offset differs by a power of 2, and scaling by it rounds nothing.
//
// The row needs a new offset only if a weight reaches 2^1.5. That shows in the
// bits of the sums of weights: from 2 on, bit 30 is set. So the OR of all sums
// of a tile tells whether any row may need one. Whether a row gets one depends
// on its own scores alone.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_NUMERICS_BF16WEIGHTS_H
#define POSENC_NUMERICS_BF16WEIGHTS_H

#include "posenc/Numerics/Softmax.h"

namespace mlir::posenc {

/// The offset of a row without a visible key. The weight of a finite score is
/// infinite for it, which shows in the sum.
double getNoOffset();

/// The lowest finite score. That of the lowest number would be `getNoOffset()`.
double getLowestScore();

/// The new offset of a row, the factor that scales what was computed with the
/// old one, and whether the offset changes (i1).
struct RaisedOffset {
  Value offset, factor, isRaised;
};
/// Returns the state of a row whose weights have the sum `sum`. Its running max
/// is the exponent of a weight of 1, not a score.
SoftmaxState getWeightState(ElementwiseBuilder &b, Value offset, Value sum);

/// Raises the offset of a row if it must be. `largest` is the maximum of the
/// row's new scores, without the offset: plus that of a very low score they may
/// all be equal. The factor is a power of 2, at least 2^-126, so that infinite
/// sums stay infinite.
RaisedOffset raiseOffset(ElementwiseBuilder &b, Value offset, Value largest);

/// The bit of a sum of weights that is set if the sum is at least 2, or NaN.
constexpr uint32_t kLargeSumBit = 0x40000000;

/// The use of weights before they are rounded, which sets their precision.
enum class WeightUse {
  /// Weights are only rounded: the relative error is 7.6e-5, a fiftieth of that
  /// of bf16.
  Rounded,
  /// Weights are added, too: the relative error is 2.8e-6.
  Summed
};
/// Emits 2^x for 16 lanes of f32: 0 for minus infinity, infinity for 128 and
/// more. The vector stage has the instructions VREDUCEPS and VSCALEFPS as
/// intrinsics, which `expandVectorIntrinsic` replaces for targets without
/// AVX-512.
Value emitBF16Exp2(ElementwiseBuilder &b, Value x,
                   WeightUse use = WeightUse::Rounded);

/// Rounds two vectors of 16 weights to one of 32 bf16 by VCVTNE2PS2BF16, also
/// an intrinsic. Weights below the smallest normal number become 0.
Value roundWeights(ElementwiseBuilder &b, Value first, Value second);

/// Whether an operation is an intrinsic of the functions above. They have no
/// effects, which the operation does not tell.
bool isVectorIntrinsic(Operation *op);

/// Emits arithmetic with the bits of an intrinsic of the functions above, but
/// for the sign of a zero. Returns null for other operations, and for VREDUCEPS
/// and VSCALEFPS if `hasAVX512`.
Value expandVectorIntrinsic(OpBuilder &builder, Operation *op, bool hasAVX512);

/// Multiplies the bf16 halves of f32 words by powers of 2, at most 1. Results
/// below the smallest normal number are rounded toward 0.
Value scaleBF16Words(ElementwiseBuilder &b, Value words, Value factor);

} // namespace mlir::posenc

#endif // POSENC_NUMERICS_BF16WEIGHTS_H

//===- AttentionDots.h - attention by products of pairs ---------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// AVX512-BF16 has an instruction, vdpbf16ps, that adds the products of two
// pairs of bf16 to f32 in each lane, as fast as one product of f32. Attention
// of bf16 that uses it keeps the shape of its loops; what they multiply are
// words with a pair each, the even one in the lower half:
//
//   queries   of neighbouring channels, rounded after they are rotated, normed
//             and scaled;
//   keys      the same, by rows; those of a cache that holds them rotated are
//             not rounded again;
//   values    of a channel and two neighbouring keys;
//   weights   of two neighbouring keys, rounded.
//
// Words are in memory of f32, as only pairs of their lanes are numbers. The
// totals are sums of the rounded weights, so that results stay means of values.
//
// The instruction adds first the products of the odd elements, then those of
// the even ones, rounding each sum to nearest even, whatever the MXCSR says;
// products of bf16 are exact. It takes subnormal numbers for 0, and makes them
// 0.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_CPU_ATTENTIONDOTS_H
#define POSENC_LIB_CODEGEN_CPU_ATTENTIONDOTS_H

#include "AttentionCode.h"

namespace mlir::posenc {

/// Words of vectors of f32, rounded to nearest even: of the first two, the next
/// two and so on, lane by lane.
SmallVector<Value> packPairs(ImplicitLocOpBuilder &builder,
                             ArrayRef<Value> vectors);
/// Rounds two vectors of weights, and returns their words. NaN stays.
Value packWeights(ImplicitLocOpBuilder &builder,
                  MutableArrayRef<Value> weights);

/// `sum` with the products of the pairs of two vectors of words.
Value addDots(ImplicitLocOpBuilder &builder, Value a, Value b, Value sum);
/// The same, but without those whose weight, in `weights`, is 0.
Value addSeenDots(ImplicitLocOpBuilder &builder, Value values, Value weights,
                  Value sum);
/// Adds NaN to `sum` where an element of a word is infinite or no number.
Value addUnsafePairs(ImplicitLocOpBuilder &builder, Value words, Value sum);

/// Brings a row of keys to the stack.
void emitKeyPairs(ImplicitLocOpBuilder &builder, const AttentionCode &code,
                  const AttentionRows &rows, ValueRange at, Value row);
/// Brings `count` values from `first` on to the stack. Where they are odd in
/// number the last is in a pair with 0.
void emitValuePairs(ImplicitLocOpBuilder &builder, const AttentionCode &code,
                    const AttentionTask &task, Value first, Value count);

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_CPU_ATTENTIONDOTS_H

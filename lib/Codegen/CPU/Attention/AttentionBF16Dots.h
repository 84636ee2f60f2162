//===- AttentionBF16Dots.h - attention with bf16 dot products ---*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The instruction vdpbf16ps of AVX512-BF16 adds, in each f32 lane, the products
// of two pairs of bf16, as fast as one product of f32. The prefill kernel for
// bf16 uses it without a change of its loops; they multiply 32-bit words that
// hold a pair of bf16 each, the even element in the lower half:
//
//   queries   two neighbouring channels, rounded after the queries are rotated,
//             normed and scaled;
//   keys      two neighbouring channels, by rows; keys that the cache holds
//             rotated are not rounded again;
//   values    one channel of two neighbouring keys;
//   weights   those of two neighbouring keys, rounded.
//
// Buffers of words have the element type f32. The running sum adds the rounded
// weights, so that results stay weighted means of values.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_CPU_ATTENTION_ATTENTIONBF16DOTS_H
#define POSENC_LIB_CODEGEN_CPU_ATTENTION_ATTENTIONBF16DOTS_H

#include "AttentionCode.h"

namespace mlir::posenc {

/// Rounds vectors of f32 to bf16, to nearest even, and returns the words of the
/// first two vectors, of the next two and so on, lane by lane.
SmallVector<Value> packPairs(ImplicitLocOpBuilder &builder,
                             ArrayRef<Value> vectors);
/// Rounds two vectors of weights and returns their words. A NaN stays NaN.
Value packWeights(ImplicitLocOpBuilder &builder,
                  MutableArrayRef<Value> weights);

/// An f32 vector as bf16, and as the sum of two bf16, where it is finite; these
/// are 0 elsewhere, since 0 times infinity is NaN.
struct SplitRow {
  Value rounded, finite, remainder;
};
SplitRow splitRow(OpBuilder &builder, Location loc, Value wide);

/// Adds NaN to `sum` where an element of a word is infinite or NaN.
Value addUnsafePairs(ImplicitLocOpBuilder &builder, Value words, Value sum);

/// Copies a row of keys to `code.keys` as words.
void emitKeyPairs(ImplicitLocOpBuilder &builder, const AttentionCode &code,
                  const AttentionRows &rows, ValueRange at, Value row);
/// Copies `count` rows of values from `first` on to `code.values` as words. If
/// `count` is odd, the last row is paired with 0.
void emitValuePairs(ImplicitLocOpBuilder &builder, const AttentionCode &code,
                    const AttentionTask &task, Value first, Value count);

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_CPU_ATTENTION_ATTENTIONBF16DOTS_H

//===- PosencToLinalg.h - patterns from posenc to linalg --------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operations on tensors of any rank, with dynamic sizes, become linalg.generic
// over pairs, tensor.empty and slices. Operations on memrefs are left alone.
// Destinations are overwritten completely and never read.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_CONVERSION_POSENCTOLINALG_H
#define POSENC_CONVERSION_POSENCTOLINALG_H

namespace mlir {
class DialectRegistry;
class RewritePatternSet;
} // namespace mlir

namespace mlir::posenc {

/// Adds patterns for `posenc.sincos` and `posenc.rotate`. `posenc.rope` must be
/// decomposed into them first (posenc-decompose-rope).
void populatePosencRopeToLinalgPatterns(RewritePatternSet &patterns);

/// Adds the pattern for `posenc.online_attention`. `posenc.attention` must be
/// decomposed into it first (posenc-decompose-attention). With `bf16Weights`,
/// softmax weights are rounded to bf16 before their product with the values if
/// queries and values are bf16.
void populatePosencAttentionToLinalgPatterns(RewritePatternSet &patterns,
                                             bool bf16Weights = false);

/// Registers linalg's AggregatedOpInterface for `posenc.online_attention`, so
/// that `transform.structured.decompose_interface` converts it to linalg.
void registerAttentionDecomposition(DialectRegistry &registry);

/// Adds patterns for `posenc.alibi`, except inside a region of attention, and
/// for `posenc.t5_bucket`.
void populatePosencBiasToArithPatterns(RewritePatternSet &patterns);

/// Adds the pattern for `posenc.sinusoidal`.
void populatePosencSinusoidalToLinalgPatterns(RewritePatternSet &patterns);

} // namespace mlir::posenc

#endif // POSENC_CONVERSION_POSENCTOLINALG_H

//===- PosencToLinalg.h - patterns from posenc to linalg --------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operations on tensors become linalg.generic over pairs, tensor.empty and
// slices: portable, of any rank, with dynamic sizes. Operations on memrefs are
// left alone. Destinations are written whole and never read.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_CONVERSION_POSENCTOLINALG_H
#define POSENC_CONVERSION_POSENCTOLINALG_H

namespace mlir {
class DialectRegistry;
class RewritePatternSet;
} // namespace mlir

namespace mlir::posenc {

/// Patterns for `posenc.sincos` and `posenc.rotate`. A `posenc.rope` is
/// decomposed into them first.
void populatePosencRopeToLinalgPatterns(RewritePatternSet &patterns);

/// The pattern for `posenc.online_attention`. A `posenc.attention` is
/// decomposed into it first. With `bf16Weights`, the weights of values of bf16
/// are rounded to it.
void populatePosencAttentionToLinalgPatterns(RewritePatternSet &patterns,
                                             bool bf16Weights = false);

/// Gives `posenc.online_attention` the interface of aggregated operations, by
/// which `transform.structured.decompose_interface` makes linalg of it.
void registerAttentionDecomposition(DialectRegistry &registry);

/// Patterns for `posenc.alibi`, except in a region of attention, and
/// `posenc.t5_bucket`.
void populatePosencBiasToArithPatterns(RewritePatternSet &patterns);

/// The pattern for `posenc.sinusoidal`.
void populatePosencSinusoidalToLinalgPatterns(RewritePatternSet &patterns);

} // namespace mlir::posenc

#endif // POSENC_CONVERSION_POSENCTOLINALG_H

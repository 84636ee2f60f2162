//===- Raise.h - stages of posenc-raise -------------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RAISE_RAISE_H
#define POSENC_RAISE_RAISE_H

#include "posenc/IR/Posenc.h"

#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace mlir::posenc::raise {

inline constexpr llvm::StringLiteral kPassName = "posenc-raise";

/// Replaces rotary embeddings of the function by posenc.rotate. Reports those
/// that it finds and near misses as remarks.
void raiseRotations(FunctionOpInterface function, RewriterBase &rewriter);

/// Replaces pairs of writes to caches, which the function takes and returns, by
/// posenc.kv_append.
void raiseCaches(FunctionOpInterface function, RewriterBase &rewriter);

/// Replaces softmax attention of the function by posenc.attention. Rotations
/// must have been raised.
void raiseAttention(FunctionOpInterface function, RewriterBase &rewriter);

/// Replaces posenc.rotate by posenc.rope where the tables are cos and sin of
/// integer positions and frequencies that are known. With Precision::Exact,
/// angles are not rounded, in contrast to those of the tables. Reports why
/// other tables are kept.
void raiseFrequencies(FunctionOpInterface function, Precision precision,
                      RewriterBase &rewriter);

/// Replaces tables of sines and cosines of integer or float positions by
/// posenc.sinusoidal. With Precision::HfF32, angles are those of the function:
/// f32 products of positions and frequencies. With Precision::Exact, they are
/// not rounded. Reports near misses as remarks.
void raiseSinusoidal(FunctionOpInterface function, Precision precision,
                     RewriterBase &rewriter);

} // namespace mlir::posenc::raise

#endif // POSENC_RAISE_RAISE_H

//===- ZipVectors.h - elements side by side, computed together --*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_CPU_ZIPVECTORS_H
#define POSENC_LIB_CODEGEN_CPU_ZIPVECTORS_H

#include "mlir/IR/PatternMatch.h"

namespace mlir::posenc {

/// Removes what shuffles vectors that vector.deinterleave takes apart, or
/// vector.interleave puts together, where the elements can stay in their place:
///
/// - Of the same operations on even and odd elements, one on both is left:
///   `interleave(f(even), f(odd))` is `f(row)`.
/// - bf16 is the upper half of f32: the even elements of a row in f32 are its
///   words shifted, and the odd ones its words masked. Rounded to bf16, both
///   are words again.
void zipVectors(RewriterBase &rewriter, Operation *root);

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_CPU_ZIPVECTORS_H

//===- ZipVectors.h - even and odd elements without shuffles ----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_CPU_ROTATION_ZIPVECTORS_H
#define POSENC_LIB_CODEGEN_CPU_ROTATION_ZIPVECTORS_H

#include "mlir/IR/PatternMatch.h"

namespace mlir::posenc {

/// Removes the shuffles of vector.deinterleave and vector.interleave where
/// elements can stay in their lanes:
///
/// - Equal operations on even and odd elements become one operation on the row:
///   `interleave(f(even), f(odd))` is `f(row)`.
/// - bf16 is the upper half of f32. The even elements of an extended row are
///   its 32-bit words shifted, and the odd elements are its words masked;
///   truncation to bf16 joins them to words again.
void zipVectors(RewriterBase &rewriter, Operation *root);

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_CPU_ROTATION_ZIPVECTORS_H

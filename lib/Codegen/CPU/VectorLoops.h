//===- VectorLoops.h - loops over positions and vectors ---------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Helpers of the conversions to vectors: loops over positions and over the
// vectors of a row.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_CPU_VECTORLOOPS_H
#define POSENC_LIB_CODEGEN_CPU_VECTORLOOPS_H

#include "LoopSizes.h"
#include "VectorTarget.h"

#include "mlir/IR/BuiltinOps.h"

namespace mlir::posenc {

/// Splits `[0, count)` into vectors of `lanes` elements, and the remainder into
/// vectors of decreasing powers of two. Returns the first lane and the length
/// of each vector.
SmallVector<std::pair<int64_t, int64_t>> splitIntoVectors(int64_t count,
                                                          int64_t lanes);

/// Returns the lanes of these vectors, in each the even lanes before the odd
/// ones: the order of the operands of `BF16Halves`.
SmallVector<int64_t> getHalvesOrder(int64_t count, int64_t lanes);

/// Emits loops over the vectors of `splitIntoVectors`. The body gets the first
/// lane and the vector length. `count` is static, so no tail needs a mask.
void forEachVector(
    OpBuilder &builder, Location loc, int64_t count, int64_t lanes,
    function_ref<void(OpBuilder &, Location, Value, int64_t)> body);

/// Emits a loop nest over `sizes`, without loops for static sizes of 1. The
/// body gets the indices.
void forEachIndex(OpBuilder &builder, Location loc, ValueRange sizes,
                  function_ref<void(OpBuilder &, Location, ValueRange)> body);

/// Like `checkBuffers`, but also checks the options of the pass.
LogicalResult checkConvertible(Operation *op, const VectorTarget &target);

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_CPU_VECTORLOOPS_H

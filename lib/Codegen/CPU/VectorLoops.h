//===- VectorLoops.h - loops of the conversions to vectors ------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the conversions to vectors have in common: loops over positions and over
// the vectors of a row.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_CPU_VECTORLOOPS_H
#define POSENC_LIB_CODEGEN_CPU_VECTORLOOPS_H

#include "LoopSizes.h"
#include "VectorTarget.h"

#include "mlir/IR/BuiltinOps.h"

namespace mlir::posenc {

/// `[0, count)` in pieces of `lanes`, then what is left in ever shorter powers
/// of two: first lane and length of each.
SmallVector<std::pair<int64_t, int64_t>> splitIntoVectors(int64_t count,
                                                          int64_t lanes);

/// The lanes of these pieces, in each piece the even lanes before the odd ones:
/// the order in which `BF16Halves` wants its operands.
SmallVector<int64_t> getHalvesOrder(int64_t count, int64_t lanes);

/// Loops over these pieces. The body gets the first lane and the vector length.
/// `count` is static, so that no tail needs a mask.
void forEachVector(
    OpBuilder &builder, Location loc, int64_t count, int64_t lanes,
    function_ref<void(OpBuilder &, Location, Value, int64_t)> body);

/// The nest of loops over `sizes`; a static 1 needs none. The body gets the
/// indices.
void forEachIndex(OpBuilder &builder, Location loc, ValueRange sizes,
                  function_ref<void(OpBuilder &, Location, ValueRange)> body);

/// As `checkBuffers`, and the options have to make sense.
LogicalResult checkConvertible(Operation *op, const VectorTarget &target);

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_CPU_VECTORLOOPS_H

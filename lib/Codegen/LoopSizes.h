//===- LoopSizes.h - sizes and addresses of memrefs -------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_LOOPSIZES_H
#define POSENC_LIB_CODEGEN_LOOPSIZES_H

#include "posenc/IR/Posenc.h"

namespace mlir::posenc {

/// Returns the size of a memref's dimension: a constant if it is static, else a
/// memref.dim.
Value getDimSize(OpBuilder &builder, Location loc, Value memref, int64_t dim);

/// Returns the bytes of an element of a memref.
int64_t getElementBytes(Value memref);

/// Returns the bytes of an element times the static sizes of a memref, or
/// nullopt if they exceed an int64_t or elements are no numbers.
std::optional<int64_t> getStaticBytes(MemRefType type);

/// Emits an i1: whether two memrefs start at different addresses.
Value haveDifferentAddresses(OpBuilder &builder, Location loc, Value a,
                             Value b);

/// Returns the sizes of the loops of a positional operation on memrefs.
SmallVector<Value> getLoopSizes(OpBuilder &builder, PositionalOpInterface op);

/// Emits an error unless the operation is in a function of a module and its
/// operands are memrefs whose last dimension is contiguous.
LogicalResult checkBuffers(Operation *op);

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_LOOPSIZES_H

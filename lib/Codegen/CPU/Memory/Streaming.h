//===- Streaming.h - prefetches and streaming stores of rows ----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_CPU_MEMORY_STREAMING_H
#define POSENC_LIB_CODEGEN_CPU_MEMORY_STREAMING_H

#include "CPU/VectorTarget.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include "mlir/IR/Builders.h"

namespace mlir::posenc {

/// Returns the underlying memref of a view.
Value getRoot(Value memref);

/// Whether the memory belongs to an argument of the function or to a constant.
/// Scratch memory is in the caches.
bool mayBeUncached(Value memref);

/// Prefetches the cache line `prefetchDistance` bytes after an element, unless
/// the memory is scratch.
void prefetchRow(OpBuilder &builder, Location loc, Value memref,
                 ValueRange indices, const VectorTarget &target);

/// Stores a vector. A streaming store requires an address that is aligned to
/// the vector's size, or to that of a hardware vector.
void storeRow(OpBuilder &builder, Location loc, Value value, Value memref,
              ValueRange indices, const VectorTarget &target, Access access);

/// Makes a store bypass the caches. Its address must be aligned to its size, or
/// to that of a hardware vector.
void streamTo(vector::StoreOp store, const VectorTarget &target);

/// Emits an i1: whether outputs are written by streaming stores. They must be
/// large, their rows aligned, and none may alias the corresponding one of
/// `inputs`, which may be null.
Value emitCanStream(OpBuilder &builder, Location loc, ValueRange inputs,
                    ValueRange outputs, const VectorTarget &target);

/// Emits `body` once for each kind of access that may be best for the tensors
/// of `inputs` and `outputs`, selected at run time by size, aliasing of outputs
/// with inputs, and alignment. `mayStream`: rows allow streaming stores.
/// `inOrderFrom`: the dimension of the outputs from which on rows are visited
/// in memory order, or nullopt; contiguous rows in memory order have a row
/// policy of their own. `inBlocks`: rows may be processed as several streams.
void chooseAccess(
    OpBuilder &builder, Location loc, ValueRange inputs, ValueRange outputs,
    const VectorTarget &target, bool mayStream,
    std::optional<int64_t> inOrderFrom, bool inBlocks,
    function_ref<void(OpBuilder &, Location, Access access)> body);

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_CPU_MEMORY_STREAMING_H

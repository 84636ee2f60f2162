//===- Streaming.h - rows that go through memory ----------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_CPU_STREAMING_H
#define POSENC_LIB_CODEGEN_CPU_STREAMING_H

#include "VectorTarget.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include "mlir/IR/Builders.h"

namespace mlir::posenc {

/// The memref that views are of.
Value getRoot(Value memref);

/// Whether the memory is, or is a part of, a tensor of the function's caller or
/// a constant. Scratch memory is in the caches.
bool mayBeUncached(Value memref);

/// Asks for the line that is `prefetchDistance` bytes of rows behind an
/// element, unless the memory is scratch.
void prefetchRow(OpBuilder &builder, Location loc, Value memref,
                 ValueRange indices, const VectorTarget &target);

/// Stores a vector; where it is streamed, its place is aligned to its size, or
/// to that of a hardware vector.
void storeRow(OpBuilder &builder, Location loc, Value value, Value memref,
              ValueRange indices, const VectorTarget &target, Access access);

/// Lets a store go past the caches. Its place is aligned to its size, or to
/// that of a hardware vector.
void streamTo(vector::StoreOp store, const VectorTarget &target);

/// Emits whether to store past the caches what is written to tensors: they are
/// large, their rows are aligned, and none is the input at its place in
/// `inputs`, which may be null.
Value emitCanStream(OpBuilder &builder, Location loc, ValueRange inputs,
                    ValueRange outputs, const VectorTarget &target);

/// Emits `body` for each kind of access that may be best for the tensors that
/// `inputs` and `outputs` are views of, under the conditions that tell them
/// apart at run time: size; `outputs` that are no input; alignment.
/// `mayStream` is whether rows allow it; without inputs all is written anew.
/// `inOrderFrom` is the dimension of the outputs from which on rows are visited
/// in their order, if they are: rows in order have a policy of their own where
/// the memory is contiguous from there on, as is seen at run time. `inBlocks`
/// is whether rows may be taken from several places in turn.
void chooseAccess(
    OpBuilder &builder, Location loc, ValueRange inputs, ValueRange outputs,
    const VectorTarget &target, bool mayStream,
    std::optional<int64_t> inOrderFrom, bool inBlocks,
    function_ref<void(OpBuilder &, Location, Access access)> body);

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_CPU_STREAMING_H

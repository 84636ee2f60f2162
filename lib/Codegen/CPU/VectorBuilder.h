//===- VectorBuilder.h - vectors, loops and branches ------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_CPU_VECTORBUILDER_H
#define POSENC_LIB_CODEGEN_CPU_VECTORBUILDER_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::posenc {

/// Returns the constant vector with `value` in all lanes.
Value createSplat(ImplicitLocOpBuilder &builder, VectorType type, double value);
Value broadcast(ImplicitLocOpBuilder &builder, VectorType type, Value scalar);
Value loadVector(ImplicitLocOpBuilder &builder, VectorType type, Value memref,
                 ValueRange indices);
void storeVector(ImplicitLocOpBuilder &builder, Value vector, Value memref,
                 ValueRange indices);

/// Emits a loop from `from` to `to`; `body` returns the loop-carried values.
/// Returns the results of the loop.
ValueRange createLoop(
    ImplicitLocOpBuilder &builder, Value from, Value to, int64_t step,
    ValueRange init,
    function_ref<SmallVector<Value>(Value index, ValueRange carried)> body);
void createLoop(ImplicitLocOpBuilder &builder, Value from, Value to,
                int64_t step, function_ref<void(Value index)> body);
/// Emits a branch without results; `otherwise` may be null.
void emitIf(ImplicitLocOpBuilder &builder, Value condition,
            function_ref<void()> then,
            function_ref<void()> otherwise = nullptr);
/// Emits a loop that LLVM does not unroll. Unrolled, it would keep loads in
/// registers and spill them.
ValueRange createRolledLoop(
    ImplicitLocOpBuilder &builder, Value from, Value to, int64_t step,
    ValueRange init,
    function_ref<SmallVector<Value>(Value index, ValueRange carried)> body);

/// Transposes a square of as many vectors as they have lanes.
SmallVector<Value> transpose(ImplicitLocOpBuilder &builder,
                             SmallVector<Value> vectors);

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_CPU_VECTORBUILDER_H

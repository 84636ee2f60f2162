//===- CreateGeneric.h - structured operations ------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_IR_CREATEGENERIC_H
#define POSENC_IR_CREATEGENERIC_H

#include "mlir/IR/Builders.h"

namespace mlir::posenc {

/// Creates a linalg.generic of parallel loops and returns its result. `maps`
/// are those of the inputs and of `init`; without any, all are the identity.
/// `body` gets the elements of the inputs and of `init`, and returns the one of
/// the result.
Value createParallelGeneric(
    OpBuilder &builder, Location loc, ValueRange inputs, Value init,
    ArrayRef<AffineMap> maps,
    function_ref<Value(OpBuilder &, Location, ValueRange)> body);

/// Extracts a slice with strides of 1, without the dimensions `dropped`, whose
/// sizes are 1.
Value extractSlice(OpBuilder &builder, Location loc, Value tensor,
                   ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes,
                   ArrayRef<int64_t> dropped = {});

} // namespace mlir::posenc

#endif // POSENC_IR_CREATEGENERIC_H

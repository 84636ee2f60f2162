//===- FloatBits.h - device-independent float arithmetic --------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// SPIR-V does not specify whether Fma rounds once, nor how conversions to f16
// round, and it has no bf16. These functions use only sums and products, which
// round to nearest, and integer operations, so all devices give the same bits.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_SPIRV_FLOATBITS_H
#define POSENC_LIB_CODEGEN_SPIRV_FLOATBITS_H

#include "mlir/IR/Builders.h"

namespace mlir::posenc {

/// Emits a*b + c, rounded once, for scalars of f32 or f64. For f64 the products
/// must neither overflow nor underflow, and 2^27 times a factor must be finite.
/// The result is a call of a `spirv.func`, which is created in the module
/// around the insertion point if there is none.
Value emitFusedMultiplyAdd(OpBuilder &builder, Location loc, Value a, Value b,
                           Value c);

/// Rounds f32 to the bits of a bf16 or f16 in the lower half of an i32: to
/// nearest, ties to even; a NaN stays NaN.
Value emitNarrow(OpBuilder &builder, Location loc, Value value, Type type);

/// Converts the bits of a bf16 or f16 in the lower half of an i32 to f32.
Value emitWiden(OpBuilder &builder, Location loc, Value bits, Type type);

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_SPIRV_FLOATBITS_H

//===- ExpandMath.h - which functions have an expansion ---------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_MATH_EXPANDMATH_H
#define POSENC_LIB_CODEGEN_MATH_EXPANDMATH_H

namespace mlir {
class Operation;
} // namespace mlir

namespace mlir::posenc {

/// Whether posenc-expand-math makes an operation of the math dialect on
/// scalars, or on vectors of that element type, arithmetic or an instruction
/// that all targets have.
bool hasMathExpansion(Operation *op);

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_MATH_EXPANDMATH_H

//===- FlagAssertions.h - assertions on elements of tensors -----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_ABI_FLAGASSERTIONS_H
#define POSENC_LIB_ABI_FLAGASSERTIONS_H

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::posenc {

/// Replaces assertions, of the function's block or of linalg operations in it,
/// by a last result of the function that says which of them fails
/// (kAssertionsAttrName). Others are kept, and those on which a division
/// relies.
void flagAssertions(func::FuncOp function, ArrayRef<cf::AssertOp> assertions);

} // namespace mlir::posenc

#endif // POSENC_LIB_ABI_FLAGASSERTIONS_H

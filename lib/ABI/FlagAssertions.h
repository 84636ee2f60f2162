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

/// Replaces assertions by a last result of the function that says which of them
/// fails first (`assertions` of #posenc.kernel). Those in scf.for, scf.if and
/// scf.while become values that the loops carry. Integer divisions that could
/// then end the process are guarded, and no loop runs forever because an
/// assertion failed. Assertions that `explainUnflagged` explains are kept.
void flagAssertions(func::FuncOp function, ArrayRef<cf::AssertOp> assertions);

/// Returns the reason why an assertion cannot become a result of its function,
/// or an empty string.
std::string explainUnflagged(cf::AssertOp assertion);

} // namespace mlir::posenc

#endif // POSENC_LIB_ABI_FLAGASSERTIONS_H

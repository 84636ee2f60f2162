//===- Loops.h - insertion points outside of loops --------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TRANSFORMS_LOOPS_H
#define POSENC_TRANSFORMS_LOOPS_H

#include "mlir/IR/Builders.h"

namespace mlir::posenc {

/// Sets the insertion point before the operation, or before the outermost
/// `scf.for` around it in which `value` is invariant.
void setInsertionPointBeforeLoops(OpBuilder &builder, Operation *op,
                                  Value value);

} // namespace mlir::posenc

#endif // POSENC_TRANSFORMS_LOOPS_H

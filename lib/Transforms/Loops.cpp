//===- Loops.cpp - insertion points outside of loops ----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Transforms/Loops.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

void mlir::posenc::setInsertionPointBeforeLoops(OpBuilder &builder,
                                                Operation *op, Value value) {
  // Also leaves scf.if operations that are inside such a loop.
  Operation *before = op;
  for (Operation *inner = op;
       isa_and_nonnull<scf::ForOp, scf::IfOp>(inner->getParentOp());) {
    inner = inner->getParentOp();
    auto loop = dyn_cast<scf::ForOp>(inner);
    if (inner->isAncestor(value.getParentRegion()->getParentOp()))
      break;
    if (loop)
      before = loop;
  }
  builder.setInsertionPoint(before);
}

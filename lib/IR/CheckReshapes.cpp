//===- CheckReshapes.cpp - dimensions of reshapes -------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/IR/CheckReshapes.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

static LogicalResult check(Operation *op, ArrayRef<ReassociationIndices> groups,
                           RankedTensorType wide) {
  for (const ReassociationIndices &group : groups)
    for (int64_t dim : group)
      if (dim < 0 || dim >= wide.getRank())
        return op->emitError() << "groups dimension " << dim << " of " << wide
                               << ", which has " << wide.getRank();
  return success();
}

LogicalResult mlir::posenc::checkReshapes(Operation *root) {
  return failure(root->walk([](Operation *op) {
                       LogicalResult result = success();
                       if (auto collapse =
                               dyn_cast<tensor::CollapseShapeOp>(op))
                         result = check(op, collapse.getReassociationIndices(),
                                        collapse.getSrcType());
                       if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
                         result = check(op, expand.getReassociationIndices(),
                                        expand.getResultType());
                       return WalkResult(result);
                     })
                     .wasInterrupted());
}

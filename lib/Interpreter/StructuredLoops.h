//===- StructuredLoops.h - loops over elements of tensors -------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_INTERPRETER_STRUCTUREDLOOPS_H
#define POSENC_LIB_INTERPRETER_STRUCTUREDLOOPS_H

#include "Evaluator.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::posenc {

/// Where an operand's element stands in the array, for the indices of loops.
class ElementMap {
public:
  ElementMap(AffineMap map, const Shape &shape);

  bool isLinear() const { return linear; }
  /// Of a linear map: what a step of each loop adds, and where it begins.
  ArrayRef<int64_t> getStrides() const { return strides; }
  int64_t getOffset() const { return offset; }
  /// Nothing if that is outside.
  std::optional<int64_t> getPosition(ArrayRef<int64_t> indices) const;
  /// Whether a linear map stays inside for loops that are not empty.
  bool isInside(ArrayRef<int64_t> ranges) const;

private:
  AffineMap map;
  Shape shape;
  bool linear = true;
  SmallVector<int64_t> strides;
  int64_t offset = 0;
};

/// How often each loop runs, as the shapes of the operands have it: failure if
/// they disagree.
FailureOr<SmallVector<int64_t>> getLoopRanges(linalg::LinalgOp op,
                                              Evaluator &values);

/// Calls `visit(indices, positions)` for all indices, the last loop innermost.
/// Failure if a map leaves its tensor.
LogicalResult
forEachPoint(Operation *op, ArrayRef<int64_t> ranges, ArrayRef<ElementMap> maps,
             function_ref<void(ArrayRef<int64_t>, ArrayRef<int64_t>)> visit);

} // namespace mlir::posenc

#endif // POSENC_LIB_INTERPRETER_STRUCTUREDLOOPS_H

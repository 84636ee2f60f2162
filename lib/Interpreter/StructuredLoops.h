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

/// The row-major position of an operand's element for given loop indices.
class ElementMap {
public:
  ElementMap(AffineMap map, const Shape &shape);

  bool isLinear() const { return linear; }
  /// The stride of each loop and the offset, for a linear map.
  ArrayRef<int64_t> getStrides() const { return strides; }
  int64_t getOffset() const { return offset; }
  /// Returns nullopt if the element is out of bounds.
  std::optional<int64_t> getPosition(ArrayRef<int64_t> indices) const;
  /// Whether a linear map stays in bounds for all indices within `ranges`, none
  /// of which may be 0.
  bool isInside(ArrayRef<int64_t> ranges) const;

private:
  AffineMap map;
  Shape shape;
  bool linear = true;
  SmallVector<int64_t> strides;
  int64_t offset = 0;
};

/// Returns the range of each loop, which follows from the shapes of the
/// operands. Reports an error if the shapes disagree.
FailureOr<SmallVector<int64_t>> getLoopRanges(linalg::LinalgOp op,
                                              Evaluator &values);

/// Calls `visit(indices, positions)` for all loop indices, with the last loop
/// innermost; there is one position per map. Reports an error if a map is out
/// of bounds.
LogicalResult
forEachPoint(Operation *op, ArrayRef<int64_t> ranges, ArrayRef<ElementMap> maps,
             function_ref<void(ArrayRef<int64_t>, ArrayRef<int64_t>)> visit);

} // namespace mlir::posenc

#endif // POSENC_LIB_INTERPRETER_STRUCTUREDLOOPS_H

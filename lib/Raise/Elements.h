//===- Elements.h - how elements of tensors are computed --------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_RAISE_ELEMENTS_H
#define POSENC_RAISE_ELEMENTS_H

#include "Expr.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::posenc::raise {

/// How an operation computes an element of its result.
enum class ElementKind {
  /// It is an element of an operand, or a constant.
  Move,
  /// It is a function of elements of operands.
  Compute
};

/// Expands elements of tensors into expressions of elements of other tensors:
/// slices, reshapes, broadcasts and elementwise operations are followed to
/// their operands, unless `isLeaf` says otherwise. Reductions of at most four
/// elements are unrolled; others are leaves, like arguments and all other
/// operations.
class Elements {
public:
  using IsLeaf = std::function<bool(Value, ElementKind)>;

  Elements(ExprContext &exprs, IsLeaf isLeaf)
      : exprs(exprs), isLeaf(std::move(isLeaf)) {}

  /// Returns the element of a tensor at the indices.
  const Expr *get(Value tensor, ArrayRef<const Expr *> indices);

  /// Returns the value of an integer outside of the loops, or null.
  const Expr *getValue(OpFoldResult value);

  /// Returns what a structured operation adds to the element in one step of its
  /// loops: the value that it yields for the destination `result`. `loops` are
  /// the loops' indices, `accumulators` the elements of the destinations.
  const Expr *getYielded(linalg::LinalgOp op, unsigned result,
                         ArrayRef<const Expr *> loops,
                         ArrayRef<const Expr *> accumulators);

  /// Whether the budget of expressions is used up; results are leaves then.
  bool isExhausted() const { return numSteps > kMaxSteps; }

private:
  using Indices = ArrayRef<const Expr *>;
  using Scalars = llvm::SmallDenseMap<Value, const Expr *>;

  const Expr *expand(OpResult result, Indices indices);
  const Expr *expandLinalg(linalg::LinalgOp op, unsigned result,
                           Indices indices);
  const Expr *expandElementwise(Operation *op, Indices indices);
  const Expr *expandConstant(ElementsAttr elements, Indices indices);
  const Expr *expandSlice(tensor::ExtractSliceOp op, Indices indices);
  const Expr *expandInsert(tensor::InsertSliceOp op, Indices indices);
  const Expr *expandPad(tensor::PadOp op, Indices indices);
  const Expr *expandConcat(tensor::ConcatOp op, Indices indices);
  const Expr *expandReshape(Value source, RankedTensorType wide,
                            ArrayRef<ReassociationIndices> groups,
                            bool isCollapse, Indices indices);
  const Expr *getScalar(Value value, Scalars &scalars, Indices loops);
  const Expr *getIndexValue(OpFoldResult value);

  static constexpr unsigned kMaxSteps = 200000;

  ExprContext &exprs;
  IsLeaf isLeaf;
  llvm::DenseMap<const Expr *, const Expr *> known;
  unsigned numSteps = 0, depth = 0;
};

SizeOrigin getSizeOrigin(Value tensor, int64_t dim);
SizeOrigin getSizeOrigin(OpFoldResult size);

/// Returns how many elements more the dimension has than the loop, 0 or 1, or
/// nullopt if it has another size.
std::optional<unsigned> getExcess(const ExprContext &exprs, Value tensor,
                                  int64_t dim, unsigned loop);

/// Whether an operation only moves elements: it computes nothing.
bool isMovement(Operation *op);

/// Returns the tensors that an operation reads, also those in its regions.
SmallVector<Value> getReadTensors(Operation *op);

/// Whether few operations compute the tensor without an argument.
bool isComputedConstant(Value tensor);

} // namespace mlir::posenc::raise

#endif // POSENC_RAISE_ELEMENTS_H

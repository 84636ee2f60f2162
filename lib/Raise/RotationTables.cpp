//===- RotationTables.cpp - tables of raised rotations --------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RotationTables.h"

#include "Materialize.h"

#include "posenc/IR/CreateGeneric.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace mlir::posenc::raise;

void mlir::posenc::raise::collectLoops(const ExprContext &exprs,
                                       const Expr *expr,
                                       llvm::SmallBitVector &loops) {
  unsigned numLoops = exprs.getSizes().size();
  loops.resize(numLoops);
  if (expr->kind == Expr::Kind::Index)
    for (unsigned loop = 0; loop + 1 < numLoops; ++loop)
      if (expr->index.isFunctionOfDim(loop))
        loops.set(loop);
  for (const Expr *operand : expr->operands)
    collectLoops(exprs, operand, loops);
}

namespace {
/// A slice of a tensor: an element for each index of some loops.
struct Slice {
  SmallVector<OpFoldResult> offsets, sizes, strides;
  SmallVector<int64_t> shape;
};
} // namespace

/// Returns the slice of the tensor that has the elements, or fails.
static FailureOr<Slice> getSlice(OpBuilder &builder, Location loc,
                                 ExprContext &exprs, const Expr *element,
                                 ArrayRef<int64_t> dims, Value like,
                                 int64_t numLanes) {
  if (element->kind != Expr::Kind::Element)
    return failure();
  Slice slice;
  auto add = [&](int64_t offset, OpFoldResult size, int64_t stride) {
    slice.offsets.push_back(builder.getIndexAttr(offset));
    slice.sizes.push_back(size);
    slice.strides.push_back(builder.getIndexAttr(stride));
  };
  unsigned lane = exprs.getSizes().size() - 1;
  unsigned next = 0;
  bool hasLanes = false;
  for (const Expr *index : element->operands) {
    if (index->kind != Expr::Kind::Index || hasLanes)
      return failure();
    if (std::optional<int64_t> number = index->getIndexConstant()) {
      add(*number, builder.getIndexAttr(1), 1);
      continue;
    }
    if (next < dims.size()) {
      if (index->index != getAffineDimExpr(dims[next], exprs.getContext()))
        return failure();
      add(0, tensor::getMixedSize(builder, loc, like, dims[next]), 1);
      slice.shape.push_back(exprs.getSizes()[dims[next]]);
      ++next;
      continue;
    }
    // The lane is base + stride * k.
    auto at = [&, expr = index->index](int64_t k) {
      AffineExpr moved =
          expr.replace(getAffineDimExpr(lane, exprs.getContext()),
                       getAffineConstantExpr(k, exprs.getContext()));
      auto number = dyn_cast<AffineConstantExpr>(moved);
      return number ? std::optional(number.getValue()) : std::nullopt;
    };
    if (!at(0) || !at(1) || *at(1) <= *at(0))
      return failure();
    add(*at(0), builder.getIndexAttr(numLanes), *at(1) - *at(0));
    slice.shape.push_back(numLanes);
    hasLanes = true;
  }
  if (next != dims.size() || !hasLanes)
    return failure();
  return slice;
}

/// Returns the tensor of the element with its last two dimensions as one, if
/// their indices are the quotient and the remainder of the lane. Else null.
static Value joinLanes(OpBuilder &builder, Location loc, ExprContext &exprs,
                       const Expr *element, int64_t numLanes) {
  if (element->kind != Expr::Kind::Element || element->operands.size() < 2)
    return {};
  auto type = cast<RankedTensorType>(element->tensor.getType());
  int64_t rank = type.getRank(), inner = type.getShape().back();
  AffineExpr lane =
      getAffineDimExpr(exprs.getSizes().size() - 1, exprs.getContext());
  // A dynamic size is negative.
  if (inner <= 0 || numLanes % inner != 0 ||
      type.getDimSize(rank - 2) != numLanes / inner ||
      element->operands[rank - 2]->index != lane.floorDiv(inner) ||
      element->operands[rank - 1]->index != lane % inner)
    return {};
  SmallVector<ReassociationIndices> groups;
  for (int64_t dim = 0; dim < rank - 1; ++dim)
    groups.push_back({dim});
  groups.back().push_back(rank - 1);
  return tensor::CollapseShapeOp::create(builder, loc, element->tensor, groups);
}

Value mlir::posenc::raise::createTable(OpBuilder &builder, Location loc,
                                       ExprContext &exprs, const Expr *expr,
                                       ArrayRef<int64_t> dims, Value like,
                                       int64_t numLanes) {
  // Lanes in two dimensions become one.
  if (Value joined = joinLanes(builder, loc, exprs, expr, numLanes)) {
    SmallVector<const Expr *> indices(expr->operands.drop_back(2));
    indices.push_back(exprs.getLoop(exprs.getSizes().size() - 1));
    expr = exprs.getElement(joined, indices);
  }
  FailureOr<Slice> slice =
      getSlice(builder, loc, exprs, expr, dims, like, numLanes);
  if (succeeded(slice)) {
    auto type = RankedTensorType::get(slice->shape, expr->type);
    auto source = cast<RankedTensorType>(expr->tensor.getType());
    if (type == source)
      return expr->tensor;
    return tensor::ExtractSliceOp::create(builder, loc, type, expr->tensor,
                                          slice->offsets, slice->sizes,
                                          slice->strides);
  }
  SmallVector<OpFoldResult> sizes;
  for (int64_t dim : dims)
    sizes.push_back(tensor::getMixedSize(builder, loc, like, dim));
  sizes.push_back(builder.getIndexAttr(numLanes));
  Value init = tensor::EmptyOp::create(builder, loc, sizes, expr->type);
  // The last loop is that of the lanes.
  SmallVector<int64_t> loops(dims);
  loops.push_back(exprs.getSizes().size() - 1);
  return createParallelGeneric(
      builder, loc, {}, init, {},
      [&](OpBuilder &b, Location loc, ValueRange) -> Value {
        Materializer values(b, loc, exprs,
                            createLoopIndices(b, loc, exprs, loops));
        return values.get(expr);
      });
}

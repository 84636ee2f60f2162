//===- Positions.cpp - tensors of positions -------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Positions.h"

#include "Elements.h"
#include "Materialize.h"

#include "posenc/IR/CreateGeneric.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::raise;

/// Whether the slice of the tensor is the tensor of positions: its indices are
/// the loops of `dims`, in order, and constants.
static bool isSliceOf(const ExprContext &exprs, const Expr *element,
                      ArrayRef<int64_t> dims) {
  Type type = element->type;
  if (element->kind != Expr::Kind::Element || dims.empty() ||
      !(type.isInteger(32) || type.isInteger(64) || isa<FloatType>(type)))
    return false;
  unsigned next = 0;
  for (const Expr *index : element->operands) {
    if (index->getIndexConstant())
      continue;
    if (index->kind != Expr::Kind::Index || next == dims.size() ||
        index->index != getAffineDimExpr(dims[next++], exprs.getContext()))
      return false;
  }
  return next == dims.size();
}

Value mlir::posenc::raise::createPositions(OpBuilder &builder, Location loc,
                                           ExprContext &exprs,
                                           const Expr *position,
                                           ArrayRef<int64_t> dims,
                                           ArrayRef<OpFoldResult> sizes) {
  if (isSliceOf(exprs, position, dims)) {
    SmallVector<int64_t> shape;
    for (OpFoldResult size : sizes)
      shape.push_back(getConstantIntValue(size).value_or(ShapedType::kDynamic));
    Value tensor = position->tensor;
    auto sliced = RankedTensorType::get(shape, position->type);
    bool isWhole = tensor.getType() == sliced;
    for (auto [dim, size] : llvm::enumerate(sizes))
      isWhole = isWhole && getSizeOrigin(size) == getSizeOrigin(tensor, dim);
    if (isWhole)
      return tensor;
    SmallVector<OpFoldResult> offsets, sliceSizes,
        strides(position->operands.size(), builder.getIndexAttr(1));
    unsigned next = 0;
    for (const Expr *index : position->operands) {
      std::optional<int64_t> number = index->getIndexConstant();
      offsets.push_back(builder.getIndexAttr(number.value_or(0)));
      sliceSizes.push_back(number ? OpFoldResult(builder.getIndexAttr(1))
                                  : sizes[next++]);
    }
    return tensor::ExtractSliceOp::create(builder, loc, sliced, tensor, offsets,
                                          sliceSizes, strides);
  }
  Type element = position->type;
  if (!isa<FloatType>(element) && !element.isInteger(32))
    element = builder.getI64Type();
  Value init = tensor::EmptyOp::create(builder, loc, sizes, element);
  return createParallelGeneric(
      builder, loc, {}, init, {},
      [&](OpBuilder &b, Location loc, ValueRange) -> Value {
        Materializer values(b, loc, exprs,
                            createLoopIndices(b, loc, exprs, dims));
        Value value = values.get(position);
        if (value.getType().isIndex())
          value = arith::IndexCastOp::create(b, loc, element, value);
        else if (value.getType() != element)
          value = arith::ExtSIOp::create(b, loc, element, value);
        return value;
      });
}

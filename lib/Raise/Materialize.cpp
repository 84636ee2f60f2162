//===- Materialize.cpp - operations for expressions -----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Materialize.h"

#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::posenc::raise;

Value Materializer::getIndex(const Expr *expr) {
  if (std::optional<int64_t> number = expr->getIndexConstant())
    return arith::ConstantOp::create(
        builder, loc, builder.getIntegerAttr(expr->type, *number));
  SmallVector<Value> symbols;
  for (Value symbol : exprs.getSymbols())
    symbols.push_back(getValueOrCreateCastToIndexLike(
        builder, loc, builder.getIndexType(), symbol));
  Value index =
      affine::expandAffineExpr(builder, loc, expr->index, loops, symbols);
  return getValueOrCreateCastToIndexLike(builder, loc, expr->type, index);
}

Value Materializer::get(const Expr *expr) {
  if (Value value = known.lookup(expr))
    return value;
  Value value;
  SmallVector<Value> operands;
  for (const Expr *operand : expr->operands)
    operands.push_back(get(operand));
  switch (expr->kind) {
  case Expr::Kind::Index:
    value = getIndex(expr);
    break;
  case Expr::Kind::Constant:
    value = arith::ConstantOp::create(builder, loc, expr->constant);
    break;
  case Expr::Kind::Element:
    for (Value &index : operands)
      index = getValueOrCreateCastToIndexLike(builder, loc,
                                              builder.getIndexType(), index);
    value = tensor::ExtractOp::create(builder, loc, expr->tensor, operands);
    break;
  case Expr::Kind::Operation: {
    OperationState state(loc, *expr->name);
    state.addOperands(operands);
    state.addTypes(expr->type);
    state.propertiesAttr = expr->properties;
    value = builder.create(state)->getResult(0);
    break;
  }
  }
  return known[expr] = value;
}

SmallVector<Value>
mlir::posenc::raise::createLoopIndices(OpBuilder &builder, Location loc,
                                       const ExprContext &exprs,
                                       ArrayRef<int64_t> dims) {
  SmallVector<Value> indices(exprs.getSizes().size());
  Value any;
  for (auto [number, dim] : llvm::enumerate(dims))
    any = indices[dim] = linalg::IndexOp::create(builder, loc, number);
  // A table of one row has a dimension that is no loop.
  if (!any)
    any = linalg::IndexOp::create(builder, loc, 0);
  for (Value &index : indices)
    if (!index)
      index = any;
  return indices;
}

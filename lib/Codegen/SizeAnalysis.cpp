//===- SizeAnalysis.cpp - which dynamic sizes are equal ---------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SizeAnalysis.h"

#include "posenc/IR/Posenc.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::posenc;

SizeAnalysis::SizeAnalysis(FunctionOpInterface function) {
  function->walk([&](Operation *op) { visit(op); });
}

int64_t SizeAnalysis::getId(Value tensor, int64_t dim) {
  int64_t next = ids.size();
  auto [entry, inserted] = ids.insert({{tensor, dim}, next});
  if (inserted)
    classes.insert(entry->second);
  return entry->second;
}

int64_t SizeAnalysis::getClass(Value tensor, int64_t dim) {
  return classes.getLeaderValue(getId(tensor, dim));
}

std::optional<int64_t> SizeAnalysis::getStaticSize(int64_t sizeClass) const {
  for (auto [dimension, id] : ids) {
    auto [tensor, dim] = dimension;
    auto type = dyn_cast<ShapedType>(tensor.getType());
    if (type && !type.isDynamicDim(dim) &&
        classes.getLeaderValue(id) == sizeClass)
      return type.getDimSize(dim);
  }
  return std::nullopt;
}

std::optional<unsigned>
SizeAnalysis::getScalarArgument(int64_t sizeClass) const {
  for (auto [id, argument] : scalars)
    if (classes.getLeaderValue(id) == sizeClass)
      return argument;
  return std::nullopt;
}

void SizeAnalysis::unite(Value a, int64_t dimA, Value b, int64_t dimB) {
  int64_t idA = getId(a, dimA), idB = getId(b, dimB);
  classes.unionSets(idA, idB);
}

void SizeAnalysis::uniteAll(Value a, Value b) {
  auto typeA = dyn_cast<RankedTensorType>(a.getType());
  auto typeB = dyn_cast<RankedTensorType>(b.getType());
  if (typeA && typeB && typeA.getRank() == typeB.getRank())
    for (int64_t dim = 0; dim < typeA.getRank(); ++dim)
      unite(a, dim, b, dim);
}

/// The dimension has the size of another tensor's, or of a scalar argument.
void SizeAnalysis::uniteSize(Value tensor, int64_t dim, OpFoldResult size) {
  auto value = dyn_cast<Value>(size);
  if (!value)
    return;
  if (auto cast = value.getDefiningOp<arith::IndexCastOp>())
    value = cast.getIn();
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (isa<FunctionOpInterface>(argument.getOwner()->getParentOp()))
      scalars.push_back({getId(tensor, dim), argument.getArgNumber()});
    return;
  }
  if (auto dimOp = value.getDefiningOp<tensor::DimOp>())
    if (std::optional<int64_t> source = dimOp.getConstantIndex())
      unite(tensor, dim, dimOp.getSource(), *source);
}

void SizeAnalysis::visit(Operation *op) {
  if (auto dps = dyn_cast<DestinationStyleOpInterface>(op))
    for (OpResult result : op->getResults())
      uniteAll(result, dps.getTiedOpOperand(result)->get());

  if (auto positional = dyn_cast<PositionalOpInterface>(op)) {
    DenseMap<int64_t, std::pair<Value, int64_t>> first;
    for (OpOperand &operand : op->getOpOperands())
      for (auto [dim, symbol] : llvm::enumerate(
               positional.getDimSymbols(operand.getOperandNumber()))) {
        if (symbol < 0)
          continue;
        auto [known, inserted] = first.insert({symbol, {operand.get(), dim}});
        if (!inserted)
          unite(operand.get(), dim, known->second.first, known->second.second);
      }
    return;
  }
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op)) {
    DenseMap<unsigned, std::pair<Value, int64_t>> first;
    for (OpOperand &operand : op->getOpOperands()) {
      AffineMap map = linalgOp.getMatchingIndexingMap(&operand);
      for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
        auto loop = dyn_cast<AffineDimExpr>(expr);
        if (!loop)
          continue;
        auto [known, inserted] =
            first.insert({loop.getPosition(), {operand.get(), dim}});
        if (!inserted)
          unite(operand.get(), dim, known->second.first, known->second.second);
      }
    }
    return;
  }
  if (auto empty = dyn_cast<tensor::EmptyOp>(op)) {
    for (auto [dim, size] : llvm::enumerate(empty.getMixedSizes()))
      uniteSize(empty, dim, size);
    return;
  }
  if (auto cast = dyn_cast<tensor::CastOp>(op))
    return uniteAll(cast.getSource(), cast.getDest());
  if (auto insert = dyn_cast<tensor::InsertSliceOp>(op)) {
    uniteAll(insert.getResult(), insert.getDest());
    if (insert.getSourceType().getRank() == insert.getType().getRank())
      for (auto [dim, size] : llvm::enumerate(insert.getMixedSizes()))
        uniteSize(insert.getSource(), dim, size);
    return;
  }
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
    if (slice.getSourceType().getRank() == slice.getType().getRank())
      for (auto [dim, size] : llvm::enumerate(slice.getMixedSizes()))
        uniteSize(slice.getResult(), dim, size);
}

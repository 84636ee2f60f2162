//===- RowReads.cpp - rows of tables that tensor.extract reads ------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An operation that adds the row of a learned table at each position reads it
// with `tensor.extract %table[%position, %channel]`. The row does not change
// along the channels, so for a single position it is a slice, which is an
// ordinary input.
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/Tiling.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::posenc;

static bool isElementwise(Operation &op) {
  return isa<arith::ArithDialect, math::MathDialect>(op.getDialect()) ||
         isa<linalg::IndexOp, affine::AffineApplyOp>(op);
}

/// Returns the values of the body that are the same along the loop `vector`.
static DenseSet<Value> getRowValues(linalg::GenericOp op, unsigned vector) {
  DenseSet<Value> values;
  for (OpOperand *input : op.getDpsInputOperands())
    if (!op.getMatchingIndexingMap(input).isFunctionOfDim(vector))
      values.insert(op.getMatchingBlockArgument(input));
  auto isRowValue = [&](Value value) {
    return value.getParentBlock() != op.getBody() || values.contains(value);
  };
  for (Operation &inner : op.getBody()->without_terminator()) {
    auto index = dyn_cast<linalg::IndexOp>(inner);
    if (isElementwise(inner) && !(index && index.getDim() == vector) &&
        llvm::all_of(inner.getOperands(), isRowValue))
      values.insert(inner.result_begin(), inner.result_end());
  }
  return values;
}

/// Returns the operations of a body that `roots` depend on, in order, without
/// those that only reads depend on.
static SmallVector<Operation *> getNeeded(Block &body, ValueRange roots) {
  DenseSet<Value> live(roots.begin(), roots.end());
  SmallVector<Operation *> needed;
  for (Operation &op : llvm::reverse(body.without_terminator())) {
    if (llvm::none_of(op.getResults(),
                      [&](Value result) { return live.contains(result); }))
      continue;
    needed.push_back(&op);
    if (!isa<tensor::ExtractOp>(op))
      live.insert(op.operand_begin(), op.operand_end());
  }
  std::reverse(needed.begin(), needed.end());
  return needed;
}

std::optional<unsigned>
mlir::posenc::getRowReadLoop(linalg::LinalgOp linalgOp) {
  auto op = dyn_cast<linalg::GenericOp>(linalgOp.getOperation());
  if (!op || !op.hasPureTensorSemantics() || op.getNumLoops() < 2 ||
      op.getNumParallelLoops() != op.getNumLoops() ||
      !llvm::all_of(op.getIndexingMapsArray(),
                    [](AffineMap map) { return map.isProjectedPermutation(); }))
    return std::nullopt;
  unsigned vector = op.getNumLoops();
  for (OpOperand &init : op.getDpsInitsMutable()) {
    AffineMap map = op.getMatchingIndexingMap(&init);
    if (!map.isPermutation())
      return std::nullopt;
    unsigned last = map.getDimPosition(map.getNumResults() - 1);
    if (vector != op.getNumLoops() && vector != last)
      return std::nullopt;
    vector = last;
  }
  int64_t size = op.getStaticLoopRanges()[vector];
  if (ShapedType::isDynamic(size) ||
      llvm::is_contained(op.getStaticLoopRanges(), 0))
    return std::nullopt;
  DenseSet<Value> rowValues = getRowValues(op, vector);
  auto isRowRead = [&](tensor::ExtractOp read) {
    auto type = dyn_cast<RankedTensorType>(read.getTensor().getType());
    if (!type || type.getRank() == 0 || !isVectorElement(type.getElementType()))
      return false;
    auto last = read.getIndices().back().getDefiningOp<linalg::IndexOp>();
    return last && last.getDim() == vector &&
           !type.isDynamicDim(type.getRank() - 1) &&
           type.getShape().back() >= size &&
           llvm::all_of(read.getIndices().drop_back(), [&](Value index) {
             return index.getParentBlock() != op.getBody() ||
                    rowValues.contains(index);
           });
  };
  bool hasReads = false;
  for (Operation &inner : op.getBody()->without_terminator()) {
    auto read = dyn_cast<tensor::ExtractOp>(inner);
    if (read ? !isRowRead(read) : !isElementwise(inner))
      return std::nullopt;
    hasReads |= bool(read);
  }
  if (!hasReads)
    return std::nullopt;
  return vector;
}

linalg::GenericOp mlir::posenc::readRowsAsInputs(RewriterBase &rewriter,
                                                 linalg::GenericOp op,
                                                 unsigned vector) {
  MLIRContext *context = op.getContext();
  Location loc = op.getLoc();
  Block &body = *op.getBody();
  SmallVector<tensor::ExtractOp> reads(body.getOps<tensor::ExtractOp>());
  SmallVector<Value> indices;
  for (tensor::ExtractOp read : reads)
    llvm::append_range(indices, read.getIndices().drop_back());

  // Computes the indices before the operation. All loops but `vector` have one
  // iteration, so their indices are 0.
  rewriter.setInsertionPoint(op);
  Value zero = arith::ConstantIndexOp::create(rewriter, loc, 0);
  IRMapping scalars;
  SmallVector<Operation *> needed = getNeeded(body, indices);
  DenseSet<Value> used(indices.begin(), indices.end());
  for (Operation *inner : needed)
    used.insert(inner->operand_begin(), inner->operand_end());
  for (OpOperand *input : op.getDpsInputOperands()) {
    Value argument = op.getMatchingBlockArgument(input), value = input->get();
    if (!used.contains(argument))
      continue;
    if (auto type = dyn_cast<RankedTensorType>(value.getType()))
      value = tensor::ExtractOp::create(
          rewriter, loc, value, SmallVector<Value>(type.getRank(), zero));
    scalars.map(argument, value);
  }
  for (Operation *inner : needed) {
    if (isa<linalg::IndexOp>(inner))
      scalars.map(inner->getResult(0), zero);
    else
      rewriter.clone(*inner, scalars);
  }
  SmallVector<Value> rows;
  OpFoldResult one = rewriter.getIndexAttr(1);
  int64_t size = op.getStaticLoopRanges()[vector];
  for (tensor::ExtractOp read : reads) {
    auto type = cast<RankedTensorType>(read.getTensor().getType());
    SmallVector<OpFoldResult> offsets;
    for (Value index : read.getIndices().drop_back())
      offsets.push_back(getAsOpFoldResult(scalars.lookupOrDefault(index)));
    offsets.push_back(rewriter.getIndexAttr(0));
    SmallVector<OpFoldResult> sizes(type.getRank(), one);
    sizes.back() = rewriter.getIndexAttr(size);
    SmallVector<OpFoldResult> strides(type.getRank(), one);
    rows.push_back(tensor::ExtractSliceOp::create(
        rewriter, loc, RankedTensorType::get({size}, type.getElementType()),
        read.getTensor(), offsets, sizes, strides));
  }

  // Keeps the inputs that the body uses without the indices.
  SmallVector<Operation *> kept =
      getNeeded(body, body.getTerminator()->getOperands());
  DenseSet<Value> live(body.getTerminator()->operand_begin(),
                       body.getTerminator()->operand_end());
  for (Operation *inner : kept)
    if (!isa<tensor::ExtractOp>(inner))
      live.insert(inner->operand_begin(), inner->operand_end());
  SmallVector<Value> inputs, arguments;
  SmallVector<AffineMap> maps;
  for (OpOperand *input : op.getDpsInputOperands()) {
    Value argument = op.getMatchingBlockArgument(input);
    if (!live.contains(argument))
      continue;
    inputs.push_back(input->get());
    arguments.push_back(argument);
    maps.push_back(op.getMatchingIndexingMap(input));
  }
  AffineMap rowMap = AffineMap::get(op.getNumLoops(), 0,
                                    getAffineDimExpr(vector, context), context);
  for (auto [read, row] : llvm::zip_equal(reads, rows)) {
    inputs.push_back(row);
    arguments.push_back(read.getResult());
    maps.push_back(rowMap);
  }
  for (OpOperand &init : op.getDpsInitsMutable()) {
    arguments.push_back(op.getMatchingBlockArgument(&init));
    maps.push_back(op.getMatchingIndexingMap(&init));
  }
  auto result = linalg::GenericOp::create(
      rewriter, loc, op.getResultTypes(), inputs, op.getDpsInits(), maps,
      op.getIteratorTypesArray(),
      [&](OpBuilder &builder, Location, ValueRange newArguments) {
        IRMapping mapping;
        mapping.map(arguments, newArguments);
        for (Operation *inner : kept)
          if (!isa<tensor::ExtractOp>(inner))
            builder.clone(*inner, mapping);
        builder.clone(*body.getTerminator(), mapping);
      });
  rewriter.replaceOp(op, result);
  return result;
}

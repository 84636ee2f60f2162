//===- BlockSumBody.cpp - steps of sums over the elements of a block ------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockSums.h"

#include "posenc/Numerics/ByteDots.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::posenc;

InnerSum InnerSum::get(const BlockSums &sums) {
  linalg::GenericOp outer = sums.outer, inner = sums.inner;
  InnerSum loops;
  loops.partial =
      llvm::find_if(outer->getOpOperands(), [&](OpOperand &operand) {
        return operand.get() == inner.getResult(0);
      });
  AffineMap from = outer.getMatchingIndexingMap(loops.partial),
            to = inner.getMatchingIndexingMap(inner.getDpsInitOperand(0));
  auto find = [&](unsigned loop) {
    unsigned dim =
        *from.getResultPosition(getAffineDimExpr(loop, outer.getContext()));
    return to.getDimPosition(dim);
  };
  loops.rows = find(sums.rows);
  loops.blocks = find(sums.blocks);
  loops.columns = find(sums.columns);
  loops.elements = sums.elements;
  return loops;
}

BlockSumBody BlockSumBody::get(linalg::GenericOp inner, const InnerSum &loops) {
  BlockSumBody result;
  Block &body = *inner.getBlock();
  enum Uses : unsigned { None = 0, Columns = 1, Rows = 2 };
  llvm::DenseMap<Value, unsigned> uses;
  for (BlockArgument argument : body.getArguments()) {
    OpOperand &operand = inner->getOpOperand(argument.getArgNumber());
    AffineMap map = inner.getMatchingIndexingMap(&operand);
    uses[argument] =
        inner.isDpsInit(&operand) || map.isFunctionOfDim(loops.rows) ? Rows
        : map.isFunctionOfDim(loops.columns)                         ? Columns
                                                                     : None;
  }
  for (Operation &op : body.without_terminator()) {
    unsigned all = None;
    for (Value operand : op.getOperands())
      all |= uses.lookup(operand);
    for (Value result : op.getResults())
      uses[result] = all;
  }
  llvm::SetVector<Value> found;
  // Visits the operands of a value before it. Returns whether it depends on the
  // sum so far.
  llvm::DenseMap<Value, bool> visited;
  auto visit = [&](auto &self, Value value) -> bool {
    if (value == body.getArguments().back())
      return true;
    Operation *op = value.getDefiningOp();
    if (!op || op->getBlock() != &body)
      return false;
    if (auto known = visited.find(value); known != visited.end())
      return known->second;
    visited[value] = false;
    if (uses[value] == Columns) {
      found.insert(value);
      return false;
    }
    SmallVector<Value> operands(llvm::reverse(op->getOperands()));
    if (std::optional<ByteDot> dot = matchByteDot(value))
      operands = {dot->sum, dot->signedBytes, dot->unsignedBytes};
    bool dependsOnSum = false;
    for (Value operand : operands)
      dependsOnSum |= self(self, operand);
    visited[value] = dependsOnSum;
    if (!dependsOnSum)
      return false;
    Step step{value, {}, {}};
    for (Value operand : operands)
      if (found.contains(operand))
        step.unpacked.push_back(
            std::distance(found.begin(), llvm::find(found, operand)));
      else if (isa<BlockArgument>(operand) && uses[operand] == Rows &&
               operand != body.getArguments().back())
        step.row = cast<BlockArgument>(operand);
    result.steps.push_back(step);
    return true;
  };
  Value yielded = body.getTerminator()->getOperand(0);
  visit(visit, yielded);
  result.unpacked = found.takeVector();
  if (result.steps.empty() || result.steps.back().sum != yielded)
    result.steps.push_back({yielded, {}, {}});
  result.findUniformSteps(inner, loops);
  return result;
}

/// Whether `y` is a fused multiply-add or a dot product as `x` is, whose
/// operands `isSame` accepts.
static bool
areSameSteps(Value x, Value y,
             function_ref<bool(unsigned operand, Value value)> isSame) {
  auto xFma = x.getDefiningOp<math::FmaOp>(),
       yFma = y.getDefiningOp<math::FmaOp>();
  if (xFma && yFma)
    return isSame(0, yFma.getA()) && isSame(1, yFma.getB()) &&
           isSame(2, yFma.getC());
  std::optional<ByteDot> xDot = matchByteDot(x), yDot = matchByteDot(y);
  return xDot && yDot && isSame(0, yDot->signedBytes) &&
         isSame(1, yDot->unsignedBytes) && isSame(2, yDot->sum);
}

void BlockSumBody::findUniformSteps(linalg::GenericOp inner,
                                    const InnerSum &loops) {
  firstRow = OpBuilder(inner).getIndexAttr(0);
  if (steps.size() < 2 || steps.size() != unpacked.size())
    return;
  for (auto [number, step] : llvm::enumerate(steps)) {
    Value before = number ? steps[number - 1].sum
                          : Value(inner.getBlock()->getArguments().back());
    Value unpackedCode = unpacked[number];
    BlockArgument row = step.row;
    if (step.unpacked != SmallVector<unsigned>{static_cast<unsigned>(number)} ||
        !row ||
        !areSameSteps(steps[0].sum, step.sum,
                      [&](unsigned operand, Value value) {
                        return operand == 0   ? value == row
                               : operand == 1 ? value == unpackedCode
                                              : value == before;
                      }))
      return;
    // The slice of a tile of rows, of a slice of every n-th element.
    auto slice = inner->getOperand(step.row.getArgNumber())
                     .getDefiningOp<tensor::ExtractSliceOp>();
    tensor::ExtractSliceOp tile;
    if (slice && slice.getSource().getDefiningOp<tensor::ExtractSliceOp>()) {
      tile = slice;
      slice = slice.getSource().getDefiningOp<tensor::ExtractSliceOp>();
    }
    int64_t rank = slice ? slice.getType().getRank() : 0;
    if (!slice || slice.getSourceType().getRank() != rank ||
        slice.getStaticStrides().back() != static_cast<int64_t>(steps.size()) ||
        slice.getStaticOffsets().back() != static_cast<int64_t>(number) ||
        !llvm::all_of(slice.getStaticOffsets().drop_back(),
                      [](int64_t offset) { return offset == 0; }) ||
        !llvm::all_of(slice.getStaticStrides().drop_back(),
                      [](int64_t stride) { return stride == 1; }) ||
        (number && slice.getSource() != rows))
      return;
    AffineMap map = inner.getMatchingIndexingMap(
        &inner->getOpOperand(step.row.getArgNumber()));
    if (rank != 3 || map.getDimPosition(0) != loops.rows ||
        map.getDimPosition(1) != loops.blocks ||
        map.getDimPosition(2) != loops.elements)
      return;
    if (number == 0 && tile) {
      if (!llvm::all_of(tile.getStaticOffsets().drop_front(),
                        [](int64_t offset) { return offset == 0; }) ||
          !tile.hasUnitStride())
        return;
      firstRow = tile.getMixedOffsets().front();
    }
    if (number == 0)
      rows = slice.getSource();
    if (number + 1 == steps.size())
      isUniform = true;
  }
}

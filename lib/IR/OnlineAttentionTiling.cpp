//===- OnlineAttentionTiling.cpp - tiling of online_attention -------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Tiling.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::posenc;

/// The loops are heads, queries and keys, which are the first symbols.
static constexpr int64_t kNumLoops = 3;

SmallVector<utils::IteratorType> OnlineAttentionOp::getLoopIteratorTypes() {
  return {utils::IteratorType::parallel, utils::IteratorType::parallel,
          utils::IteratorType::reduction};
}

SmallVector<Range> OnlineAttentionOp::getIterationDomain(OpBuilder &builder) {
  auto getSize = [&](Value value, int64_t dim) -> OpFoldResult {
    auto type = cast<ShapedType>(value.getType());
    if (!type.isDynamicDim(dim))
      return builder.getIndexAttr(type.getDimSize(dim));
    return tensor::getMixedSize(builder, getLoc(), value, dim);
  };
  OpFoldResult zero = builder.getIndexAttr(0), one = builder.getIndexAttr(1);
  return {{zero, getSize(getQuery(), 0), one},
          {zero, getSize(getQuery(), 1), one},
          {zero, getSize(getKey(), 0), one}};
}

/// Sets the offsets and sizes of the slice of an operand that a tile needs.
static void getSlice(OnlineAttentionOp op, OpBuilder &builder,
                     OpOperand &operand, ArrayRef<OpFoldResult> offsets,
                     ArrayRef<OpFoldResult> sizes,
                     SmallVector<OpFoldResult> &sliceOffsets,
                     SmallVector<OpFoldResult> &sliceSizes) {
  SmallVector<int64_t> symbols = op.getDimSymbols(operand.getOperandNumber());
  SmallVector<OpFoldResult> whole =
      tensor::getMixedSizes(builder, op.getLoc(), operand.get());
  for (auto [dim, symbol] : llvm::enumerate(symbols)) {
    bool isLoop = symbol >= 0 && symbol < kNumLoops;
    sliceOffsets.push_back(isLoop ? offsets[symbol]
                                  : OpFoldResult(builder.getIndexAttr(0)));
    sliceSizes.push_back(isLoop ? sizes[symbol] : whole[dim]);
  }
}

static tensor::ExtractSliceOp
extractTile(OnlineAttentionOp op, OpBuilder &builder, OpOperand &operand,
            ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes) {
  SmallVector<OpFoldResult> sliceOffsets, sliceSizes;
  getSlice(op, builder, operand, offsets, sizes, sliceOffsets, sliceSizes);
  SmallVector<OpFoldResult> strides(sliceSizes.size(), builder.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(builder, op.getLoc(), operand.get(),
                                        sliceOffsets, sliceSizes, strides);
}

TilingResult mlir::posenc::createTile(OpBuilder &builder, OnlineAttentionOp op,
                                      ArrayRef<OpFoldResult> offsets,
                                      ArrayRef<OpFoldResult> sizes,
                                      ValueRange inits) {
  Location loc = op.getLoc();
  SmallVector<Value> operands;
  SmallVector<Operation *> slices;
  unsigned firstIndex = op.getHeadIndexMutable().getOperandNumber();
  for (OpOperand &operand : op->getOpOperands()) {
    if (op.isDpsInit(&operand))
      continue;
    unsigned number = operand.getOperandNumber();
    Value value = operand.get();
    if (number >= firstIndex && number < firstIndex + kNumLoops) {
      // The index operands are the first head, query and key of the tile.
      OpFoldResult offset = offsets[number - firstIndex];
      if (!isZeroInteger(offset))
        value = getValueOrCreateConstantIndexOp(
            builder, loc,
            affine::makeComposedFoldedAffineApply(
                builder, loc,
                builder.getAffineDimExpr(0) + builder.getAffineDimExpr(1),
                {OpFoldResult(value), offset}));
    } else if (isa<RankedTensorType>(value.getType())) {
      auto slice = extractTile(op, builder, operand, offsets, sizes);
      slices.push_back(slice);
      value = slice;
    }
    operands.push_back(value);
  }
  // The destinations are the last operands.
  llvm::append_range(operands, inits);
  Operation *tiled = detail::cloneWith(
      builder, op, SmallVector<Type>(inits.getTypes()), operands);
  return TilingResult{{tiled}, SmallVector<Value>(tiled->getResults()), slices};
}

FailureOr<TilingResult>
OnlineAttentionOp::getTiledImplementation(OpBuilder &builder,
                                          ArrayRef<OpFoldResult> offsets,
                                          ArrayRef<OpFoldResult> sizes) {
  if (!llvm::all_of(getInits().getTypes(), llvm::IsaPred<RankedTensorType>))
    return failure();
  SmallVector<Value> inits;
  SmallVector<Operation *> slices;
  for (OpOperand &init : getInitsMutable()) {
    slices.push_back(extractTile(*this, builder, init, offsets, sizes));
    inits.push_back(slices.back()->getResult(0));
  }
  TilingResult tile = createTile(builder, *this, offsets, sizes, inits);
  llvm::append_range(tile.generatedSlices, slices);
  return tile;
}

LogicalResult OnlineAttentionOp::getResultTilePosition(
    OpBuilder &builder, unsigned resultNumber, ArrayRef<OpFoldResult> offsets,
    ArrayRef<OpFoldResult> sizes, SmallVector<OpFoldResult> &resultOffsets,
    SmallVector<OpFoldResult> &resultSizes) {
  OpOperand *init = getTiedOpOperand(getOperation()->getResult(resultNumber));
  getSlice(*this, builder, *init, offsets, sizes, resultOffsets, resultSizes);
  return success();
}

FailureOr<TilingResult> mlir::posenc::createResultTile(
    TilingInterface op, OpBuilder &builder, unsigned resultNumber,
    ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes) {
  SmallVector<OpFoldResult> domainOffsets, domainSizes;
  if (failed(op.getIterationDomainTileFromResultTile(
          builder, resultNumber, offsets, sizes, domainOffsets, domainSizes)))
    return failure();
  FailureOr<TilingResult> tile =
      op.getTiledImplementation(builder, domainOffsets, domainSizes);
  if (failed(tile))
    return failure();
  return TilingResult{
      tile->tiledOps, {tile->tiledValues[resultNumber]}, tile->generatedSlices};
}

LogicalResult OnlineAttentionOp::getIterationDomainTileFromResultTile(
    OpBuilder &builder, unsigned resultNumber, ArrayRef<OpFoldResult> offsets,
    ArrayRef<OpFoldResult> sizes, SmallVectorImpl<OpFoldResult> &domainOffsets,
    SmallVectorImpl<OpFoldResult> &domainSizes) {
  // The tile has all keys and must have the whole last dimension of the first
  // result.
  auto type = cast<ShapedType>(getInits()[resultNumber].getType());
  if (type.getRank() > 2 && (!isZeroInteger(offsets[2]) ||
                             !isConstantIntValue(sizes[2], type.getDimSize(2))))
    return failure();
  SmallVector<Range> domain = getIterationDomain(builder);
  domainOffsets.assign({offsets[0], offsets[1], domain[2].offset});
  domainSizes.assign({sizes[0], sizes[1], domain[2].size});
  return success();
}

FailureOr<TilingResult> OnlineAttentionOp::generateResultTileValue(
    OpBuilder &builder, unsigned resultNumber, ArrayRef<OpFoldResult> offsets,
    ArrayRef<OpFoldResult> sizes) {
  return createResultTile(cast<TilingInterface>(getOperation()), builder,
                          resultNumber, offsets, sizes);
}

//===- AttentionTiling.cpp - tiling of posenc.attention -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The loops are sequences, query heads and queries. A slice of ragged queries
// is not a sequence, so only their heads are a loop. A tile is an attention op
// on slices of the operands: all keys, the key heads of its query heads, and
// the number of queries after the tile, which determines its query positions.
//
//===----------------------------------------------------------------------===//

#include "AttentionSizes.h"
#include "Tiling.h"

#include "posenc/IR/Posenc.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::attention;

/// Returns the symbols of the loops.
static ArrayRef<Size> getLoops(AttentionOp op) {
  static constexpr Size all[] = {Batch, QueryHeads, Queries};
  static constexpr Size ragged[] = {QueryHeads};
  if (op.hasRaggedQueries())
    return ragged;
  return all;
}

/// Returns the loop of a symbol, or -1 if it is not a loop.
static int64_t findLoop(AttentionOp op, int64_t symbol) {
  ArrayRef<Size> loops = getLoops(op);
  const Size *it = llvm::find(loops, symbol);
  return it == loops.end() ? -1 : it - loops.begin();
}

SmallVector<utils::IteratorType> AttentionOp::getLoopIteratorTypes() {
  return SmallVector<utils::IteratorType>(getLoops(*this).size(),
                                          utils::IteratorType::parallel);
}

SmallVector<Range> AttentionOp::getIterationDomain(OpBuilder &builder) {
  SmallVector<int64_t> symbols =
      getDimSymbols(getQueryMutable().getOperandNumber());
  SmallVector<Range> domain;
  for (Size loop : getLoops(*this)) {
    int64_t dim = llvm::find(symbols, loop) - symbols.begin();
    assert(dim < int64_t(symbols.size()) &&
           "a loop is a dimension of the query");
    domain.push_back({builder.getIndexAttr(0),
                      tensor::getMixedSize(builder, getLoc(), getQuery(), dim),
                      builder.getIndexAttr(1)});
  }
  return domain;
}

/// Whether a number is known to be a multiple of `divisor`.
static bool isMultipleOf(OpFoldResult number, int64_t divisor) {
  if (std::optional<int64_t> constant = getConstantIntValue(number))
    return *constant % divisor == 0;
  auto value = cast<Value>(number);
  auto areMultiples = [&](ArrayRef<OpFoldResult> lower,
                          ArrayRef<OpFoldResult> steps, unsigned loop) {
    return isMultipleOf(lower[loop], divisor) &&
           isMultipleOf(steps[loop], divisor);
  };
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop =
        dyn_cast<LoopLikeOpInterface>(argument.getOwner()->getParentOp());
    std::optional<SmallVector<Value>> variables, none;
    std::optional<SmallVector<OpFoldResult>> lower, steps;
    if (!loop || !(variables = loop.getLoopInductionVars()) ||
        !(lower = loop.getLoopLowerBounds()) || !(steps = loop.getLoopSteps()))
      return false;
    auto *it = llvm::find(*variables, value);
    return it != variables->end() &&
           areMultiples(*lower, *steps, it - variables->begin());
  }
  if (auto apply = value.getDefiningOp<affine::AffineApplyOp>()) {
    AffineExpr expr = apply.getAffineMap().getResult(0);
    if (expr.isMultipleOf(divisor))
      return true;
    // Sums and products of multiples are multiples.
    return expr.isPureAffine() &&
           isa<AffineBinaryOpExpr, AffineDimExpr, AffineSymbolExpr>(expr) &&
           llvm::all_of(
               apply.getMapOperands(),
               [&](Value operand) { return isMultipleOf(operand, divisor); }) &&
           !expr.walk([](AffineExpr part) {
                  bool isSum = part.getKind() == AffineExprKind::Add ||
                               part.getKind() == AffineExprKind::Mul ||
                               isa<AffineDimExpr, AffineSymbolExpr>(part);
                  return isSum ? WalkResult::advance()
                               : WalkResult::interrupt();
                })
                .wasInterrupted();
  }
  return false;
}

/// Whether a tile covers a whole dimension.
static bool isWhole(OpFoldResult offset, OpFoldResult size, Value tensor,
                    int64_t dim) {
  if (!isZeroInteger(offset))
    return false;
  auto type = cast<ShapedType>(tensor.getType());
  if (!type.isDynamicDim(dim))
    return isConstantIntValue(size, type.getDimSize(dim));
  auto value = dyn_cast<Value>(size);
  auto dimOp = value ? value.getDefiningOp<tensor::DimOp>() : nullptr;
  return dimOp && dimOp.getSource() == tensor &&
         dimOp.getConstantIndex() == dim;
}

namespace {
/// The key heads of a tile.
struct HeadRange {
  OpFoldResult offset, size;
};
} // namespace

/// Returns the key heads of a tile of query heads; failure if they are unknown.
static FailureOr<HeadRange> findKeyHeads(AttentionOp op, OpBuilder &builder,
                                         OpFoldResult offset,
                                         OpFoldResult size) {
  unsigned queryDim = op.getQueryHeadDim(), keyDim = op.getKeyHeadDim();
  if (isWhole(offset, size, op.getQuery(), queryDim))
    return HeadRange{
        builder.getIndexAttr(0),
        tensor::getMixedSize(builder, op.getLoc(), op.getKey(), keyDim)};
  auto query = cast<ShapedType>(op.getQuery().getType());
  auto key = cast<ShapedType>(op.getKey().getType());
  // A norm over all heads also needs the other heads.
  if (op.normsAllQueryHeads() || op.normsAllKeyHeads() ||
      query.isDynamicDim(queryDim) || key.isDynamicDim(keyDim))
    return failure();
  int64_t group = query.getDimSize(queryDim) / key.getDimSize(keyDim);
  if (group == 1)
    return HeadRange{offset, size};
  std::optional<int64_t> count = getConstantIntValue(size);
  if (!count || *count < 1)
    return failure();
  bool isPart = group % *count == 0;
  if ((!isPart && *count % group != 0) ||
      !isMultipleOf(offset, isPart ? *count : group))
    return failure();
  OpFoldResult first = affine::makeComposedFoldedAffineApply(
      builder, op.getLoc(), builder.getAffineDimExpr(0).floorDiv(group),
      {offset});
  return HeadRange{first, builder.getIndexAttr(isPart ? 1 : *count / group)};
}

/// Adds the offset of the tile to an index argument of a region.
static void shiftArgument(OpBuilder &builder, Location loc, Region &region,
                          unsigned number, OpFoldResult offset) {
  if (region.empty() || isZeroInteger(offset))
    return;
  OpBuilder::InsertionGuard guard(builder);
  Value argument = region.getArgument(number);
  // Constants are created before the operation, as several regions may need
  // them.
  builder.setInsertionPoint(region.getParentOp());
  Value first = getValueOrCreateConstantIndexOp(builder, loc, offset);
  builder.setInsertionPointToStart(&region.front());
  auto sum = arith::AddIOp::create(builder, loc, argument, first);
  argument.replaceAllUsesExcept(sum, sum);
}

FailureOr<TilingResult>
AttentionOp::getTiledImplementation(OpBuilder &builder,
                                    ArrayRef<OpFoldResult> offsets,
                                    ArrayRef<OpFoldResult> sizes) {
  if (!llvm::all_of(getInits().getTypes(), llvm::IsaPred<RankedTensorType>))
    return failure();
  int64_t heads = findLoop(*this, QueryHeads);
  FailureOr<HeadRange> keyHeads =
      findKeyHeads(*this, builder, offsets[heads], sizes[heads]);
  if (failed(keyHeads))
    return failure();
  // Operands without a tiled loop are not sliced.
  SmallVector<bool> isTiled;
  SmallVector<int64_t> querySymbols =
      getDimSymbols(getQueryMutable().getOperandNumber());
  for (auto [number, loop] : llvm::enumerate(getLoops(*this)))
    isTiled.push_back(
        !isWhole(offsets[number], sizes[number], getQuery(),
                 llvm::find(querySymbols, loop) - querySymbols.begin()));
  SmallVector<Value> operands;
  SmallVector<Operation *> slices;
  SmallVector<Type> resultTypes;
  for (OpOperand &operand : getOperation()->getOpOperands()) {
    Value value = operand.get();
    bool isSliced = false;
    SmallVector<OpFoldResult> first, count;
    for (auto [dim, symbol] :
         llvm::enumerate(getDimSymbols(operand.getOperandNumber()))) {
      int64_t loop = findLoop(*this, symbol);
      bool isKeyHead = symbol == KeyHeads;
      isSliced |= loop >= 0 ? isTiled[loop] : isKeyHead && isTiled[heads];
      first.push_back(loop >= 0   ? offsets[loop]
                      : isKeyHead ? keyHeads->offset
                                  : OpFoldResult(builder.getIndexAttr(0)));
      count.push_back(
          loop >= 0   ? sizes[loop]
          : isKeyHead ? keyHeads->size
                      : tensor::getMixedSize(builder, getLoc(), value, dim));
    }
    if (isSliced) {
      SmallVector<OpFoldResult> strides(first.size(), builder.getIndexAttr(1));
      auto slice = tensor::ExtractSliceOp::create(builder, getLoc(), value,
                                                  first, count, strides);
      slices.push_back(slice);
      value = slice;
    }
    if (isDpsInit(&operand))
      resultTypes.push_back(value.getType());
    operands.push_back(value);
  }
  auto tiled = cast<AttentionOp>(
      detail::cloneWith(builder, getOperation(), resultTypes, operands));

  int64_t tokens = findLoop(*this, Queries);
  if (tokens >= 0 && isTiled[tokens]) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(tiled);
    OpFoldResult all =
        tensor::getMixedSize(builder, getLoc(), getQuery(), getQueryTokenDim());
    OpFoldResult before = getTrailingQueries()
                              ? OpFoldResult(getTrailingQueries())
                              : OpFoldResult(builder.getIndexAttr(0));
    AffineExpr a, b, c, d;
    bindDims(getContext(), a, b, c, d);
    OpFoldResult trailing = affine::makeComposedFoldedAffineApply(
        builder, getLoc(), a + b - c - d,
        {before, all, offsets[tokens], sizes[tokens]});
    tiled.getTrailingQueriesMutable().assign(
        getValueOrCreateConstantIndexOp(builder, getLoc(), trailing));
  }
  // The sequence and the head are region arguments after the score.
  int64_t batch = findLoop(*this, Batch);
  for (auto [region, begin] :
       {std::pair(&tiled.getScore(), 1u), {&tiled.getWhere(), 0u}}) {
    if (batch >= 0)
      shiftArgument(builder, getLoc(), *region, begin, offsets[batch]);
    shiftArgument(builder, getLoc(), *region, begin + 1, offsets[heads]);
  }
  return TilingResult{{tiled}, SmallVector<Value>(tiled->getResults()), slices};
}

/// Returns the tile of the loops for a tile of an operand.
static LogicalResult getDomainTile(AttentionOp op, OpBuilder &builder,
                                   unsigned operandNumber,
                                   ArrayRef<OpFoldResult> offsets,
                                   ArrayRef<OpFoldResult> sizes,
                                   SmallVectorImpl<OpFoldResult> &domainOffsets,
                                   SmallVectorImpl<OpFoldResult> &domainSizes) {
  Value tensor = op->getOperand(operandNumber);
  for (const Range &range : op.getIterationDomain(builder)) {
    domainOffsets.push_back(range.offset);
    domainSizes.push_back(range.size);
  }
  for (auto [dim, symbol] : llvm::enumerate(op.getDimSymbols(operandNumber))) {
    int64_t loop = findLoop(op, symbol);
    if (loop >= 0) {
      domainOffsets[loop] = offsets[dim];
      domainSizes[loop] = sizes[dim];
    } else if (!isWhole(offsets[dim], sizes[dim], tensor, dim)) {
      return failure();
    }
  }
  return success();
}

LogicalResult AttentionOp::getResultTilePosition(
    OpBuilder &builder, unsigned resultNumber, ArrayRef<OpFoldResult> offsets,
    ArrayRef<OpFoldResult> sizes, SmallVector<OpFoldResult> &resultOffsets,
    SmallVector<OpFoldResult> &resultSizes) {
  OpOperand *init = getTiedOpOperand(getOperation()->getResult(resultNumber));
  for (auto [dim, symbol] :
       llvm::enumerate(getDimSymbols(init->getOperandNumber()))) {
    int64_t loop = findLoop(*this, symbol);
    resultOffsets.push_back(loop >= 0 ? offsets[loop]
                                      : OpFoldResult(builder.getIndexAttr(0)));
    resultSizes.push_back(
        loop >= 0 ? sizes[loop]
                  : tensor::getMixedSize(builder, getLoc(), init->get(), dim));
  }
  return success();
}

LogicalResult AttentionOp::getIterationDomainTileFromResultTile(
    OpBuilder &builder, unsigned resultNumber, ArrayRef<OpFoldResult> offsets,
    ArrayRef<OpFoldResult> sizes, SmallVectorImpl<OpFoldResult> &domainOffsets,
    SmallVectorImpl<OpFoldResult> &domainSizes) {
  OpOperand *init = getTiedOpOperand(getOperation()->getResult(resultNumber));
  return getDomainTile(*this, builder, init->getOperandNumber(), offsets, sizes,
                       domainOffsets, domainSizes);
}

FailureOr<TilingResult>
AttentionOp::generateResultTileValue(OpBuilder &builder, unsigned resultNumber,
                                     ArrayRef<OpFoldResult> offsets,
                                     ArrayRef<OpFoldResult> sizes) {
  return createResultTile(cast<TilingInterface>(getOperation()), builder,
                          resultNumber, offsets, sizes);
}

LogicalResult AttentionOp::getIterationDomainTileFromOperandTiles(
    OpBuilder &builder, ArrayRef<unsigned> operandNumbers,
    ArrayRef<SmallVector<OpFoldResult>> allOffsets,
    ArrayRef<SmallVector<OpFoldResult>> allSizes,
    SmallVectorImpl<OpFoldResult> &domainOffsets,
    SmallVectorImpl<OpFoldResult> &domainSizes) {
  // Only a tile of queries determines a tile of results: all queries use the
  // keys.
  if (operandNumbers.size() != 1 ||
      operandNumbers[0] != getQueryMutable().getOperandNumber())
    return failure();
  return getDomainTile(*this, builder, operandNumbers[0], allOffsets[0],
                       allSizes[0], domainOffsets, domainSizes);
}

FailureOr<TilingResult> AttentionOp::getTiledImplementationFromOperandTiles(
    OpBuilder &builder, ArrayRef<unsigned> operandNumbers,
    ArrayRef<SmallVector<OpFoldResult>> allOffsets,
    ArrayRef<SmallVector<OpFoldResult>> allSizes) {
  SmallVector<OpFoldResult> domainOffsets, domainSizes;
  if (failed(getIterationDomainTileFromOperandTiles(
          builder, operandNumbers, allOffsets, allSizes, domainOffsets,
          domainSizes)))
    return failure();
  return getTiledImplementation(builder, domainOffsets, domainSizes);
}

//===- PositionalOp.cpp - tiling, shapes and effects ----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/IR/Posenc.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::posenc;

static PositionalOpInterface positional(Operation *op) {
  return cast<PositionalOpInterface>(op);
}

Operation *mlir::posenc::detail::cloneWith(OpBuilder &builder, Operation *op,
                                           TypeRange resultTypes,
                                           ValueRange operands) {
  OperationState state(op->getLoc(), op->getName(), operands, resultTypes,
                       op->getAttrs());
  for (Region &region : op->getRegions()) {
    IRMapping mapping;
    region.cloneInto(state.addRegion(), mapping);
  }
  return builder.create(state);
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

LogicalResult mlir::posenc::detail::verifySymbols(Operation *op,
                                                  StringRef constraint) {
  DenseMap<int64_t, int64_t> sizes;
  for (OpOperand &operand : op->getOpOperands()) {
    auto type = dyn_cast<ShapedType>(operand.get().getType());
    if (!type)
      continue;
    SmallVector<int64_t> symbols =
        positional(op).getDimSymbols(operand.getOperandNumber());
    for (auto [dim, symbol] : llvm::enumerate(symbols)) {
      if (symbol < 0 || type.isDynamicDim(dim))
        continue;
      auto [known, inserted] = sizes.insert({symbol, type.getDimSize(dim)});
      if (!inserted && known->second != type.getDimSize(dim))
        return op->emitOpError()
               << "operand #" << operand.getOperandNumber() << " has size "
               << type.getDimSize(dim) << " in dimension " << dim
               << " where another operand has " << known->second << " ("
               << constraint << ")";
    }
  }
  return success();
}

LogicalResult mlir::posenc::detail::verifyDestinations(Operation *op,
                                                       StringRef constraint) {
  bool anyTensor = false, anyMemref = false;
  for (Type type : op->getOperandTypes()) {
    anyTensor |= isa<RankedTensorType>(type);
    anyMemref |= isa<MemRefType>(type);
  }
  if (anyTensor && anyMemref)
    return op->emitOpError()
           << "mixes tensors and memrefs (" << constraint << ")";
  SmallVector<Type> expected;
  for (OpOperand &init :
       cast<DestinationStyleOpInterface>(op).getDpsInitsMutable())
    if (isa<RankedTensorType>(init.get().getType()))
      expected.push_back(init.get().getType());
  if (TypeRange(expected) != op->getResultTypes())
    return op->emitOpError() << "expected one result for each tensor "
                                "destination, of its type ("
                             << constraint << ")";
  return success();
}

//===----------------------------------------------------------------------===//
// Shapes and effects
//===----------------------------------------------------------------------===//

static OpFoldResult getDim(OpBuilder &builder, Location loc, Value value,
                           int64_t dim) {
  auto type = cast<ShapedType>(value.getType());
  if (!type.isDynamicDim(dim))
    return builder.getIndexAttr(type.getDimSize(dim));
  return tensor::getMixedSize(builder, loc, value, dim);
}

LogicalResult
mlir::posenc::detail::reifyResultShapes(Operation *op, OpBuilder &builder,
                                        ReifiedRankedShapedTypeDims &shapes) {
  auto dps = cast<DestinationStyleOpInterface>(op);
  for (OpResult result : op->getResults())
    shapes.push_back(tensor::getMixedSizes(
        builder, op->getLoc(), dps.getTiedOpOperand(result)->get()));
  return success();
}

void mlir::posenc::detail::getEffects(
    Operation *op, SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  auto dps = cast<DestinationStyleOpInterface>(op);
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    bool isInit = dps.isDpsInit(&operand);
    if (!isInit || positional(op).readsDestinations())
      effects.emplace_back(MemoryEffects::Read::get(), &operand,
                           SideEffects::DefaultResource::get());
    if (isInit)
      effects.emplace_back(MemoryEffects::Write::get(), &operand,
                           SideEffects::DefaultResource::get());
  }
}

Speculation::Speculatability
mlir::posenc::detail::getSpeculatability(Operation *op) {
  // Shapes that disagree at run time are undefined behaviour.
  return Speculation::NotSpeculatable;
}

//===----------------------------------------------------------------------===//
// Tiling
//===----------------------------------------------------------------------===//

SmallVector<utils::IteratorType>
mlir::posenc::detail::getLoopIteratorTypes(Operation *op) {
  return SmallVector<utils::IteratorType>(positional(op).getNumLoops(),
                                          utils::IteratorType::parallel);
}

SmallVector<Range>
mlir::posenc::detail::getIterationDomain(Operation *op, OpBuilder &builder) {
  // The first destination has every loop as one of its dimensions.
  OpOperand &init =
      *cast<DestinationStyleOpInterface>(op).getDpsInitsMutable().begin();
  SmallVector<int64_t> symbols =
      positional(op).getDimSymbols(init.getOperandNumber());
  SmallVector<Range> domain(positional(op).getNumLoops());
  for (auto [dim, symbol] : llvm::enumerate(symbols))
    if (symbol >= 0 && symbol < static_cast<int64_t>(domain.size()))
      domain[symbol] = {builder.getIndexAttr(0),
                        getDim(builder, op->getLoc(), init.get(), dim),
                        builder.getIndexAttr(1)};
  return domain;
}

/// Sets the offsets and sizes of an operand's slice for a tile of the loops.
static void getOperandSlice(PositionalOpInterface op, OpBuilder &builder,
                            unsigned operandNumber,
                            ArrayRef<OpFoldResult> offsets,
                            ArrayRef<OpFoldResult> sizes,
                            SmallVector<OpFoldResult> &sliceOffsets,
                            SmallVector<OpFoldResult> &sliceSizes) {
  Value operand = op->getOperand(operandNumber);
  for (auto [dim, symbol] : llvm::enumerate(op.getDimSymbols(operandNumber))) {
    bool isLoop = symbol >= 0 && symbol < op.getNumLoops();
    sliceOffsets.push_back(isLoop ? offsets[symbol]
                                  : OpFoldResult(builder.getIndexAttr(0)));
    sliceSizes.push_back(isLoop ? sizes[symbol]
                                : getDim(builder, op->getLoc(), operand, dim));
  }
}

/// Whether a loop indexes a dimension of the operand. Tiles take other operands
/// whole; a slice of them would make fusion compute them again for each tile.
static bool isIndexedByLoop(PositionalOpInterface op, unsigned operandNumber) {
  return llvm::any_of(op.getDimSymbols(operandNumber), [&](int64_t symbol) {
    return symbol >= 0 && symbol < op.getNumLoops();
  });
}

/// Emits `position + offset` in i64, so that i32 positions do not wrap around.
static Value addOffset(OpBuilder &builder, Location loc, Value position,
                       OpFoldResult offset) {
  if (isZeroInteger(offset))
    return position;
  Type i64 = builder.getI64Type();
  Value index = getValueOrCreateConstantIndexOp(builder, loc, offset);
  Value delta = arith::IndexCastOp::create(builder, loc, i64, index);
  position = getValueOrCreateCastToIndexLike(builder, loc, i64, position);
  return arith::AddIOp::create(builder, loc, position, delta);
}

FailureOr<TilingResult>
mlir::posenc::detail::getTiledImplementation(Operation *op, OpBuilder &builder,
                                             ArrayRef<OpFoldResult> offsets,
                                             ArrayRef<OpFoldResult> sizes) {
  auto positionalOp = positional(op);
  Location loc = op->getLoc();
  SmallVector<Value> operands;
  SmallVector<Operation *> slices;
  SmallVector<Type> resultTypes;
  auto dps = cast<DestinationStyleOpInterface>(op);
  for (OpOperand &operand : op->getOpOperands()) {
    unsigned number = operand.getOperandNumber();
    Value value = operand.get();
    if (number == positionalOp.getScalarPositionOperand()) {
      value = addOffset(builder, loc, value, offsets.front());
    } else if (isa<RankedTensorType>(value.getType()) &&
               isIndexedByLoop(positionalOp, number)) {
      SmallVector<OpFoldResult> sliceOffsets, sliceSizes;
      getOperandSlice(positionalOp, builder, number, offsets, sizes,
                      sliceOffsets, sliceSizes);
      SmallVector<OpFoldResult> strides(sliceSizes.size(),
                                        builder.getIndexAttr(1));
      auto slice = tensor::ExtractSliceOp::create(
          builder, loc, value, sliceOffsets, sliceSizes, strides);
      slices.push_back(slice);
      value = slice;
      if (dps.isDpsInit(&operand))
        resultTypes.push_back(slice.getType());
    } else if (isa<MemRefType>(value.getType())) {
      return failure();
    }
    operands.push_back(value);
  }
  Operation *tiled = cloneWith(builder, op, resultTypes, operands);
  return TilingResult{{tiled}, SmallVector<Value>(tiled->getResults()), slices};
}

LogicalResult mlir::posenc::detail::getResultTilePosition(
    Operation *op, OpBuilder &builder, unsigned resultNumber,
    ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes,
    SmallVector<OpFoldResult> &resultOffsets,
    SmallVector<OpFoldResult> &resultSizes) {
  OpOperand *init = cast<DestinationStyleOpInterface>(op).getTiedOpOperand(
      op->getResult(resultNumber));
  getOperandSlice(positional(op), builder, init->getOperandNumber(), offsets,
                  sizes, resultOffsets, resultSizes);
  return success();
}

LogicalResult mlir::posenc::detail::getIterationDomainTileFromResultTile(
    Operation *op, unsigned resultNumber, ArrayRef<OpFoldResult> offsets,
    ArrayRef<OpFoldResult> sizes, SmallVectorImpl<OpFoldResult> &domainOffsets,
    SmallVectorImpl<OpFoldResult> &domainSizes) {
  auto positionalOp = positional(op);
  OpOperand *init = cast<DestinationStyleOpInterface>(op).getTiedOpOperand(
      op->getResult(resultNumber));
  SmallVector<int64_t> symbols =
      positionalOp.getDimSymbols(init->getOperandNumber());
  domainOffsets.resize(positionalOp.getNumLoops());
  domainSizes.resize(positionalOp.getNumLoops());
  auto type = cast<ShapedType>(init->get().getType());
  for (auto [dim, symbol] : llvm::enumerate(symbols)) {
    if (symbol >= 0 && symbol < positionalOp.getNumLoops()) {
      domainOffsets[symbol] = offsets[dim];
      domainSizes[symbol] = sizes[dim];
      continue;
    }
    // The other dimensions are computed whole.
    if (!isZeroInteger(offsets[dim]) ||
        (!type.isDynamicDim(dim) &&
         !isConstantIntValue(sizes[dim], type.getDimSize(dim))))
      return failure();
  }
  return success();
}

FailureOr<TilingResult> mlir::posenc::detail::generateResultTileValue(
    Operation *op, OpBuilder &builder, unsigned resultNumber,
    ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes) {
  SmallVector<OpFoldResult> domainOffsets, domainSizes;
  if (failed(getIterationDomainTileFromResultTile(
          op, resultNumber, offsets, sizes, domainOffsets, domainSizes)))
    return failure();
  FailureOr<TilingResult> tile =
      getTiledImplementation(op, builder, domainOffsets, domainSizes);
  if (failed(tile))
    return failure();
  // A dynamic dimension that is not a loop is computed whole, which may exceed
  // the requested tile.
  Value value = tile->tiledValues[resultNumber];
  auto dps = cast<DestinationStyleOpInterface>(op);
  OpOperand *init = dps.getTiedOpOperand(op->getResult(resultNumber));
  auto type = cast<ShapedType>(init->get().getType());
  SmallVector<int64_t> symbols =
      positional(op).getDimSymbols(init->getOperandNumber());
  bool mayExceed = false;
  for (auto [dim, symbol] : llvm::enumerate(symbols))
    mayExceed |= type.isDynamicDim(dim) &&
                 (symbol < 0 || symbol >= positional(op).getNumLoops());
  if (mayExceed) {
    SmallVector<OpFoldResult> zeros(sizes.size(), builder.getIndexAttr(0));
    SmallVector<OpFoldResult> ones(sizes.size(), builder.getIndexAttr(1));
    value = tensor::ExtractSliceOp::create(builder, op->getLoc(), value, zeros,
                                           sizes, ones);
  }
  return TilingResult{tile->tiledOps, {value}, tile->generatedSlices};
}

//===- TileProductOp.cpp - posenc.tile_product ----------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Tiling.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::posenc;

void TileProductOp::build(OpBuilder &builder, OperationState &state, Value a,
                          Value b, Value sums, ProductElements elements,
                          bool transposed, bool skipsZeros) {
  Type result = isa<MemRefType>(sums.getType()) ? Type() : Type(sums.getType());
  build(builder, state, result, a, b, sums, elements, transposed, skipsZeros);
}

MutableOperandRange TileProductOp::getDpsInitsMutable() {
  OpOperand &sums = getSumsMutable();
  return MutableOperandRange(getOperation(), sums.getOperandNumber(),
                             hasVectorSums() ? 0 : 1);
}

int64_t TileProductOp::getNumRows() {
  return cast<ShapedType>(getA().getType()).getDimSize(getTransposed() ? 1 : 0);
}

int64_t TileProductOp::getNumColumns() {
  return cast<ShapedType>(getB().getType()).getDimSize(1);
}

int64_t TileProductOp::getDepth() {
  int64_t depth = cast<ShapedType>(getB().getType()).getDimSize(0);
  return ShapedType::isDynamic(depth) ? cast<ShapedType>(getA().getType())
                                            .getDimSize(getTransposed() ? 0 : 1)
                                      : depth;
}

/// Checks the element types of the panels.
static LogicalResult verifyElements(TileProductOp op) {
  Type sum = getElementTypeOrSelf(op.getSums().getType());
  for (Value panel : {op.getA(), op.getB()}) {
    Type element = getElementTypeOrSelf(panel.getType());
    if (op.hasQuads()) {
      if (!element.isInteger(32))
        return op.emitOpError() << "expected quads in words of i32, got "
                                << panel.getType() << " (tile_product_c2)";
    } else if (op.hasWords()) {
      if (!element.isF32() && !element.isInteger(32))
        return op.emitOpError() << "expected pairs in words of i32 or f32, got "
                                << panel.getType() << " (tile_product_c2)";
    } else if (!isa<FloatType>(element) || !isa<FloatType>(sum) ||
               element.getIntOrFloatBitWidth() > sum.getIntOrFloatBitWidth()) {
      return op.emitOpError()
             << "expected floats that are not wider than the sums' " << sum
             << ", got " << panel.getType() << " (tile_product_c2)";
    }
  }
  if (op.hasQuads() ? !sum.isInteger(32) : op.hasWords() && !sum.isF32())
    return op.emitOpError()
           << "expected sums of "
           << (op.hasQuads() ? "i32 for quads" : "f32 for pairs") << ", got "
           << op.getSums().getType() << " (tile_product_c2)";
  return success();
}

/// Checks that static sizes agree.
static LogicalResult verifySizes(TileProductOp op) {
  auto a = cast<ShapedType>(op.getA().getType()),
       b = cast<ShapedType>(op.getB().getType()),
       sums = cast<ShapedType>(op.getSums().getType());
  int64_t columns = sums.getDimSize(1);
  if (op.hasVectorSums())
    columns *= sums.getDimSize(2);
  unsigned depthDim = op.getTransposed() ? 0 : 1;
  for (auto [name, size, other] :
       {std::tuple("rows", a.getDimSize(1 - depthDim), sums.getDimSize(0)),
        std::tuple("columns", b.getDimSize(1), columns),
        std::tuple("depth", a.getDimSize(depthDim), b.getDimSize(0))})
    if (failed(verifyCompatibleDims({size, other})))
      return op.emitOpError()
             << "expected equal numbers of " << name << ", got " << size
             << " and " << other << " (tile_product_c3)";
  return success();
}

LogicalResult TileProductOp::verify() {
  for (Value value : {getA(), getB(), getSums()})
    if (auto type = cast<ShapedType>(value.getType());
        !isa<VectorType>(type) && type.getRank() != 2)
      return emitOpError() << "expected rank 2, got " << type
                           << " (tile_product_c1)";
  if (failed(verifyElements(*this)) || failed(verifySizes(*this)))
    return failure();
  auto isMemory = [](Value value) { return isa<MemRefType>(value.getType()); };
  if (hasVectorSums() && !(isMemory(getA()) && isMemory(getB())))
    return emitOpError()
           << "expected memrefs with sums in a vector (tile_product_c4)";
  if (!hasVectorSums() && (isMemory(getA()) != isMemory(getSums()) ||
                           isMemory(getB()) != isMemory(getSums())))
    return emitOpError()
           << "expected tensors only or memrefs only (tile_product_c4)";
  Type result = getResult() ? getResult().getType() : Type();
  if (result != (isMemory(getSums()) ? Type() : Type(getSums().getType())))
    return emitOpError()
           << "expected a result of the type of the sums, or none if they are "
              "a memref (tile_product_c4)";
  return success();
}

void TileProductOp::getEffects(
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  for (OpOperand &operand : getOperation()->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    effects.emplace_back(MemoryEffects::Read::get(), &operand,
                         SideEffects::DefaultResource::get());
    if (operand.get() == getSums())
      effects.emplace_back(MemoryEffects::Write::get(), &operand,
                           SideEffects::DefaultResource::get());
  }
}

Speculation::Speculatability TileProductOp::getSpeculatability() {
  // Sizes that disagree at run time are undefined behaviour.
  return Speculation::NotSpeculatable;
}

LogicalResult
TileProductOp::reifyResultShapes(OpBuilder &builder,
                                 ReifiedRankedShapedTypeDims &shapes) {
  if (!isa<RankedTensorType>(getSums().getType()))
    return failure();
  shapes.push_back(tensor::getMixedSizes(builder, getLoc(), getSums()));
  return success();
}

//===----------------------------------------------------------------------===//
// Tiling
//===----------------------------------------------------------------------===//

SmallVector<utils::IteratorType> TileProductOp::getLoopIteratorTypes() {
  return {utils::IteratorType::parallel, utils::IteratorType::parallel,
          utils::IteratorType::reduction};
}

SmallVector<Range> TileProductOp::getIterationDomain(OpBuilder &builder) {
  auto getSize = [&](Value panel, int64_t dim) {
    return tensor::getMixedSize(builder, getLoc(), panel, dim);
  };
  OpFoldResult zero = builder.getIndexAttr(0), one = builder.getIndexAttr(1);
  bool transposed = getTransposed();
  return {{zero, getSize(getA(), transposed ? 1 : 0), one},
          {zero, getSize(getB(), 1), one},
          {zero, getSize(getA(), transposed ? 0 : 1), one}};
}

FailureOr<TilingResult>
TileProductOp::getTiledImplementation(OpBuilder &builder,
                                      ArrayRef<OpFoldResult> offsets,
                                      ArrayRef<OpFoldResult> sizes) {
  if (!isa<RankedTensorType>(getSums().getType()))
    return failure();
  SmallVector<Value> operands;
  SmallVector<Operation *> slices;
  auto slice = [&](Value matrix, unsigned first, unsigned second) {
    SmallVector<OpFoldResult> strides(2, builder.getIndexAttr(1));
    slices.push_back(tensor::ExtractSliceOp::create(
        builder, getLoc(), matrix,
        ArrayRef<OpFoldResult>{offsets[first], offsets[second]},
        ArrayRef<OpFoldResult>{sizes[first], sizes[second]}, strides));
    operands.push_back(slices.back()->getResult(0));
  };
  enum : unsigned { Row, Column, Depth };
  slice(getA(), getTransposed() ? Depth : Row, getTransposed() ? Row : Depth);
  slice(getB(), Depth, Column);
  slice(getSums(), Row, Column);
  Operation *tiled = detail::cloneWith(builder, getOperation(),
                                       operands.back().getType(), operands);
  return TilingResult{{tiled}, SmallVector<Value>(tiled->getResults()), slices};
}

LogicalResult TileProductOp::getResultTilePosition(
    OpBuilder &, unsigned, ArrayRef<OpFoldResult> offsets,
    ArrayRef<OpFoldResult> sizes, SmallVector<OpFoldResult> &resultOffsets,
    SmallVector<OpFoldResult> &resultSizes) {
  llvm::append_range(resultOffsets, offsets.take_front(2));
  llvm::append_range(resultSizes, sizes.take_front(2));
  return success();
}

LogicalResult TileProductOp::getIterationDomainTileFromResultTile(
    OpBuilder &builder, unsigned, ArrayRef<OpFoldResult> offsets,
    ArrayRef<OpFoldResult> sizes, SmallVectorImpl<OpFoldResult> &domainOffsets,
    SmallVectorImpl<OpFoldResult> &domainSizes) {
  Range depth = getIterationDomain(builder).back();
  domainOffsets.assign({offsets[0], offsets[1], depth.offset});
  domainSizes.assign({sizes[0], sizes[1], depth.size});
  return success();
}

FailureOr<TilingResult> TileProductOp::generateResultTileValue(
    OpBuilder &builder, unsigned resultNumber, ArrayRef<OpFoldResult> offsets,
    ArrayRef<OpFoldResult> sizes) {
  return createResultTile(cast<TilingInterface>(getOperation()), builder,
                          resultNumber, offsets, sizes);
}

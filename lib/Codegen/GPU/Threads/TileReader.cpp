//===- TileReader.cpp - elements of a tile in a GPU kernel ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileReader.h"

#include "posenc/IR/CreateIndex.h"
#include "posenc/TargetInfo/GpuTiles.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::posenc;

//===----------------------------------------------------------------------===//
// Values from outside
//===----------------------------------------------------------------------===//

void TileReader::capture(Value value) {
  if (tensors.contains(value) || scalars.contains(value))
    return;
  if (auto buffer = value.getDefiningOp<bufferization::ToTensorOp>())
    tensors[value] = kernel.addTensor(host, buffer.getBuffer());
  else if (isa<MemRefType>(value.getType()))
    tensors[value] = kernel.addTensor(host, value);
  else
    scalars.map(value, value.getType().isIndex() ? kernel.addIndex(host, value)
                                                 : kernel.addScalar(value));
}

/// Passes the size of a tensor or memref from outside, of which there is no
/// other value.
void TileReader::captureSize(Operation *op, Value shaped, int64_t dim) {
  if (auto buffer = shaped.getDefiningOp<bufferization::ToTensorOp>())
    shaped = buffer.getBuffer();
  if (isa<MemRefType>(shaped.getType()))
    scalars.map(op->getResult(0),
                kernel.addIndex(host, host.createOrFold<memref::DimOp>(
                                          op->getLoc(), shaped, dim)));
}

void TileReader::captureOperands(scf::ForallOp loops) {
  loops.getBody()->walk([&](Operation *inner) {
    if (auto dim = dyn_cast<memref::DimOp>(inner))
      return captureSize(dim, dim.getSource(), *dim.getConstantIndex());
    if (auto dim = dyn_cast<tensor::DimOp>(inner))
      captureSize(dim, dim.getSource(), *dim.getConstantIndex());
    for (Value operand : inner->getOperands())
      if (!loops.getRegion().isAncestor(operand.getParentRegion()))
        capture(operand);
  });
}

const GpuKernel::Tensor &TileReader::getTensor(Value root) const {
  // Destinations of the loops are those of the operation.
  if (auto argument = dyn_cast<BlockArgument>(root))
    if (auto loops =
            dyn_cast<scf::ForallOp>(argument.getOwner()->getParentOp()))
      root = loops.getTiedOpOperand(argument)->get();
  return tensors.find(root)->second;
}

bool TileReader::isAligned(Value root) const {
  Type type =
      cast<MemRefType>(getTensor(root).memref.getType()).getElementType();
  return isWide && type.getIntOrFloatBitWidth() >= 8;
}

Value TileReader::getOffsetOf(Value root, ArrayRef<Value> at) {
  return getOffset(b, b.getLoc(), at, getTensor(root).strides);
}

Value TileReader::getAddress(Value root, Value offset) {
  Value memref = getTensor(root).memref;
  auto type = cast<MemRefType>(memref.getType());
  Value base = memref::ExtractAlignedPointerAsIndexOp::create(b, memref);
  Value first = memref::ExtractStridedMetadataOp::create(b, memref).getOffset();
  int64_t bytes = type.getElementTypeBitWidth() / 8;
  Value address = b.add(base, b.mul(b.add(first, offset), bytes));
  return arith::IndexCastOp::create(b, b.getI64Type(), address);
}

int64_t mlir::posenc::getDivisor(int64_t value, int64_t limit) {
  int64_t result = 1;
  while (result < limit && value % (2 * result) == 0)
    result *= 2;
  return result;
}

Value TileReader::load(Value root, Value offset, int64_t lanes) {
  Value memref = getTensor(root).memref;
  Type element = cast<MemRefType>(memref.getType()).getElementType();
  auto type = VectorType::get({lanes}, element);
  auto loadOne = [&](Value at) -> Value {
    return memref::LoadOp::create(b, memref, at);
  };
  if (lanes == 1)
    return vector::BroadcastOp::create(b, type, loadOne(offset));
  int64_t dim = cast<ShapedType>(root.getType()).getShape().back();
  if (isAligned(root)) {
    int64_t bytes = element.getIntOrFloatBitWidth() / 8;
    int64_t alignment =
        getDivisor(dim * bytes, std::min<int64_t>(16, lanes * bytes));
    return vector::LoadOp::create(b, type, memref, ValueRange(offset),
                                  /*nontemporal=*/false,
                                  llvm::MaybeAlign(alignment));
  }
  SmallVector<Value> elements;
  for (int64_t lane = 0; lane < lanes; ++lane)
    elements.push_back(loadOne(b.add(offset, lane)));
  return vector::FromElementsOp::create(b, type, elements);
}

Value TileReader::loadElement(Value source, ArrayRef<Value> at) {
  return memref::LoadOp::create(b, getTensor(source).memref,
                                getOffsetOf(source, at));
}

void TileReader::storeElements(Value elements, Value destination,
                               ArrayRef<Value> at) {
  Value memref = getTensor(destination).memref;
  Value offset = getOffsetOf(destination, at);
  auto type = dyn_cast<VectorType>(elements.getType());
  if (!type) {
    memref::StoreOp::create(b, elements, memref, offset);
    return;
  }
  storeLanes(b, b.getLoc(), elements, memref, offset,
             isAligned(destination) ? type.getNumElements() : 1);
}

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

void TileReader::withScope(function_ref<void()> body) {
  IRMapping outer = scalars;
  body();
  scalars = outer;
}

Value TileReader::get(Value scalar) {
  if (Value known = scalars.lookupOrNull(scalar))
    return known;
  TypedAttr constant;
  bool isConstant = matchPattern(scalar, m_Constant(&constant));
  assert(isConstant && "a scalar that was neither captured nor cloned");
  (void)isConstant;
  return arith::ConstantOp::create(b, constant);
}

Value TileReader::get(OpFoldResult scalar) {
  if (auto value = dyn_cast<Value>(scalar))
    return get(value);
  return createIndex(b, b.getLoc(), *getConstantIntValue(scalar));
}

/// Whether all operands and results, also of nested operations, are scalars.
static bool isScalar(Operation &op) {
  auto isTensor = [](Type type) { return isa<ShapedType>(type); };
  return llvm::none_of(op.getResultTypes(), isTensor) && op.getNumResults() > 0;
}

void TileReader::cloneScalars(Block &block) {
  for (Operation &op : block.without_terminator())
    if (isScalar(op) && !scalars.contains(op.getResult(0)))
      cloneScalar(op);
}

void TileReader::cloneInvariantScalars(LoopLikeOpInterface loop) {
  Region *body = loop.getLoopRegions().front();
  for (Operation &op : body->front().without_terminator()) {
    auto isKnown = [&](Value operand) {
      Region *region = operand.getParentRegion();
      return scalars.contains(operand) || !body->isAncestor(region) ||
             op.isAncestor(region->getParentOp());
    };
    bool isInvariant = isScalar(op) && !scalars.contains(op.getResult(0));
    op.walk([&](Operation *inner) {
      isInvariant &= llvm::all_of(inner->getOperands(), isKnown);
    });
    if (isInvariant)
      cloneScalar(op);
  }
}

/// Clones a loop over elements that computes minima, maxima, conjunctions or
/// disjunctions, such that each lane of the warp reads some of the elements.
/// Returns whether it has that form.
bool TileReader::cloneReduction(scf::ForOp loop) {
  if (!lane || !isConstantIntValue(loop.getStep(), 1))
    return false;
  SmallVector<Operation *> combined;
  for (auto [argument, yielded] :
       llvm::zip_equal(loop.getRegionIterArgs(), loop.getYieldedValues())) {
    Operation *combine = yielded.getDefiningOp();
    if (!argument.hasOneUse() || *argument.user_begin() != combine ||
        !isa_and_nonnull<arith::MinSIOp, arith::MaxSIOp, arith::AndIOp,
                         arith::OrIOp>(combine))
      return false;
    combined.push_back(combine);
  }
  SmallVector<Value> inits;
  for (Value init : loop.getInits())
    inits.push_back(get(init));
  SmallVector<Value> results =
      b.emitLoop(b.add(get(loop.getLowerBound()), b.toIndex(lane)),
                 get(loop.getUpperBound()),
                 createIndex(b, b.getLoc(), GpuAttentionTiles::kWarp), inits,
                 [&](Value index, ValueRange carried) {
                   SmallVector<Value> next;
                   withScope([&] {
                     scalars.map(loop.getInductionVar(), index);
                     scalars.map(loop.getRegionIterArgs(), carried);
                     cloneScalars(*loop.getBody());
                     for (Value yielded : loop.getYieldedValues())
                       next.push_back(get(yielded));
                   });
                   return next;
                 });
  for (size_t i = 0; i < results.size(); ++i)
    results[i] = b.reduceLanes(results[i], [&](Value x, Value y) {
      Operation *op = b.insert(combined[i]->clone());
      op->setOperands({x, y});
      return op->getResult(0);
    });
  scalars.map(loop.getResults(), results);
  return true;
}

void TileReader::cloneScalar(Operation &op) {
  auto take = [&](ValueRange values) {
    return llvm::map_to_vector(values, [&](Value v) { return get(v); });
  };
  if (auto extract = dyn_cast<tensor::ExtractOp>(op))
    return scalars.map(
        extract.getResult(),
        loadElement(extract.getTensor(), take(extract.getIndices())));
  if (auto load = dyn_cast<memref::LoadOp>(op))
    return scalars.map(load.getResult(),
                       loadElement(load.getMemRef(), take(load.getIndices())));
  if (auto dim = dyn_cast<tensor::DimOp>(op))
    return scalars.map(dim.getResult(),
                       getSize(dim.getSource(), *dim.getConstantIndex()));
  if (auto apply = dyn_cast<affine::AffineApplyOp>(op)) {
    auto results = affine::expandAffineMap(b, b.getLoc(), apply.getAffineMap(),
                                           take(apply.getMapOperands()));
    return scalars.map(apply.getResult(), results->front());
  }
  if (auto min = dyn_cast<affine::AffineMinOp>(op)) {
    auto results = affine::expandAffineMap(b, b.getLoc(), min.getMap(),
                                           take(min.getOperands()));
    Value smallest = results->front();
    for (Value other : ArrayRef<Value>(*results).drop_front())
      smallest = b.createOrFold<arith::MinSIOp>(smallest, other);
    return scalars.map(min.getResult(), smallest);
  }
  if (hasNarrowDivisions && isa<arith::DivUIOp, arith::RemUIOp>(op) &&
      op.getResult(0).getType().isIndex()) {
    Value lhs = get(op.getOperand(0)), rhs = get(op.getOperand(1));
    if (!matchPattern(rhs, m_Constant())) {
      auto [quotient, rest] = divide32(b, b.getLoc(), lhs, rhs);
      return scalars.map(op.getResult(0),
                         isa<arith::DivUIOp>(op) ? quotient : rest);
    }
  }
  if (auto loop = dyn_cast<scf::ForOp>(op))
    if (cloneReduction(loop))
      return;
  for (Value operand : op.getOperands())
    if (!scalars.contains(operand))
      scalars.map(operand, get(operand));
  Operation *clone = b.insert(op.cloneWithoutRegions(scalars));
  for (auto [from, to] : llvm::zip_equal(op.getRegions(), clone->getRegions()))
    for (Block &block : from) {
      OpBuilder::InsertionGuard guard(b);
      auto locations = llvm::map_to_vector(block.getArguments(),
                                           [](Value v) { return v.getLoc(); });
      Block *copy =
          b.createBlock(&to, to.end(), block.getArgumentTypes(), locations);
      withScope([&] {
        scalars.map(block.getArguments(), copy->getArguments());
        // Sizes of captured tensors are captured, too.
        for (Operation &inner : block)
          if (!isa<tensor::DimOp, memref::DimOp>(inner) ||
              !scalars.contains(inner.getResult(0)))
            cloneScalar(inner);
      });
    }
  scalars.map(op.getResults(), clone->getResults());
}

Value TileReader::getSize(Value tensor, int64_t dim) {
  auto type = cast<ShapedType>(tensor.getType());
  if (!type.isDynamicDim(dim))
    return createIndex(b, b.getLoc(), type.getDimSize(dim));
  Operation *op = tensor.getDefiningOp();
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
    llvm::SmallBitVector dropped = slice.getDroppedDims();
    int64_t source = 0;
    for (int64_t left = dim; dropped[source] || left-- > 0; ++source) {
    }
    return get(slice.getMixedSizes()[source]);
  }
  if (auto empty = dyn_cast<tensor::EmptyOp>(op))
    return get(empty.getDynamicSizes()[type.getDynamicDimIndex(dim)]);
  if (auto insert = dyn_cast<tensor::InsertSliceOp>(op))
    return getSize(insert.getDest(), dim);
  auto destination = cast<DestinationStyleOpInterface>(op);
  OpResult result = cast<OpResult>(tensor);
  return getSize(destination.getDpsInitOperand(result.getResultNumber())->get(),
                 dim);
}

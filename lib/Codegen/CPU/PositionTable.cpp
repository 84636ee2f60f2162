//===- PositionTable.cpp - cos and sin of one position ----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PositionTable.h"

#include "posenc/Codegen/ExactSincos.h"
#include "posenc/IR/PairFrequencies.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace mlir::posenc;

static Value createIndex(OpBuilder &builder, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(builder, loc, value);
}

void mlir::posenc::forEachVector(
    OpBuilder &builder, Location loc, int64_t count, int64_t lanes,
    function_ref<void(OpBuilder &, Location, Value, int64_t)> body) {
  int64_t first = count / lanes * lanes;
  if (first == lanes) {
    body(builder, loc, createIndex(builder, loc, 0), lanes);
  } else if (first > 0) {
    scf::ForOp::create(
        builder, loc, createIndex(builder, loc, 0),
        createIndex(builder, loc, first), createIndex(builder, loc, lanes),
        ValueRange(),
        [&](OpBuilder &nested, Location nestedLoc, Value lane, ValueRange) {
          body(nested, nestedLoc, lane, lanes);
          scf::YieldOp::create(nested, nestedLoc);
        });
  }
  while (first < count) {
    int64_t length = llvm::bit_floor(static_cast<uint64_t>(count - first));
    body(builder, loc, createIndex(builder, loc, first), length);
    first += length;
  }
}

void mlir::posenc::forEachIndex(
    OpBuilder &builder, Location loc, ValueRange sizes,
    function_ref<void(OpBuilder &, Location, ValueRange)> body) {
  SmallVector<Value> indices;
  Value zero = createIndex(builder, loc, 0), one = createIndex(builder, loc, 1);
  OpBuilder::InsertionGuard guard(builder);
  for (Value size : sizes) {
    if (getConstantIntValue(size) == 1) {
      indices.push_back(zero);
      continue;
    }
    auto loop = scf::ForOp::create(builder, loc, zero, size, one);
    builder.setInsertionPointToStart(loop.getBody());
    indices.push_back(loop.getInductionVar());
  }
  body(builder, loc, indices);
}

Value mlir::posenc::getDimSize(OpBuilder &builder, Location loc, Value memref,
                               int64_t dim) {
  auto type = cast<MemRefType>(memref.getType());
  if (!type.isDynamicDim(dim))
    return createIndex(builder, loc, type.getDimSize(dim));
  return memref::DimOp::create(builder, loc, memref, dim);
}

LogicalResult mlir::posenc::checkConvertible(Operation *op,
                                             int64_t vectorBytes) {
  if (vectorBytes != 16 && vectorBytes != 32 && vectorBytes != 64)
    return op->emitOpError() << "cannot use vectors of " << vectorBytes
                             << " bytes: expected 16, 32 or 64";
  if (!op->getParentOfType<FunctionOpInterface>() ||
      !op->getParentOfType<ModuleOp>())
    return op->emitOpError("expected to be in a function of a module");
  for (Value operand : op->getOperands()) {
    if (isa<TensorType>(operand.getType()))
      return op->emitOpError("expected memrefs: bufferize first");
    auto type = dyn_cast<MemRefType>(operand.getType());
    if (type && type.getRank() > 0 && !type.isLastDimUnitStride())
      return op->emitOpError("expected a contiguous last dimension, got ")
             << type;
  }
  return success();
}

SmallVector<Value> mlir::posenc::getLoopSizes(OpBuilder &builder,
                                              PositionalOpInterface op) {
  SmallVector<Value> sizes(op.getNumLoops());
  OpOperand &init = *cast<DestinationStyleOpInterface>(op.getOperation())
                         .getDpsInitsMutable()
                         .begin();
  for (auto [dim, symbol] :
       llvm::enumerate(op.getDimSymbols(init.getOperandNumber())))
    if (symbol >= 0 && symbol < op.getNumLoops())
      sizes[symbol] = getDimSize(builder, op.getLoc(), init.get(), dim);
  return sizes;
}

/// A constant global of the module with these values; equal ones are shared.
static std::string createConstants(OpBuilder &builder, Operation *op,
                                   StringRef prefix, ArrayRef<int64_t> values) {
  auto module = op->getParentOfType<ModuleOp>();
  auto type = MemRefType::get({static_cast<int64_t>(values.size())},
                              builder.getI64Type());
  auto data = DenseElementsAttr::get(
      RankedTensorType::get(type.getShape(), type.getElementType()), values);
  for (auto global : module.getOps<memref::GlobalOp>())
    if (global.getInitialValueAttr() == data && global.getConstant() &&
        global.getSymName().starts_with(prefix))
      return global.getSymName().str();
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(module.getBody());
  SymbolTable symbols(module);
  auto global = memref::GlobalOp::create(
      builder, op->getLoc(), prefix, builder.getStringAttr("private"), type,
      data, /*constant=*/true, builder.getI64IntegerAttr(64));
  return symbols.insert(global).str();
}

PositionTable::PositionTable(OpBuilder &builder, Operation *op,
                             FrequenciesAttr frequencies, AxesAttr axes,
                             bool inverse, bool wide)
    : frequencies(frequencies), axes(axes), inverse(inverse), wide(wide) {
  SmallVector<int64_t> highs, lows, axisNumbers;
  for (const PairFrequency &pair : computePairFrequencies(frequencies, axes)) {
    auto turns = ::posenc::Turns::fromRadians(pair.frequency);
    highs.push_back(static_cast<int64_t>(turns.high));
    lows.push_back(turns.low);
    axisNumbers.push_back(pair.axis);
  }
  high = createConstants(builder, op, "frequencies_high", highs);
  low = createConstants(builder, op, "frequencies_low", lows);
  if (axes)
    axisOfPair = createConstants(builder, op, "axis_of_pair", axisNumbers);
}

/// An i32, i64 or index position as i64.
static Value toI64(OpBuilder &builder, Location loc, Value position) {
  Type i64 = builder.getI64Type();
  if (position.getType() == i64)
    return position;
  if (position.getType().isIndex())
    return arith::IndexCastOp::create(builder, loc, i64, position);
  return arith::ExtSIOp::create(builder, loc, i64, position);
}

SmallVector<Value> PositionTable::loadPositions(OpBuilder &builder,
                                                Location loc, Value positions,
                                                ValueRange indices) const {
  if (!isa<MemRefType>(positions.getType())) {
    Value index = toI64(builder, loc, indices.front());
    return {arith::AddIOp::create(builder, loc, toI64(builder, loc, positions),
                                  index)};
  }
  SmallVector<Value> result;
  for (int64_t axis = 0, e = axes ? axes.getNumAxes() : 1; axis < e; ++axis) {
    SmallVector<Value> at;
    if (axes)
      at.push_back(createIndex(builder, loc, axis));
    llvm::append_range(at, indices);
    result.push_back(toI64(
        builder, loc, memref::LoadOp::create(builder, loc, positions, at)));
  }
  return result;
}

Value PositionTable::loadConstants(OpBuilder &builder, Location loc,
                                   StringRef symbol, Value pair,
                                   int64_t lanes) const {
  auto type = MemRefType::get({getNumPairs()}, builder.getI64Type());
  Value table = memref::GetGlobalOp::create(builder, loc, type, symbol);
  return vector::LoadOp::create(builder, loc,
                                VectorType::get({lanes}, builder.getI64Type()),
                                table, ValueRange(pair));
}

PositionTable::Entry PositionTable::emit(OpBuilder &builder, Location loc,
                                         ValueRange positions, Value pair,
                                         int64_t lanes) const {
  auto type = VectorType::get({lanes}, builder.getI64Type());
  auto broadcast = [&](Value value) -> Value {
    return vector::BroadcastOp::create(builder, loc, type, value);
  };
  Value position = broadcast(positions.front());
  if (axes) {
    Value numbers = loadConstants(builder, loc, axisOfPair, pair, lanes);
    for (auto [axis, value] : llvm::enumerate(positions.drop_front())) {
      Value number = arith::ConstantOp::create(
          builder, loc,
          DenseElementsAttr::get(type, static_cast<int64_t>(axis + 1)));
      Value mine = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                         numbers, number);
      position = arith::SelectOp::create(builder, loc, mine, broadcast(value),
                                         position);
    }
  }
  ::posenc::BigFloat factor = frequencies.computeAttentionFactor();
  // inverse(rope(x)) = x needs the reciprocal factor.
  if (inverse)
    factor = ::posenc::BigFloat(1.0) / factor;
  ExactSincos::Result result =
      ExactSincos(factor, inverse)
          .emit(builder, loc, position,
                loadConstants(builder, loc, high, pair, lanes),
                loadConstants(builder, loc, low, pair, lanes), wide);
  return {result.cos, result.sin};
}

//===- PositionTable.cpp - cos and sin of one position ----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PositionTable.h"

#include "ElementwiseBuilder.h"

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

SmallVector<std::pair<int64_t, int64_t>>
mlir::posenc::splitIntoVectors(int64_t count, int64_t lanes) {
  SmallVector<std::pair<int64_t, int64_t>> result;
  int64_t first = 0;
  for (; first + lanes <= count; first += lanes)
    result.push_back({first, lanes});
  while (first < count) {
    int64_t length = llvm::bit_floor(static_cast<uint64_t>(count - first));
    result.push_back({first, length});
    first += length;
  }
  return result;
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
  for (auto [rest, length] : splitIntoVectors(count - first, lanes))
    body(builder, loc, createIndex(builder, loc, first + rest), length);
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
                                             const VectorTarget &target) {
  int64_t vectorBytes = target.vectorBytes;
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

template <typename Number>
std::string mlir::posenc::createConstants(OpBuilder &builder, Operation *op,
                                          StringRef prefix,
                                          ArrayRef<Number> values) {
  auto module = op->getParentOfType<ModuleOp>();
  Type element = builder.getF64Type();
  if constexpr (std::is_integral_v<Number>)
    element = builder.getIntegerType(8 * sizeof(Number));
  auto type = MemRefType::get({static_cast<int64_t>(values.size())}, element);
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

template std::string mlir::posenc::createConstants(OpBuilder &, Operation *,
                                                   StringRef, ArrayRef<double>);

PositionTable::PositionTable(OpBuilder &builder, Operation *op,
                             FrequenciesAttr frequencies, AxesAttr axes,
                             bool inverse, Type type, TableUse use,
                             ArrayRef<int64_t> order,
                             ArrayRef<int64_t> quarters)
    : frequencies(frequencies), axes(axes), inverse(inverse), type(type),
      use(type.isF64() ? TableUse::Entries : use), length(order.size()) {
  SmallVector<int64_t> highs, lows;
  SmallVector<int32_t> tops, rests, axisNumbers;
  SmallVector<PairFrequency> pairs = computePairFrequencies(frequencies, axes);
  PairFrequency none{0, ::posenc::BigFloat(0.0)};
  for (int64_t number : order) {
    const PairFrequency &pair = number < 0 ? none : pairs[number];
    auto turns = ::posenc::Turns::fromRadians(pair.frequency);
    highs.push_back(static_cast<int64_t>(turns.high));
    lows.push_back(turns.low);
    uint64_t rounded = turns.high + (turns.low >> 31);
    rests.push_back(static_cast<int32_t>(rounded));
    tops.push_back(static_cast<int32_t>((rounded + (1u << 31)) >> 32));
    axisNumbers.push_back(pair.axis);
  }
  high = createConstants<int64_t>(builder, op, "frequencies_high", highs);
  low = createConstants<int64_t>(builder, op, "frequencies_low", lows);
  if (axes)
    axisOfPair =
        createConstants<int32_t>(builder, op, "axis_of_pair", axisNumbers);
  if (!quarters.empty()) {
    auto phases = llvm::map_to_vector(quarters, [](int64_t quarter) {
      return static_cast<int64_t>(static_cast<uint64_t>(quarter) << 62);
    });
    ahead = createConstants<int64_t>(builder, op, "phases_ahead", phases);
  }
  if (this->use != TableUse::Rotation)
    return;
  top = createConstants<int32_t>(builder, op, "frequencies_top", tops);
  rest = createConstants<int32_t>(builder, op, "frequencies_rest", rests);
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

PositionTable::Position PositionTable::loadPosition(OpBuilder &builder,
                                                    Location loc,
                                                    Value positions,
                                                    ValueRange indices) const {
  Position result;
  if (!isa<MemRefType>(positions.getType())) {
    Value index = toI64(builder, loc, indices.front());
    result.axes.push_back(arith::AddIOp::create(
        builder, loc, toI64(builder, loc, positions), index));
  } else {
    for (int64_t axis = 0, e = axes ? axes.getNumAxes() : 1; axis < e; ++axis) {
      SmallVector<Value> at;
      if (axes)
        at.push_back(createIndex(builder, loc, axis));
      llvm::append_range(at, indices);
      result.axes.push_back(toI64(
          builder, loc, memref::LoadOp::create(builder, loc, positions, at)));
    }
  }
  // Short are 0 to 2^32-1 for a table, what an i32 holds for a rotation.
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(builder, loc, value, 64);
  };
  Value upper;
  for (Value axis : result.axes) {
    if (use == TableUse::Rotation)
      axis =
          arith::AddIOp::create(builder, loc, axis, constant(int64_t{1} << 31));
    Value mine = arith::ShRUIOp::create(builder, loc, axis, constant(32));
    upper = upper ? arith::OrIOp::create(builder, loc, upper, mine) : mine;
  }
  result.isShort = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                         upper, constant(0));
  return result;
}

Value PositionTable::loadConstants(OpBuilder &builder, Location loc,
                                   StringRef symbol, Type type, Value first,
                                   int64_t lanes) const {
  Value table = memref::GetGlobalOp::create(
      builder, loc, MemRefType::get({length}, type), symbol);
  return vector::LoadOp::create(builder, loc, VectorType::get({lanes}, type),
                                table, ValueRange(first));
}

/// For each lane the value of its axis.
Value PositionTable::selectAxis(OpBuilder &builder, Location loc,
                                ValueRange values, Value first,
                                int64_t lanes) const {
  auto type = VectorType::get({lanes}, values.front().getType());
  auto broadcast = [&](Value value) -> Value {
    return vector::BroadcastOp::create(builder, loc, type, value);
  };
  Value result = broadcast(values.front());
  if (!axes)
    return result;
  Value numbers = loadConstants(builder, loc, axisOfPair, builder.getI32Type(),
                                first, lanes);
  for (auto [axis, value] : llvm::enumerate(values.drop_front())) {
    Value number = arith::ConstantOp::create(
        builder, loc,
        DenseElementsAttr::get(cast<ShapedType>(numbers.getType()),
                               static_cast<int32_t>(axis + 1)));
    Value mine = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                       numbers, number);
    result =
        arith::SelectOp::create(builder, loc, mine, broadcast(value), result);
  }
  return result;
}

/// The whole phase.
Value PositionTable::emitPhase(OpBuilder &builder, Location loc,
                               const Position &position, Value first,
                               int64_t lanes, bool isShort) const {
  Type i64 = builder.getI64Type();
  Value p = selectAxis(builder, loc, position.axes, first, lanes);
  Value h = loadConstants(builder, loc, high, i64, first, lanes);
  Value l = loadConstants(builder, loc, low, i64, first, lanes);
  Value phase = ExactSincos::emitPhaseOfLow(builder, loc, p, h, l);
  auto add = [&](Value more) {
    phase = arith::AddIOp::create(builder, loc, phase, more);
  };
  if (!isShort)
    add(ExactSincos::emitPhaseOfHigh(builder, loc, p, h, l));
  if (!ahead.empty())
    add(loadConstants(builder, loc, ahead, i64, first, lanes));
  return phase;
}

/// The upper 32 bits of the phase, within one of the last.
Value PositionTable::emitPhaseTop(OpBuilder &builder, Location loc,
                                  const Position &position, Value first,
                                  int64_t lanes, bool isShort) const {
  Type i32 = builder.getI32Type();
  auto type = VectorType::get({lanes}, i32);
  if (!isShort) {
    Value phase = emitPhase(builder, loc, position, first, lanes, isShort);
    ElementwiseBuilder b(builder, loc, phase);
    return arith::TruncIOp::create(builder, loc, type,
                                   b.shru(phase, b.i64(32)));
  }
  SmallVector<Value> narrow;
  for (Value axis : position.axes)
    narrow.push_back(arith::TruncIOp::create(builder, loc, i32, axis));
  Value p = selectAxis(builder, loc, narrow, first, lanes);
  Value f = loadConstants(builder, loc, top, i32, first, lanes);
  Value g = loadConstants(builder, loc, rest, i32, first, lanes);
  Value ofTop = arith::MulIOp::create(builder, loc, p, f);
  auto ofRest = arith::MulSIExtendedOp::create(builder, loc, p, g);
  return arith::AddIOp::create(builder, loc, ofTop, ofRest.getHigh());
}

ExactSincos PositionTable::getSincos() const {
  ::posenc::BigFloat factor = frequencies.computeAttentionFactor();
  // inverse(rope(x)) = x needs the reciprocal factor.
  if (inverse)
    factor = ::posenc::BigFloat(1.0) / factor;
  return ExactSincos(factor, inverse);
}

PositionTable::Entry PositionTable::emitUnrounded(OpBuilder &builder,
                                                  Location loc,
                                                  const Position &position,
                                                  Value first, int64_t lanes,
                                                  bool isShort) const {
  Value phase = emitPhase(builder, loc, position, first, lanes, isShort);
  auto [cos, sin] = getSincos().emit(builder, loc, phase, type);
  return {cos, sin};
}

PositionTable::Entry PositionTable::emit(OpBuilder &builder, Location loc,
                                         const Position &position, Value first,
                                         int64_t lanes, bool isShort) const {
  if (use == TableUse::Rotation) {
    auto [cos, sin] = getSincos().emitForRotation(
        builder, loc,
        emitPhaseTop(builder, loc, position, first, lanes, isShort));
    return {cos, sin};
  }
  Entry entry = emitUnrounded(builder, loc, position, first, lanes, isShort);
  return {ExactSincos::emitRounding(builder, loc, entry.cos, type),
          ExactSincos::emitRounding(builder, loc, entry.sin, type)};
}

void PositionTable::forEachEntry(OpBuilder &builder, Location loc,
                                 const Position &position, int64_t lanes,
                                 Body body) const {
  // A branch within the loop would keep both ways' values in registers.
  auto emitLoop = [&](OpBuilder &b, Location l, bool isShort) {
    forEachVector(b, l, length, lanes,
                  [&](OpBuilder &b2, Location l2, Value first, int64_t n) {
                    body(b2, l2, first,
                         emit(b2, l2, position, first, n, isShort));
                  });
    scf::YieldOp::create(b, l);
  };
  scf::IfOp::create(
      builder, loc, position.isShort,
      [&](OpBuilder &b, Location l) { emitLoop(b, l, /*isShort=*/true); },
      [&](OpBuilder &b, Location l) { emitLoop(b, l, /*isShort=*/false); });
}

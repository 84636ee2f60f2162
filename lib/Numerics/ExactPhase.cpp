//===- ExactPhase.cpp - cos and sin of a phase ----------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Numerics/ExactPhase.h"
#include "posenc/IR/CreateIndex.h"

#include "posenc/Numerics/ConstantTables.h"
#include "posenc/Numerics/ElementwiseBuilder.h"

#include "posenc/IR/PairFrequencies.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace mlir::posenc;

ExactPhase::ExactPhase(OpBuilder &builder, Operation *op, const Angles &angles,
                       Type type, PhasePrecision precision,
                       ArrayRef<int64_t> order, double ahead)
    : frequencies(angles.frequencies), axes(angles.axes),
      inverse(angles.inverse), hasFloatPositions(angles.hasFloatPositions),
      type(type), precision(precision), length(order.size()) {
  assert((!hasFloatPositions || angles.turns.empty()) &&
         "turns are for integer positions");
  if (axes) {
    auto numbers = llvm::map_to_vector(order, [&](int64_t pair) {
      return static_cast<int32_t>(axes.getAxisOfPair(pair));
    });
    axisOfPair = createConstants<int32_t>(builder, op, "axis_of_pair", numbers);
  }
  if (angles.turns.empty())
    createConstantPhases(builder, op, order, ahead);
  else
    arrangeTurns(builder, op, angles.turns, order);
}

/// Copies the turns to a buffer on the stack, in the requested order.
void ExactPhase::arrangeTurns(OpBuilder &builder, Operation *op,
                              ValueRange unordered, ArrayRef<int64_t> order) {
  assert(unordered.size() == 2 && "turns are two tensors, high and low");
  turnsHigh = unordered[0];
  turnsLow = unordered[1];
  if (llvm::equal(order, llvm::seq<int64_t>(0, order.size())))
    return;
  Location loc = op->getLoc();
  auto type = MemRefType::get({length}, builder.getI64Type());
  Value high, low;
  {
    OpBuilder::InsertionGuard guard(builder);
    auto function = op->getParentOfType<FunctionOpInterface>();
    builder.setInsertionPointToStart(&function.getFunctionBody().front());
    IntegerAttr alignment = builder.getI64IntegerAttr(64);
    high = memref::AllocaOp::create(builder, loc, type, alignment);
    low = memref::AllocaOp::create(builder, loc, type, alignment);
  }
  std::string symbol = createConstants<int32_t>(
      builder, op, "pair_order", llvm::to_vector_of<int32_t>(order));
  Value numbers = memref::GetGlobalOp::create(
      builder, loc, MemRefType::get({length}, builder.getI32Type()), symbol);
  scf::ForOp::create(
      builder, loc, createIndex(builder, loc, 0),
      createIndex(builder, loc, length), createIndex(builder, loc, 1),
      ValueRange(), [&](OpBuilder &b, Location l, Value at, ValueRange) {
        Value number = memref::LoadOp::create(b, l, numbers, at);
        Value pair = arith::IndexCastOp::create(b, l, b.getIndexType(), number);
        for (auto [from, to] :
             {std::pair(turnsHigh, high), std::pair(turnsLow, low)}) {
          Value part = memref::LoadOp::create(b, l, from, pair);
          memref::StoreOp::create(b, l, part, to, at);
        }
        scf::YieldOp::create(b, l);
      });
  turnsHigh = high;
  turnsLow = low;
}

void ExactPhase::createConstantPhases(OpBuilder &builder, Operation *op,
                                      ArrayRef<int64_t> order, double ahead) {
  SmallVector<int64_t> highs, lows, wholes, more;
  SmallVector<int32_t> tops, rests, moreTops;
  SmallVector<PairFrequency> pairs = computePairFrequencies(frequencies, axes);
  assert(llvm::all_of(order,
                      [&](int64_t pair) {
                        return pair >= 0 && pair < int64_t(pairs.size());
                      }) &&
         "the order has a pair without a frequency");
  if (frequencies.roundsAngles()) {
    auto values = llvm::map_to_vector(
        order, [&](int64_t pair) { return pairs[pair].frequency.toFloat(); });
    rounded = createConstants<float>(builder, op, "frequencies", values);
    return;
  }
  for (int64_t number : order) {
    const PairFrequency &pair = pairs[number];
    auto turns = ::posenc::Turns::fromRadians(pair.frequency);
    highs.push_back(static_cast<int64_t>(turns.high));
    lows.push_back(turns.low);
    wholes.push_back(static_cast<int64_t>(turns.whole));
    uint64_t rounded = turns.high + (turns.low >> 31);
    rests.push_back(static_cast<int32_t>(rounded));
    tops.push_back(static_cast<int32_t>((rounded + (1u << 31)) >> 32));
    turns = ::posenc::Turns::fromRadians(pair.frequency *
                                         ::posenc::BigFloat(ahead));
    rounded = turns.high + (turns.low >> 31);
    more.push_back(static_cast<int64_t>(rounded));
    moreTops.push_back(static_cast<int32_t>((rounded + (1u << 31)) >> 32));
  }
  high = createConstants<int64_t>(builder, op, "frequencies_high", highs);
  low = createConstants<int64_t>(builder, op, "frequencies_low", lows);
  if (ahead != 0.0)
    aheads = createConstants<int64_t>(builder, op, "phases_ahead", more);
  if (hasFloatPositions && llvm::any_of(wholes, [](int64_t n) { return n; }))
    whole = createConstants<int64_t>(builder, op, "frequencies_whole", wholes);
  if (precision == PhasePrecision::Relative || hasFloatPositions)
    return;
  if (ahead != 0.0)
    aheadTops =
        createConstants<int32_t>(builder, op, "phases_ahead_top", moreTops);
  top = createConstants<int32_t>(builder, op, "frequencies_top", tops);
  rest = createConstants<int32_t>(builder, op, "frequencies_rest", rests);
}

static Value toI64(OpBuilder &builder, Location loc, Value position) {
  return getValueOrCreateCastToIndexLike(builder, loc, builder.getI64Type(),
                                         position);
}

ExactPhase::Position ExactPhase::createPosition(OpBuilder &builder,
                                                Location loc,
                                                ValueRange values) const {
  Position result;
  if (hasFloats()) {
    for (Value value : values)
      result.axes.push_back(
          emitFloatPosition(builder, loc, value, frequencies.roundsAngles()));
    return result;
  }
  for (Value value : values)
    result.axes.push_back(toI64(builder, loc, value));
  // Short positions are 0 to 2^32-1 for the whole phase, and those of i32 for
  // its upper half.
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(builder, loc, value, 64);
  };
  Value upper;
  for (Value axis : result.axes) {
    if (precision == PhasePrecision::Absolute)
      axis =
          arith::AddIOp::create(builder, loc, axis, constant(int64_t{1} << 31));
    Value mine = arith::ShRUIOp::create(builder, loc, axis, constant(32));
    upper = upper ? arith::OrIOp::create(builder, loc, upper, mine) : mine;
  }
  result.isShort = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                         upper, constant(0));
  return result;
}

ExactPhase::Position ExactPhase::loadPosition(OpBuilder &builder, Location loc,
                                              Value positions,
                                              ValueRange indices) const {
  if (!isa<MemRefType>(positions.getType())) {
    Value index = toI64(builder, loc, indices.front());
    return createPosition(builder, loc,
                          arith::AddIOp::create(builder, loc,
                                                toI64(builder, loc, positions),
                                                index)
                              .getResult());
  }
  SmallVector<Value> values;
  for (int64_t axis = 0, e = axes ? axes.getNumAxes() : 1; axis < e; ++axis) {
    SmallVector<Value> at;
    if (axes)
      at.push_back(createIndex(builder, loc, axis));
    llvm::append_range(at, indices);
    values.push_back(memref::LoadOp::create(builder, loc, positions, at));
  }
  return createPosition(builder, loc, values);
}

Value ExactPhase::loadConstants(OpBuilder &builder, Location loc,
                                StringRef symbol, Type type, Value first,
                                int64_t lanes) const {
  Value table = memref::GetGlobalOp::create(
      builder, loc, MemRefType::get({length}, type), symbol);
  return vector::LoadOp::create(builder, loc, VectorType::get({lanes}, type),
                                table, ValueRange(first));
}

ExactPhase::Frequency ExactPhase::loadFrequency(OpBuilder &builder,
                                                Location loc, Value first,
                                                int64_t lanes) const {
  Type i64 = builder.getI64Type();
  if (!turnsHigh)
    return {loadConstants(builder, loc, high, i64, first, lanes),
            loadConstants(builder, loc, low, i64, first, lanes)};
  auto type = VectorType::get({lanes}, i64);
  auto load = [&](Value list) -> Value {
    return vector::LoadOp::create(builder, loc, type, list, ValueRange(first));
  };
  return {load(turnsHigh), load(turnsLow)};
}

ExactPhase::RoundedFrequency ExactPhase::loadRounded(OpBuilder &builder,
                                                     Location loc, Value first,
                                                     int64_t lanes) const {
  Type i32 = builder.getI32Type();
  if (!turnsHigh)
    return {loadConstants(builder, loc, top, i32, first, lanes),
            loadConstants(builder, loc, rest, i32, first, lanes)};
  // As in createConstantPhases.
  auto [high, low] = loadFrequency(builder, loc, first, lanes);
  ElementwiseBuilder b(builder, loc, high);
  Value rounded = b.addi(high, b.shru(low, b.i64(31)));
  Value upper = b.shru(b.addi(rounded, b.i64(int64_t{1} << 31)), b.i64(32));
  return {b.cast<arith::TruncIOp>(i32, upper),
          b.cast<arith::TruncIOp>(i32, rounded)};
}

Value ExactPhase::selectAxis(OpBuilder &builder, Location loc,
                             ValueRange values, Value first,
                             int64_t lanes) const {
  auto type =
      VectorType::get({lanes}, getElementTypeOrSelf(values.front().getType()));
  auto broadcast = [&](Value value) -> Value {
    return builder.createOrFold<vector::BroadcastOp>(loc, type, value);
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

/// Emits the float whose phase counts: the position or, if angles are rounded,
/// the angle.
Value ExactPhase::emitFloat(OpBuilder &builder, Location loc,
                            const Position &position, Value first,
                            int64_t lanes) const {
  Value p = selectAxis(builder, loc, position.axes, first, lanes);
  if (!frequencies.roundsAngles())
    return p;
  return emitRoundedAngle(
      builder, loc, p,
      loadConstants(builder, loc, rounded, builder.getF32Type(), first, lanes));
}

/// Emits the whole phase, in units of 2^-64 of a turn.
Value ExactPhase::emitPhase(OpBuilder &builder, Location loc,
                            const Position &position, Value first,
                            int64_t lanes, bool isShort) const {
  if (frequencies.roundsAngles())
    return emitPhaseOfAngle(builder, loc,
                            emitFloat(builder, loc, position, first, lanes));
  Value p = selectAxis(builder, loc, position.axes, first, lanes);
  auto [h, l] = loadFrequency(builder, loc, first, lanes);
  if (hasFloatPositions) {
    Value turns;
    if (!whole.empty())
      turns = loadConstants(builder, loc, whole, builder.getI64Type(), first,
                            lanes);
    return emitPhaseOfFloat(builder, loc, p, {turns, h, l});
  }
  Value phase = ExactSincos::emitPhaseOfLow(builder, loc, p, h, l);
  auto add = [&](Value more) {
    phase = arith::AddIOp::create(builder, loc, phase, more);
  };
  if (!isShort)
    add(ExactSincos::emitPhaseOfHigh(builder, loc, p, h, l));
  return phase;
}

/// Adds the phase of `ahead` positions to `values`, from constants of the same
/// type.
Value ExactPhase::addAhead(OpBuilder &builder, Location loc, Value phases,
                           StringRef symbol, Value first) const {
  if (symbol.empty())
    return phases;
  auto type = cast<VectorType>(phases.getType());
  return arith::AddIOp::create(builder, loc, phases,
                               loadConstants(builder, loc, symbol,
                                             type.getElementType(), first,
                                             type.getNumElements()));
}

/// Emits the upper 32 bits of the phase, with an error of at most two units.
Value ExactPhase::emitPhaseTop(OpBuilder &builder, Location loc,
                               const Position &position, Value first,
                               int64_t lanes, bool isShort) const {
  Type i32 = builder.getI32Type();
  auto type = VectorType::get({lanes}, i32);
  if (!isShort) {
    Value phase = addAhead(
        builder, loc, emitPhase(builder, loc, position, first, lanes, isShort),
        aheads, first);
    ElementwiseBuilder b(builder, loc, phase);
    return arith::TruncIOp::create(builder, loc, type,
                                   b.shru(phase, b.i64(32)));
  }
  SmallVector<Value> narrow;
  for (Value axis : position.axes)
    narrow.push_back(arith::TruncIOp::create(builder, loc, i32, axis));
  Value p = selectAxis(builder, loc, narrow, first, lanes);
  auto [f, g] = loadRounded(builder, loc, first, lanes);
  Value ofTop = arith::MulIOp::create(builder, loc, p, f);
  auto ofRest = arith::MulSIExtendedOp::create(builder, loc, p, g);
  return addAhead(builder, loc,
                  arith::AddIOp::create(builder, loc, ofTop, ofRest.getHigh()),
                  aheadTops, first);
}

ExactSincos ExactPhase::getSincos() const {
  ::posenc::BigFloat factor = frequencies.computeAttentionFactor();
  // inverse(rope(x)) = x needs the reciprocal factor.
  if (inverse)
    factor = ::posenc::BigFloat(1.0) / factor;
  return ExactSincos(factor, inverse);
}

ExactPhase::CosSin ExactPhase::emitOfPhase(OpBuilder &builder, Location loc,
                                           Value phase) const {
  auto [cos, sin] = getSincos().emit(builder, loc, phase, type);
  return {cos, sin};
}

/// Makes the cos and sin of a float NaN if its phase is not exact.
ExactPhase::CosSin ExactPhase::addGuard(OpBuilder &builder, Location loc,
                                        const Position &position, Value first,
                                        int64_t lanes, CosSin element) const {
  if (!hasFloats())
    return element;
  Value guard = emitFloatGuard(builder, loc,
                               emitFloat(builder, loc, position, first, lanes));
  if (hasFloatPositions && frequencies.roundsAngles()) {
    Value p = selectAxis(builder, loc, position.axes, first, lanes);
    guard = arith::AddFOp::create(builder, loc, guard,
                                  emitFloatGuard(builder, loc, p));
  }
  return {arith::AddFOp::create(builder, loc, element.cos, guard),
          arith::AddFOp::create(builder, loc, element.sin, guard)};
}

ExactPhase::CosSin ExactPhase::emitRelative(OpBuilder &builder, Location loc,
                                            const Position &position,
                                            Value first, int64_t lanes,
                                            bool isShort) const {
  Value phase = emitPhase(builder, loc, position, first, lanes, isShort);
  return addGuard(builder, loc, position, first, lanes,
                  emitOfPhase(builder, loc, phase));
}

ExactPhase::CosSin ExactPhase::emit(OpBuilder &builder, Location loc,
                                    const Position &position, Value first,
                                    int64_t lanes, bool isShort) const {
  CosSin element;
  if (precision == PhasePrecision::Relative) {
    Value phase = emitPhase(builder, loc, position, first, lanes, isShort);
    element =
        emitOfPhase(builder, loc, addAhead(builder, loc, phase, aheads, first));
  } else {
    Value phase = emitPhaseTop(builder, loc, position, first, lanes, isShort);
    auto [cos, sin] = getSincos().emitForRotation(builder, loc, phase);
    element = {cos, sin};
  }
  return addGuard(builder, loc, position, first, lanes, element);
}

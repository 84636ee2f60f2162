//===- PositionSteps.cpp - from a position to those after it ----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PositionSteps.h"

#include "ConstantTables.h"
#include "ElementwiseBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::posenc;
using ::posenc::BigFloat;

/// The constants of more would be larger than all else in a library, and their
/// anchors larger than a stack likes.
static constexpr size_t kMostPairs = 4096;

static Value createIndex(OpBuilder &builder, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(builder, loc, value);
}

static Value createInt(OpBuilder &builder, Location loc, int64_t value) {
  return arith::ConstantIntOp::create(builder, loc, value, 64);
}

/// Products of f32, with all that is rounded on the way, are wrong by less than
/// 2^-22.8, a tenth of a unit of the bf16 from 2^-12 on; products of f64, whose
/// anchors are wrong by 2^-47, by less than that of the f32 from 2^-19 on.
static double getLimit(Type type, TableUse use) {
  if (use == TableUse::Rotation || type.isF64())
    return 0.0;
  return type.isBF16() ? 0x1p-12 : 0x1p-19;
}

/// With f16, one group in twenty would have a small entry.
static bool areProductsF32(Type type, TableUse use) {
  return !type.isF64() && (use == TableUse::Rotation || type.isBF16());
}

static PhasePrecision getPrecision(Type type, TableUse use, bool hasRuns) {
  bool isAbsolute =
      use == TableUse::Rotation || (hasRuns && areProductsF32(type, use));
  return isAbsolute && !type.isF64() ? PhasePrecision::Absolute
                                     : PhasePrecision::Relative;
}

PositionSteps::PositionSteps(OpBuilder &builder, Operation *op,
                             FrequenciesAttr frequencies, AxesAttr axes,
                             bool inverse, Type type, TableUse use,
                             ArrayRef<int64_t> order)
    : runs(!type.isF64() && order.size() <= kMostPairs),
      phases(builder, op, frequencies, axes, inverse, type,
             getPrecision(type, use, runs), order),
      use(use), length(order.size()), numAxes(axes ? axes.getNumAxes() : 1),
      type(type.isF64() ? type : builder.getF32Type()),
      products(areProductsF32(type, use) ? builder.getF32Type()
                                         : builder.getF64Type()),
      numParts(use == TableUse::Rotation ? 4 : 2), limit(getLimit(type, use)) {
  if (runs)
    createSteps(builder, op, computePairFrequencies(frequencies, axes), inverse,
                order);
}

int64_t PositionSteps::getStepBytes() const {
  return kRun * numParts * products.getIntOrFloatBitWidth() / 8;
}

void PositionSteps::createSteps(OpBuilder &builder, Operation *op,
                                ArrayRef<PairFrequency> pairs, bool inverse,
                                ArrayRef<int64_t> order) {
  SmallVector<double> values(kRun * numParts * length);
  SmallVector<int32_t> still(length);
  for (auto [column, number] : llvm::enumerate(order)) {
    BigFloat frequency = pairs[number].frequency;
    still[column] = frequency == BigFloat(0.0) ? 0x7fffffff : 0;
    // A product is much less work than a cosine.
    BigFloat stepCos = cos(frequency), stepSin = sin(frequency);
    if (inverse)
      stepSin = BigFloat(0.0) - stepSin;
    BigFloat rowCos(1.0), rowSin(0.0);
    for (int64_t row = 0; row < kRun; ++row) {
      double *at = values.begin() + row * numParts * length + column;
      at[0] = rowCos.toDouble();
      at[length] = rowSin.toDouble();
      if (numParts == 4) {
        at[2 * length] = at[0] - static_cast<float>(at[0]);
        at[3 * length] = at[length] - static_cast<float>(at[length]);
      }
      BigFloat nextCos = rowCos * stepCos - rowSin * stepSin;
      rowSin = rowSin * stepCos + rowCos * stepSin;
      rowCos = nextCos;
    }
  }
  if (use == TableUse::Entries && llvm::is_contained(still, 0x7fffffff))
    stillPairs = createConstants<int32_t>(builder, op, "still_pairs", still);
  if (products.isF64()) {
    steps = createConstants<double>(builder, op, "steps", values);
    return;
  }
  SmallVector<float> narrow(values.begin(), values.end());
  steps = createConstants<float>(builder, op, "steps", narrow);
}

PositionSteps::Position
PositionSteps::getAnchor(OpBuilder &builder, Location loc,
                         const Position &position) const {
  Position anchor{{}, position.isShort};
  for (Value axis : position.axes)
    anchor.axes.push_back(arith::AndIOp::create(
        builder, loc, axis, createInt(builder, loc, -kRun)));
  return anchor;
}

PositionSteps::Entry PositionSteps::roundPhase(OpBuilder &builder, Location loc,
                                               const Entry &entry) const {
  Type to = runs ? products : type;
  return {ExactSincos::emitRounding(builder, loc, entry.cos, to),
          ExactSincos::emitRounding(builder, loc, entry.sin, to)};
}

/// The constants of the position's place in its run: cos, sin, and what both
/// lost.
SmallVector<Value> PositionSteps::loadStep(OpBuilder &builder, Location loc,
                                           const Position &position,
                                           Value first, int64_t lanes) const {
  Value table = memref::GetGlobalOp::create(
      builder, loc, MemRefType::get({kRun * numParts * length}, products),
      steps);
  SmallVector<Value> rows;
  for (Value axis : position.axes) {
    Value row = arith::AndIOp::create(builder, loc, axis,
                                      createInt(builder, loc, kRun - 1));
    row = arith::IndexCastOp::create(builder, loc, builder.getIndexType(), row);
    row = arith::MulIOp::create(builder, loc, row,
                                createIndex(builder, loc, numParts * length));
    rows.push_back(builder.createOrFold<arith::AddIOp>(loc, row, first));
  }
  SmallVector<Value> parts;
  for (int64_t part = 0; part < numParts; ++part) {
    Value offset = createIndex(builder, loc, part * length);
    auto ofAxes = llvm::map_to_vector(rows, [&](Value row) -> Value {
      return vector::LoadOp::create(
          builder, loc, VectorType::get({lanes}, products), table,
          builder.createOrFold<arith::AddIOp>(loc, row, offset));
    });
    parts.push_back(phases.selectAxis(builder, loc, ofAxes, first, lanes));
  }
  return parts;
}

PositionSteps::Entry PositionSteps::rotate(OpBuilder &builder, Location loc,
                                           const Position &position,
                                           const Entry &anchor,
                                           Value first) const {
  Value cos = anchor.cos, sin = anchor.sin;
  int64_t lanes = cast<VectorType>(cos.getType()).getNumElements();
  SmallVector<Value> step = loadStep(builder, loc, position, first, lanes);
  ElementwiseBuilder b(builder, loc, cos);
  auto turn = [&](Value ofCos, Value ofSin) {
    return Entry{b.fma(cos, ofCos, b.neg(b.mul(sin, ofSin))),
                 b.fma(sin, ofCos, b.mul(cos, ofSin))};
  };
  if (numParts == 2) {
    Entry entry = turn(step[0], step[1]);
    return {ExactSincos::emitRounding(builder, loc, entry.cos, type),
            ExactSincos::emitRounding(builder, loc, entry.sin, type)};
  }
  Entry lost = turn(step[2], step[3]);
  return {b.fma(cos, step[0], b.fma(b.neg(sin), step[1], lost.cos)),
          b.fma(sin, step[0], b.fma(cos, step[1], lost.sin))};
}

Value PositionSteps::getMagnitude(OpBuilder &builder, Location loc, Value entry,
                                  Value first) const {
  ElementwiseBuilder b(builder, loc, entry);
  Type word = builder.getI32Type();
  Value bits = b.andi(b.cast<arith::BitcastOp>(word, entry), b.i32(0x7fffffff));
  if (stillPairs.empty())
    return bits;
  Value still = memref::GetGlobalOp::create(
      builder, loc, MemRefType::get({length}, word), stillPairs);
  return b.ori(bits, vector::LoadOp::create(builder, loc,
                                            cast<VectorType>(b.like(word)),
                                            still, first));
}

Value PositionSteps::isSmall(OpBuilder &builder, Location loc,
                             Value magnitude) const {
  ElementwiseBuilder b(builder, loc, magnitude);
  uint32_t bits = llvm::bit_cast<uint32_t>(static_cast<float>(limit));
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt,
                               magnitude, b.i32(bits));
}

PositionSteps::Entry PositionSteps::mend(OpBuilder &builder, Location loc,
                                         const Position &position, Value first,
                                         const Entry &entry) const {
  int64_t lanes = cast<VectorType>(entry.cos.getType()).getNumElements();
  Entry exact = phases.emitRelative(builder, loc, position, first, lanes);
  ElementwiseBuilder b(builder, loc, entry.cos);
  auto select = [&](Value sum, Value own) {
    return b.select(
        isSmall(builder, loc, getMagnitude(builder, loc, sum, first)),
        ExactSincos::emitRounding(builder, loc, own, type), sum);
  };
  return {select(entry.cos, exact.cos), select(entry.sin, exact.sin)};
}

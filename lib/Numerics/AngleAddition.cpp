//===- AngleAddition.cpp - from a position to those after it ----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Numerics/AngleAddition.h"
#include "posenc/IR/CreateIndex.h"

#include "posenc/Numerics/ConstantTables.h"
#include "posenc/Numerics/ElementwiseBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::posenc;
using ::posenc::BigFloat;

/// With more pairs the constants would dominate a library's size, and base
/// positions would take too much stack.
static constexpr size_t kMaxPairs = 4096;

/// Elements below this limit are recomputed. Products in f32 have an absolute
/// error below 2^-22.3 with all roundings, a tenth of a unit in the last place
/// of a bf16 of 2^-12; products in f64, whose base positions have an error of
/// 2^-47, are as accurate for an f32 of 2^-19.
static double getLimit(Type type, TableUse use) {
  if (use == TableUse::Rotation || type.isF64())
    return 0.0;
  return type.isBF16() ? 0x1p-12 : 0x1p-19;
}

/// Whether products of cosines and sines are computed in f32. Tables of f16 use
/// f64: with the error of f32 products, one check of marks in twenty would find
/// an element so near zero that it must be recomputed.
static bool areProductsF32(Type type, TableUse use) {
  return !type.isF64() && (use == TableUse::Rotation || type.isBF16());
}

/// The constants of a bf16 table have half the size, so it has twice as many
/// steps.
static int64_t getNumSteps(Type type, TableUse use) {
  return use == TableUse::Table && type.isBF16() ? 32 : 16;
}

/// The number of steps between base positions, half the number of runs of a
/// stretch, since runs at the same distance before and after its middle share
/// constants. More steps would save little time, and each takes another row of
/// constants.
static int64_t getNumBaseSteps(TableUse use, bool hasRuns) {
  return hasRuns && use == TableUse::Table ? 2 : 0;
}

/// The rounding of constants to f32 is negligible next to that of elements to
/// 16 bits.
static int64_t getNumParts(Type type, TableUse use) {
  return use == TableUse::Rotation && type.getIntOrFloatBitWidth() > 16 ? 4 : 2;
}

static PhasePrecision getPrecision(Type type, TableUse use, bool hasRuns) {
  bool isAbsolute =
      use == TableUse::Rotation || (hasRuns && areProductsF32(type, use));
  return isAbsolute && !type.isF64() ? PhasePrecision::Absolute
                                     : PhasePrecision::Relative;
}

AngleAddition::AngleAddition(OpBuilder &builder, Operation *op,
                             const Angles &angles, Type type, TableUse use,
                             ArrayRef<int64_t> order)
    : use(use),
      runs(!type.isF64() && order.size() <= kMaxPairs && angles.turns.empty() &&
           !angles.hasFloatPositions && !angles.frequencies.roundsAngles()),
      stepLevel{::getNumSteps(type, use), 1, ""},
      baseLevel{getNumBaseSteps(use, runs), getRun(), ""},
      phases(builder, op, angles, type, getPrecision(type, use, runs), order,
             runs && use == TableUse::Table ? getStretchLength() * 0.5 - 0.5
                                            : 0.0),
      length(order.size()), numAxes(angles.axes ? angles.axes.getNumAxes() : 1),
      type(type.isF64() ? type : builder.getF32Type()),
      products(areProductsF32(type, use) ? builder.getF32Type()
                                         : builder.getF64Type()),
      block(getBlock()), numParts(::getNumParts(type, use)),
      limit(getLimit(type, use)) {
  if (!runs)
    return;
  SmallVector<PairFrequency> pairs =
      computePairFrequencies(angles.frequencies, angles.axes);
  auto still = llvm::map_to_vector(order, [&](int64_t number) -> int32_t {
    return pairs[number].frequency == BigFloat(0.0) ? 0x7fffffff : 0;
  });
  if (use == TableUse::Table && llvm::is_contained(still, 0x7fffffff))
    stillPairs = createConstants<int32_t>(builder, op, "still_pairs", still);
  createLevel(builder, op, stepLevel, "steps", pairs, angles.inverse, order);
  if (hasStretches())
    createLevel(builder, op, baseLevel, "turns", pairs, angles.inverse, order);
}

int64_t AngleAddition::getBlock() const {
  if (length < kLongRow)
    return products.isF64() ? std::min<int64_t>(length, 16) : length;
  return length % kLongRow == 0 ? kLongRow : length;
}

int64_t AngleAddition::getStepBytes() const {
  return getNumSteps() * numParts * products.getIntOrFloatBitWidth() / 8;
}

void AngleAddition::createLevel(OpBuilder &builder, Operation *op, Level &level,
                                StringRef name, ArrayRef<PairFrequency> pairs,
                                bool inverse, ArrayRef<int64_t> order) {
  int64_t ofStep = getStride(numParts), lead = getLead();
  SmallVector<double> values(lead + level.numSteps * ofStep);
  for (auto [column, number] : llvm::enumerate(order)) {
    // Computes the cosines of later steps by products, which are cheaper.
    BigFloat half = pairs[number].frequency * BigFloat(0.5 * level.unit);
    BigFloat halfCos = cos(half), halfSin = sin(half);
    if (inverse)
      halfSin = BigFloat(0.0) - halfSin;
    BigFloat stepCos = halfCos * halfCos - halfSin * halfSin;
    BigFloat stepSin = BigFloat(2.0) * halfSin * halfCos;
    BigFloat rowCos(1.0), rowSin(0.0);
    if (use == TableUse::Table) {
      rowCos = halfCos;
      rowSin = halfSin;
    }
    for (int64_t row = 0; row < level.numSteps; ++row) {
      double *at = values.begin() + lead + row * ofStep +
                   column / block * numParts * block + column % block;
      at[0] = rowCos.toDouble();
      at[block] = rowSin.toDouble();
      if (numParts == 4) {
        at[2 * block] = at[0] - static_cast<float>(at[0]);
        at[3 * block] = at[block] - static_cast<float>(at[block]);
      }
      BigFloat nextCos = rowCos * stepCos - rowSin * stepSin;
      rowSin = rowSin * stepCos + rowCos * stepSin;
      rowCos = nextCos;
    }
  }
  if (products.isF64()) {
    level.constants =
        createConstants<double>(builder, op, name, values, getAlignment());
    return;
  }
  SmallVector<float> narrow(values.begin(), values.end());
  level.constants =
      createConstants<float>(builder, op, name, narrow, getAlignment());
}

/// Rounds a position down to a multiple of `count`, a power of two.
AngleAddition::Position AngleAddition::getFirst(OpBuilder &builder,
                                                Location loc,
                                                const Position &position,
                                                int64_t length) const {
  Position first{{}, position.isShort};
  for (Value axis : position.axes)
    first.axes.push_back(arith::AndIOp::create(
        builder, loc, axis, createI64(builder, loc, -length)));
  return first;
}

AngleAddition::Position
AngleAddition::getBasePosition(OpBuilder &builder, Location loc,
                               const Position &position) const {
  return getFirst(builder, loc, position, getRun());
}

AngleAddition::Position
AngleAddition::getStretch(OpBuilder &builder, Location loc,
                          const Position &position) const {
  return getFirst(builder, loc, position, getStretchLength());
}

AngleAddition::CosSin AngleAddition::roundPhase(OpBuilder &builder,
                                                Location loc,
                                                const CosSin &element) const {
  Type to = runs ? products : type;
  return {ExactSincos::emitRounding(builder, loc, element.cos, to),
          ExactSincos::emitRounding(builder, loc, element.sin, to)};
}

/// The index of a position's constants, and a mask with all bits set if the
/// position is before the middle of its run.
struct AngleAddition::Step {
  Value row, isBefore;
};

AngleAddition::Step AngleAddition::getStep(OpBuilder &builder, Location loc,
                                           const Level &level,
                                           Value axis) const {
  bool hasBefore = use == TableUse::Table;
  Value step = axis;
  if (level.unit > 1)
    step = arith::ShRUIOp::create(
        builder, loc, step, createI64(builder, loc, llvm::Log2_64(level.unit)));
  step = arith::AndIOp::create(
      builder, loc, step,
      createI64(builder, loc, level.numSteps * (hasBefore ? 2 : 1) - 1));
  Value isBefore;
  if (hasBefore) {
    // With 16 rows of constants, steps 0 to 31 are the distances -15.5 to 15.5
    // from the middle. Without 16, a step n has the distance n + 0.5; if n is
    // negative, the row is that of its complement, which has the opposite
    // distance.
    Value behind = arith::SubIOp::create(
        builder, loc, step, createI64(builder, loc, level.numSteps));
    isBefore = arith::ShRSIOp::create(builder, loc, behind,
                                      createI64(builder, loc, 63));
    step = arith::XOrIOp::create(builder, loc, behind, isBefore);
  }
  return {
      arith::IndexCastOp::create(builder, loc, builder.getIndexType(), step),
      isBefore};
}

Value AngleAddition::getOffset(OpBuilder &builder, Location loc, Value first,
                               int64_t part, int64_t numParts) const {
  // Skips the other parts of all earlier blocks.
  Value before = first;
  if (block < length) {
    Value number = builder.createOrFold<arith::DivUIOp>(
        loc, first, createIndex(builder, loc, block));
    number = builder.createOrFold<arith::MulIOp>(
        loc, number, createIndex(builder, loc, (numParts - 1) * block));
    before = builder.createOrFold<arith::AddIOp>(loc, number, first);
  }
  return builder.createOrFold<arith::AddIOp>(
      loc, before, createIndex(builder, loc, getLead() + part * block));
}

/// Loads a part of a step's constants: cos, sin, or the rounding error of one.
Value AngleAddition::loadPart(OpBuilder &builder, Location loc,
                              const Level &level, Value row, int64_t part,
                              Value first, int64_t lanes) const {
  int64_t ofStep = getStride(numParts);
  auto type = MemRefType::get({getLead() + level.numSteps * ofStep}, products);
  Value table =
      memref::GetGlobalOp::create(builder, loc, type, level.constants);
  Value at = builder.createOrFold<arith::MulIOp>(
      loc, row, createIndex(builder, loc, ofStep));
  at = builder.createOrFold<arith::AddIOp>(
      loc, at, getOffset(builder, loc, first, part, numParts));
  return vector::LoadOp::create(builder, loc,
                                VectorType::get({lanes}, products), table, at);
}

/// Loads all parts of the constants of the position's step.
SmallVector<Value> AngleAddition::loadLevel(OpBuilder &builder, Location loc,
                                            const Level &level,
                                            const Position &position,
                                            Value first, int64_t lanes) const {
  auto steps = llvm::map_to_vector(position.axes, [&](Value axis) {
    return getStep(builder, loc, level, axis);
  });
  SmallVector<Value> parts;
  for (int64_t part = 0; part < numParts; ++part) {
    auto ofAxes = llvm::map_to_vector(steps, [&](const Step &step) {
      return loadPart(builder, loc, level, step.row, part, first, lanes);
    });
    parts.push_back(phases.selectAxis(builder, loc, ofAxes, first, lanes));
  }
  if (use == TableUse::Rotation)
    return parts;
  auto word = builder.getIntegerType(products.getIntOrFloatBitWidth());
  auto signs = llvm::map_to_vector(steps, [&](const Step &step) -> Value {
    Value sign = step.isBefore;
    if (word.getWidth() < 64)
      sign = arith::TruncIOp::create(builder, loc, word, sign);
    return arith::AndIOp::create(
        builder, loc, sign,
        arith::ConstantIntOp::create(
            builder, loc, word, llvm::APInt::getSignMask(word.getWidth())));
  });
  ElementwiseBuilder b(builder, loc, parts[1]);
  parts[1] = b.cast<arith::BitcastOp>(
      products, b.xori(b.cast<arith::BitcastOp>(word, parts[1]),
                       phases.selectAxis(builder, loc, signs, first, lanes)));
  return parts;
}

AngleAddition::CosSin AngleAddition::round(OpBuilder &builder, Location loc,
                                           const CosSin &element) const {
  return {ExactSincos::emitRounding(builder, loc, element.cos, type),
          ExactSincos::emitRounding(builder, loc, element.sin, type)};
}

/// `element` further by an angle.
static AngleAddition::CosSin rotateBy(ElementwiseBuilder b,
                                      const AngleAddition::CosSin &element,
                                      Value cos, Value sin) {
  return {b.fma(element.cos, cos, b.neg(b.mul(element.sin, sin))),
          b.fma(element.sin, cos, b.mul(element.cos, sin))};
}

AngleAddition::CosSin AngleAddition::rotateBase(OpBuilder &builder,
                                                Location loc,
                                                const Position &position,
                                                const CosSin &stretch,
                                                Value first) const {
  if (!hasStretches())
    return stretch;
  int64_t lanes = cast<VectorType>(stretch.cos.getType()).getNumElements();
  SmallVector<Value> by =
      loadLevel(builder, loc, baseLevel, position, first, lanes);
  return rotateBy({builder, loc, stretch.cos}, stretch, by[0], by[1]);
}

AngleAddition::CosSin AngleAddition::rotate(OpBuilder &builder, Location loc,
                                            const Position &position,
                                            const CosSin &base,
                                            Value first) const {
  Value cos = base.cos, sin = base.sin;
  int64_t lanes = cast<VectorType>(cos.getType()).getNumElements();
  SmallVector<Value> step =
      loadLevel(builder, loc, stepLevel, position, first, lanes);
  ElementwiseBuilder b(builder, loc, cos);
  if (numParts == 2)
    return round(builder, loc, rotateBy(b, base, step[0], step[1]));
  CosSin lost = rotateBy(b, base, step[2], step[3]);
  return {b.fma(cos, step[0], b.fma(b.neg(sin), step[1], lost.cos)),
          b.fma(sin, step[0], b.fma(cos, step[1], lost.sin))};
}

std::pair<AngleAddition::CosSin, AngleAddition::CosSin>
AngleAddition::rotateBoth(OpBuilder &builder, Location loc, Value step,
                          const CosSin &base, Value first) const {
  int64_t lanes = cast<VectorType>(base.cos.getType()).getNumElements();
  Value ofCos = loadPart(builder, loc, stepLevel, step, 0, first, lanes);
  Value ofSin = loadPart(builder, loc, stepLevel, step, 1, first, lanes);
  ElementwiseBuilder b(builder, loc, ofCos);
  Value ss = b.mul(base.sin, ofSin), cs = b.mul(base.cos, ofSin);
  auto rotateBase = [&](Value ofCosine, Value ofSine) {
    return round(
        builder, loc,
        {b.fma(base.cos, ofCos, ofCosine), b.fma(base.sin, ofCos, ofSine)});
  };
  return {rotateBase(b.neg(ss), cs), rotateBase(ss, b.neg(cs))};
}

/// Sets all bits of the words of sines of frequency 0.
Value AngleAddition::orStill(OpBuilder &builder, Location loc, Value words,
                             Value first) const {
  if (stillPairs.empty())
    return words;
  Value still = memref::GetGlobalOp::create(
      builder, loc, MemRefType::get({length}, builder.getI32Type()),
      stillPairs);
  Value bits = vector::LoadOp::create(
      builder, loc, cast<VectorType>(words.getType()), still, first);
  return arith::OrIOp::create(builder, loc, words, bits);
}

Value AngleAddition::getMagnitude(OpBuilder &builder, Location loc,
                                  Value element, Value first) const {
  ElementwiseBuilder b(builder, loc, element);
  Value bits = b.cast<arith::BitcastOp>(builder.getI32Type(), element);
  return orStill(builder, loc, b.andi(bits, b.i32(0x7fffffff)), first);
}

static uint32_t getBits(double limit) {
  return llvm::bit_cast<uint32_t>(static_cast<float>(limit));
}

Value AngleAddition::isSmall(OpBuilder &builder, Location loc,
                             Value magnitude) const {
  ElementwiseBuilder b(builder, loc, magnitude);
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt,
                               magnitude, b.i32(getBits(limit)));
}

/// Bits that are all set in the exponent of any f32 in [2^-15, 2).
static constexpr uint32_t kMarkBits = 0x38000000;

/// Words as pairs of halves.
static Value getHalves(OpBuilder &builder, Location loc, Value words) {
  int64_t lanes = cast<VectorType>(words.getType()).getNumElements();
  return vector::BitCastOp::create(
      builder, loc, VectorType::get({2 * lanes}, builder.getI16Type()), words);
}

Value AngleAddition::joinMarks(OpBuilder &builder, Location loc, Value a,
                               Value b) const {
  if (products.isF64())
    return arith::AndIOp::create(builder, loc, a, b);
  Value min = arith::MinUIOp::create(builder, loc, getHalves(builder, loc, a),
                                     getHalves(builder, loc, b));
  return vector::BitCastOp::create(builder, loc, a.getType(), min);
}

Value AngleAddition::getMarks(OpBuilder &builder, Location loc,
                              const CosSin &element, ValueRange written,
                              Value first) const {
  bool isOneRow = written.size() == 1 && stillPairs.empty() &&
                  getElementTypeOrSelf(written.front().getType()).isBF16();
  // Doubling the bits of a bf16 shifts out its sign.
  auto getMagnitudes = [&](Value words, VectorType type) -> Value {
    Value halves = getHalves(builder, loc, words);
    Value twice = arith::AddIOp::create(builder, loc, halves, halves);
    return vector::BitCastOp::create(builder, loc, type, twice);
  };
  if (isOneRow) {
    Value row = written.front();
    int64_t words = cast<VectorType>(row.getType()).getNumElements() / 2;
    auto type = VectorType::get({words}, builder.getI32Type());
    return getMagnitudes(vector::BitCastOp::create(builder, loc, type, row),
                         type);
  }
  ElementwiseBuilder b(builder, loc, element.cos);
  auto getMark = [&](Value value) {
    Value bits = b.cast<arith::BitcastOp>(builder.getI32Type(), value);
    bits = orStill(builder, loc, bits, first);
    if (products.isF64())
      return bits;
    // Sets the lower half of each word to the largest magnitude, so that the
    // upper half, the bits of the element as bf16, decides the minimum.
    return getMagnitudes(b.ori(bits, b.i32(0x7fff)),
                         cast<VectorType>(bits.getType()));
  };
  return joinMarks(builder, loc, getMark(element.cos), getMark(element.sin));
}

Value AngleAddition::isAnySmall(OpBuilder &builder, Location loc,
                                Value marks) const {
  if (products.isF64()) {
    ElementwiseBuilder b(builder, loc, marks);
    Value isSmall = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::ne, b.andi(marks, b.i32(kMarkBits)),
        b.i32(kMarkBits));
    return vector::ReductionOp::create(builder, loc, vector::CombiningKind::OR,
                                       isSmall);
  }
  // The first bf16 above the limit: an element below the limit must not be
  // rounded to one that passes the check.
  uint16_t maxSmall = 2 * ((getBits(limit) >> 16) + 1) - 1;
  Value min =
      vector::ReductionOp::create(builder, loc, vector::CombiningKind::MINUI,
                                  getHalves(builder, loc, marks));
  return arith::CmpIOp::create(
      builder, loc, arith::CmpIPredicate::ule, min,
      arith::ConstantIntOp::create(builder, loc, maxSmall, 16));
}

AngleAddition::CosSin AngleAddition::recompute(OpBuilder &builder, Location loc,
                                               const Position &position,
                                               Value first,
                                               const CosSin &element) const {
  int64_t lanes = cast<VectorType>(element.cos.getType()).getNumElements();
  CosSin exact = phases.emitRelative(builder, loc, position, first, lanes);
  ElementwiseBuilder b(builder, loc, element.cos);
  auto select = [&](Value sum, Value own) {
    return b.select(
        isSmall(builder, loc, getMagnitude(builder, loc, sum, first)),
        ExactSincos::emitRounding(builder, loc, own, type), sum);
  };
  return {select(element.cos, exact.cos), select(element.sin, exact.sin)};
}

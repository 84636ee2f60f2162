//===- PositionTable.cpp - cos and sin of one position ----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PositionTable.h"

#include "ElementwiseBuilder.h"
#include "VectorLoops.h"

#include "posenc/IR/PairFrequencies.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace mlir::posenc;
using ::posenc::BigFloat;

/// What leaves room in the first cache for rows.
static constexpr int64_t kStepBytes = 16 << 10;

/// The constants of more would be larger than all else in a library, and their
/// anchors larger than a stack likes.
static constexpr size_t kMostPairs = 4096;

/// Vectors whose sums are looked at together.
static constexpr int64_t kGroup = 2;

static int64_t getBytes(Type type) { return type.getIntOrFloatBitWidth() / 8; }

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

PositionTable::PositionTable(OpBuilder &builder, Operation *op,
                             FrequenciesAttr frequencies, AxesAttr axes,
                             bool inverse, Type type, TableUse use,
                             ArrayRef<int64_t> order)
    : hasRuns(!type.isF64() && order.size() <= kMostPairs),
      phases(builder, op, frequencies, axes, inverse, type,
             getPrecision(type, use, hasRuns), order),
      use(use), length(order.size()), numAxes(axes ? axes.getNumAxes() : 1),
      type(type.isF64() ? type : builder.getF32Type()),
      products(areProductsF32(type, use) ? builder.getF32Type()
                                         : builder.getF64Type()),
      numParts(use == TableUse::Rotation ? 4 : 2), limit(getLimit(type, use)) {
  if (!hasRuns)
    return;
  createSteps(builder, op, computePairFrequencies(frequencies, axes), inverse,
              order);
  allocate(builder, op);
}

void PositionTable::createSteps(OpBuilder &builder, Operation *op,
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

void PositionTable::allocate(OpBuilder &builder, Operation *op) {
  OpBuilder::InsertionGuard guard(builder);
  Location loc = op->getLoc();
  auto function = op->getParentOfType<FunctionOpInterface>();
  builder.setInsertionPointToStart(&function.getFunctionBody().front());
  auto create = [&](ArrayRef<int64_t> shape, Type element) -> Value {
    return memref::AllocaOp::create(builder, loc,
                                    MemRefType::get(shape, element),
                                    builder.getI64IntegerAttr(64));
  };
  anchor = create({2, length}, products);
  anchored = create({numAxes}, builder.getI64Type());
  forget(builder, loc);
}

/// No position has the anchor in memory.
void PositionTable::forget(OpBuilder &builder, Location loc) const {
  for (int64_t axis = 0; axis < numAxes; ++axis)
    memref::StoreOp::create(builder, loc, createInt(builder, loc, 1), anchored,
                            createIndex(builder, loc, axis));
}

PositionTable::Pairs PositionTable::getAll(OpBuilder &builder,
                                           Location loc) const {
  return {createIndex(builder, loc, 0), length};
}

void PositionTable::forEachPart(
    OpBuilder &builder, Location loc,
    function_ref<void(OpBuilder &, Location, Pairs)> body) const {
  int64_t most = kStepBytes / (kRun * numParts * getBytes(products));
  if (!hasRuns || length <= most)
    return body(builder, loc, getAll(builder, loc));
  int64_t whole = length / most * most;
  Value end = createIndex(builder, loc, whole);
  scf::ForOp::create(builder, loc, createIndex(builder, loc, 0), end,
                     createIndex(builder, loc, most), ValueRange(),
                     [&](OpBuilder &b, Location l, Value first, ValueRange) {
                       forget(b, l);
                       body(b, l, {first, most});
                       scf::YieldOp::create(b, l);
                     });
  if (whole == length)
    return;
  forget(builder, loc);
  body(builder, loc, {end, length - whole});
}

/// Puts the cos and sin of the position's anchor into memory.
void PositionTable::ensureAnchor(OpBuilder &builder, Location loc,
                                 const Position &position, Pairs pairs,
                                 int64_t lanes) const {
  Position first{{}, position.isShort};
  Value differs;
  for (auto [axis, value] : llvm::enumerate(position.axes)) {
    Value mine = arith::AndIOp::create(builder, loc, value,
                                       createInt(builder, loc, -kRun));
    first.axes.push_back(mine);
    Value old = memref::LoadOp::create(builder, loc, anchored,
                                       createIndex(builder, loc, axis));
    Value change = arith::XOrIOp::create(builder, loc, mine, old);
    differs =
        differs ? arith::OrIOp::create(builder, loc, differs, change) : change;
  }
  Value isOther = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne,
                                        differs, createInt(builder, loc, 0));
  scf::IfOp::create(builder, loc, isOther, [&](OpBuilder &b, Location l) {
    for (auto [axis, value] : llvm::enumerate(first.axes))
      memref::StoreOp::create(b, l, value, anchored, createIndex(b, l, axis));
    phases.forEachEntry(
        b, l, first, pairs, lanes,
        [&](OpBuilder &b2, Location l2, Value pair, const Entry &entry) {
          for (auto [which, value] : {std::pair(0, entry.cos), {1, entry.sin}})
            vector::StoreOp::create(
                b2, l2, ExactSincos::emitRounding(b2, l2, value, products),
                anchor, ValueRange{createIndex(b2, l2, which), pair});
        });
    scf::YieldOp::create(b, l);
  });
}

/// The constants of the position's place in its run: cos, sin, and what both
/// lost.
SmallVector<Value> PositionTable::loadStep(OpBuilder &builder, Location loc,
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

/// The anchor's, further by the position's place in its run.
PositionTable::Entry PositionTable::rotateAnchor(OpBuilder &builder,
                                                 Location loc,
                                                 const Position &position,
                                                 Value first,
                                                 int64_t lanes) const {
  SmallVector<Value> step = loadStep(builder, loc, position, first, lanes);
  auto load = [&](int64_t which) -> Value {
    return vector::LoadOp::create(
        builder, loc, VectorType::get({lanes}, products), anchor,
        ValueRange{createIndex(builder, loc, which), first});
  };
  Value cos = load(0), sin = load(1);
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

static Value isBelow(ElementwiseBuilder &b, Value magnitude, double limit) {
  uint32_t bits = llvm::bit_cast<uint32_t>(static_cast<float>(limit));
  return arith::CmpIOp::create(b.builder, b.loc, arith::CmpIPredicate::slt,
                               magnitude, b.i32(bits));
}

/// The bits of an entry without the sign, which are in the order of magnitudes.
/// The sines that are zero everywhere are as large as can be.
Value PositionTable::getMagnitude(OpBuilder &builder, Location loc, Value entry,
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

PositionTable::Entry PositionTable::mend(OpBuilder &builder, Location loc,
                                         const Position &position, Value first,
                                         const Entry &entry) const {
  int64_t lanes = cast<VectorType>(entry.cos.getType()).getNumElements();
  Entry exact = phases.emitRelative(builder, loc, position, first, lanes);
  ElementwiseBuilder b(builder, loc, entry.cos);
  auto select = [&](Value sum, Value own) {
    return b.select(isBelow(b, getMagnitude(builder, loc, sum, first), limit),
                    ExactSincos::emitRounding(builder, loc, own, type), sum);
  };
  return {select(entry.cos, exact.cos), select(entry.sin, exact.sin)};
}

/// Emits `body` for the vectors of a group of pairs from number `first` on, and
/// once more, after all of them, for the small ones.
void PositionTable::emitGroup(OpBuilder &builder, Location loc,
                              const Position &position, Value first,
                              ArrayRef<std::pair<int64_t, int64_t>> vectors,
                              Body body) const {
  struct Vector {
    Value first;
    Entry entry;
  };
  SmallVector<Vector> all;
  SmallVector<Value> least;
  for (auto [offset, length] : vectors) {
    Value mine = builder.createOrFold<arith::AddIOp>(
        loc, first, createIndex(builder, loc, offset));
    Entry entry = rotateAnchor(builder, loc, position, mine, length);
    body(builder, loc, mine, entry);
    all.push_back({mine, entry});
    for (Value value : {entry.cos, entry.sin}) {
      Value magnitude = getMagnitude(builder, loc, value, mine);
      bool isFirst =
          least.empty() || least.back().getType() != magnitude.getType();
      if (isFirst)
        least.push_back(magnitude);
      else
        least.back() =
            arith::MinSIOp::create(builder, loc, least.back(), magnitude);
    }
  }
  if (limit == 0.0)
    return;
  Value any;
  for (Value magnitude : least) {
    ElementwiseBuilder b(builder, loc, magnitude);
    Value mine = vector::ReductionOp::create(
        builder, loc, vector::CombiningKind::OR, isBelow(b, magnitude, limit));
    any = any ? arith::OrIOp::create(builder, loc, any, mine) : mine;
  }
  scf::IfOp::create(builder, loc, any, [&](OpBuilder &b, Location l) {
    for (const Vector &vector : all)
      body(b, l, vector.first,
           mend(b, l, position, vector.first, vector.entry));
    scf::YieldOp::create(b, l);
  });
}

void PositionTable::forEachEntry(OpBuilder &builder, Location loc,
                                 const Position &position, Pairs pairs,
                                 int64_t lanes, Body body) const {
  if (!hasRuns)
    return phases.forEachEntry(
        builder, loc, position, pairs, lanes,
        [&](OpBuilder &b, Location l, Value first, const Entry &entry) {
          body(b, l, first,
               {ExactSincos::emitRounding(b, l, entry.cos, type),
                ExactSincos::emitRounding(b, l, entry.sin, type)});
        });
  ensureAnchor(builder, loc, position, pairs, lanes);
  forEachVector(builder, loc, pairs.count, kGroup * lanes,
                [&](OpBuilder &b, Location l, Value number, int64_t n) {
                  emitGroup(
                      b, l, position,
                      b.createOrFold<arith::AddIOp>(l, pairs.first, number),
                      splitIntoVectors(n, lanes), body);
                });
}

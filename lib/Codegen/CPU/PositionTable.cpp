//===- PositionTable.cpp - cos and sin of one position ----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PositionTable.h"

#include "VectorLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace mlir::posenc;

/// What leaves room in the first cache for rows.
static constexpr int64_t kStepBytes = 16 << 10;

/// Vectors whose sums are looked at together.
static constexpr int64_t kGroup = 2;

static Value createIndex(OpBuilder &builder, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(builder, loc, value);
}

static Value createInt(OpBuilder &builder, Location loc, int64_t value) {
  return arith::ConstantIntOp::create(builder, loc, value, 64);
}

PositionTable::PositionTable(OpBuilder &builder, Operation *op,
                             FrequenciesAttr frequencies, AxesAttr axes,
                             bool inverse, Type type, TableUse use,
                             ArrayRef<int64_t> order)
    : steps(builder, op, frequencies, axes, inverse, type, use, order) {
  if (steps.hasRuns())
    allocate(builder, op);
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
  anchor = create({2, steps.getNumPairs()}, steps.getAnchorType());
  anchored = create({steps.getNumAxes()}, builder.getI64Type());
  forget(builder, loc);
}

/// No position has the anchor in memory.
void PositionTable::forget(OpBuilder &builder, Location loc) const {
  for (int64_t axis = 0, e = steps.getNumAxes(); axis < e; ++axis)
    memref::StoreOp::create(builder, loc, createInt(builder, loc, 1), anchored,
                            createIndex(builder, loc, axis));
}

PositionTable::Pairs PositionTable::getAll(OpBuilder &builder,
                                           Location loc) const {
  return {createIndex(builder, loc, 0), steps.getNumPairs()};
}

void PositionTable::forEachPart(
    OpBuilder &builder, Location loc,
    function_ref<void(OpBuilder &, Location, Pairs)> body) const {
  int64_t length = steps.getNumPairs();
  int64_t most = kStepBytes / steps.getStepBytes();
  if (!steps.hasRuns() || length <= most)
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

/// Emits `body` for what the phases of a position give.
void PositionTable::forEachPhase(OpBuilder &builder, Location loc,
                                 const Position &position, Pairs pairs,
                                 int64_t lanes, Body body) const {
  // A branch within the loop would keep both ways' values in registers.
  auto emitLoop = [&](OpBuilder &b, Location l, bool isShort) {
    forEachVector(b, l, pairs.count, lanes,
                  [&](OpBuilder &b2, Location l2, Value number, int64_t n) {
                    Value first =
                        b2.createOrFold<arith::AddIOp>(l2, pairs.first, number);
                    Entry entry = steps.getPhases().emit(b2, l2, position,
                                                         first, n, isShort);
                    body(b2, l2, first, steps.roundPhase(b2, l2, entry));
                  });
    scf::YieldOp::create(b, l);
  };
  scf::IfOp::create(
      builder, loc, position.isShort,
      [&](OpBuilder &b, Location l) { emitLoop(b, l, /*isShort=*/true); },
      [&](OpBuilder &b, Location l) { emitLoop(b, l, /*isShort=*/false); });
}

/// Puts the cos and sin of the position's anchor into memory.
void PositionTable::ensureAnchor(OpBuilder &builder, Location loc,
                                 const Position &position, Pairs pairs,
                                 int64_t lanes) const {
  Position first = steps.getAnchor(builder, loc, position);
  Value differs;
  for (auto [axis, mine] : llvm::enumerate(first.axes)) {
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
    forEachPhase(
        b, l, first, pairs, lanes,
        [&](OpBuilder &b2, Location l2, Value pair, const Entry &entry) {
          for (auto [which, value] : {std::pair(0, entry.cos), {1, entry.sin}})
            vector::StoreOp::create(
                b2, l2, value, anchor,
                ValueRange{createIndex(b2, l2, which), pair});
        });
    scf::YieldOp::create(b, l);
  });
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
    auto load = [&, length = length](int64_t which) -> Value {
      return vector::LoadOp::create(
          builder, loc, VectorType::get({length}, steps.getAnchorType()),
          anchor, ValueRange{createIndex(builder, loc, which), mine});
    };
    Entry entry =
        steps.rotate(builder, loc, position, {load(0), load(1)}, mine);
    body(builder, loc, mine, entry);
    all.push_back({mine, entry});
    for (Value value : {entry.cos, entry.sin}) {
      Value magnitude = steps.getMagnitude(builder, loc, value, mine);
      bool isFirst =
          least.empty() || least.back().getType() != magnitude.getType();
      if (isFirst)
        least.push_back(magnitude);
      else
        least.back() =
            arith::MinSIOp::create(builder, loc, least.back(), magnitude);
    }
  }
  if (!steps.canBeSmall())
    return;
  Value any;
  for (Value magnitude : least) {
    Value mine =
        vector::ReductionOp::create(builder, loc, vector::CombiningKind::OR,
                                    steps.isSmall(builder, loc, magnitude));
    any = any ? arith::OrIOp::create(builder, loc, any, mine) : mine;
  }
  scf::IfOp::create(builder, loc, any, [&](OpBuilder &b, Location l) {
    for (const Vector &vector : all)
      body(b, l, vector.first,
           steps.mend(b, l, position, vector.first, vector.entry));
    scf::YieldOp::create(b, l);
  });
}

void PositionTable::forEachEntry(OpBuilder &builder, Location loc,
                                 const Position &position, Pairs pairs,
                                 int64_t lanes, Body body) const {
  if (!steps.hasRuns())
    return forEachPhase(builder, loc, position, pairs, lanes, body);
  ensureAnchor(builder, loc, position, pairs, lanes);
  forEachVector(builder, loc, pairs.count, kGroup * lanes,
                [&](OpBuilder &b, Location l, Value number, int64_t n) {
                  emitGroup(
                      b, l, position,
                      b.createOrFold<arith::AddIOp>(l, pairs.first, number),
                      splitIntoVectors(n, lanes), body);
                });
}

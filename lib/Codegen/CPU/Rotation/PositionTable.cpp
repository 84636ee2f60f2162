//===- PositionTable.cpp - cos and sin of single positions ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PositionTable.h"
#include "posenc/IR/CreateIndex.h"

#include "CPU/VectorLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace mlir::posenc;

/// Limit, in bytes, of the rotation steps' constants of one part of the pairs:
/// a fraction of the L2 cache. Parts whose rows are shorter than a page cost
/// more than they save.
static constexpr int64_t kStepBytes = 128 << 10;

PositionTable::PositionTable(OpBuilder &builder, Operation *op,
                             const Angles &angles, Type type, TableUse use,
                             ArrayRef<int64_t> order)
    : steps(builder, op, angles, type, use, order),
      takesRuns(steps.hasRuns() && use == TableUse::Table && !angles.axes) {
  if (steps.hasRuns())
    allocate(builder, op);
}

PositionTable::Kept PositionTable::allocateKept(OpBuilder &builder,
                                                Location loc) const {
  auto create = [&](int64_t size, Type element, int64_t alignment) -> Value {
    return memref::AllocaOp::create(builder, loc,
                                    MemRefType::get({size}, element),
                                    builder.getI64IntegerAttr(alignment));
  };
  Value elements =
      create(steps.getSize(2), steps.getBaseType(), steps.getAlignment());
  return {elements, create(steps.getNumAxes(), builder.getI64Type(), 64)};
}

void PositionTable::allocate(OpBuilder &builder, Operation *op) {
  OpBuilder::InsertionGuard guard(builder);
  Location loc = op->getLoc();
  auto function = op->getParentOfType<FunctionOpInterface>();
  builder.setInsertionPointToStart(&function.getFunctionBody().front());
  base = allocateKept(builder, loc);
  if (steps.hasStretches())
    stretch = allocateKept(builder, loc);
  forget(builder, loc);
}

/// Marks the base position and stretch in memory as invalid by storing an odd
/// number. No base position is odd.
void PositionTable::forget(OpBuilder &builder, Location loc) const {
  for (const Kept &kept : {base, stretch})
    for (int64_t axis = 0, e = kept.which ? steps.getNumAxes() : 0; axis < e;
         ++axis)
      memref::StoreOp::create(builder, loc, createI64(builder, loc, 1),
                              kept.which, createIndex(builder, loc, axis));
}

PositionTable::Pairs PositionTable::getAll(OpBuilder &builder,
                                           Location loc) const {
  return {createIndex(builder, loc, 0), steps.getNumPairs()};
}

void PositionTable::forEachPart(
    OpBuilder &builder, Location loc,
    function_ref<void(OpBuilder &, Location, Pairs)> body) const {
  int64_t length = steps.getNumPairs();
  int64_t maxPairs = kStepBytes / steps.getStepBytes();
  maxPairs = std::max(maxPairs, kChunk);
  if (!steps.hasRuns() || length <= maxPairs)
    return body(builder, loc, getAll(builder, loc));
  int64_t whole = length / maxPairs * maxPairs;
  Value end = createIndex(builder, loc, whole);
  scf::ForOp::create(builder, loc, createIndex(builder, loc, 0), end,
                     createIndex(builder, loc, maxPairs), ValueRange(),
                     [&](OpBuilder &b, Location l, Value first, ValueRange) {
                       forget(b, l);
                       body(b, l, {first, maxPairs});
                       scf::YieldOp::create(b, l);
                     });
  if (whole == length)
    return;
  forget(builder, loc);
  body(builder, loc, {end, length - whole});
}

/// Emits `body` for the cos and sin that are computed from a position's phases.
void PositionTable::forEachPhase(OpBuilder &builder, Location loc,
                                 const Position &position, Pairs pairs,
                                 int64_t lanes, Body body) const {
  // Emits the branch outside of the loop: within it, the values of both
  // branches would occupy registers.
  auto emitLoop = [&](OpBuilder &b, Location l, bool isShort) {
    forEachVector(b, l, pairs.count, lanes,
                  [&](OpBuilder &b2, Location l2, Value number, int64_t n) {
                    Value first =
                        b2.createOrFold<arith::AddIOp>(l2, pairs.first, number);
                    CosSin element = steps.getPhases().emit(b2, l2, position,
                                                            first, n, isShort);
                    body(b2, l2, first, steps.roundPhase(b2, l2, element));
                  });
  };
  if (!position.isShort)
    return emitLoop(builder, loc, /*isShort=*/false);
  auto emitWay = [&](OpBuilder &b, Location l, bool isShort) {
    emitLoop(b, l, isShort);
    scf::YieldOp::create(b, l);
  };
  scf::IfOp::create(
      builder, loc, position.isShort,
      [&](OpBuilder &b, Location l) { emitWay(b, l, /*isShort=*/true); },
      [&](OpBuilder &b, Location l) { emitWay(b, l, /*isShort=*/false); });
}

/// Emits `fill`, which is executed unless the memory already holds the run or
/// stretch that starts at the position.
void PositionTable::ensure(
    OpBuilder &builder, Location loc, const Kept &kept,
    const Position &position,
    function_ref<void(OpBuilder &, Location)> fill) const {
  Value differs;
  for (auto [axis, current] : llvm::enumerate(position.axes)) {
    Value old = memref::LoadOp::create(builder, loc, kept.which,
                                       createIndex(builder, loc, axis));
    Value change = arith::XOrIOp::create(builder, loc, current, old);
    differs =
        differs ? arith::OrIOp::create(builder, loc, differs, change) : change;
  }
  Value isOther = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne,
                                        differs, createI64(builder, loc, 0));
  scf::IfOp::create(builder, loc, isOther, [&](OpBuilder &b, Location l) {
    for (auto [axis, value] : llvm::enumerate(position.axes))
      memref::StoreOp::create(b, l, value, kept.which, createIndex(b, l, axis));
    fill(b, l);
    scf::YieldOp::create(b, l);
  });
}

void PositionTable::fillFromPhases(OpBuilder &builder, Location loc,
                                   const Kept &kept, const Position &position,
                                   Pairs pairs, int64_t lanes) const {
  forEachPhase(
      builder, loc, position, pairs, lanes,
      [&](OpBuilder &b, Location l, Value first, const CosSin &element) {
        store(b, l, kept, first, element);
      });
}

/// Stores the cos and sin of the position's base position, unless they are
/// already in memory.
void PositionTable::ensureBase(OpBuilder &builder, Location loc,
                               const Position &position, Pairs pairs,
                               int64_t lanes) const {
  Position basePosition = steps.getBasePosition(builder, loc, position);
  ensure(builder, loc, base, basePosition, [&](OpBuilder &b, Location l) {
    if (!steps.hasStretches())
      return fillFromPhases(b, l, base, basePosition, pairs, lanes);
    Position from = steps.getStretch(b, l, position);
    ensure(b, l, stretch, from, [&](OpBuilder &b2, Location l2) {
      fillFromPhases(b2, l2, stretch, from, pairs, lanes);
    });
    forEachVector(
        b, l, pairs.count, lanes,
        [&](OpBuilder &b2, Location l2, Value number, int64_t n) {
          Value first = b2.createOrFold<arith::AddIOp>(l2, pairs.first, number);
          CosSin element = load(b2, l2, stretch, first, n);
          store(b2, l2, base, first,
                steps.rotateBase(b2, l2, basePosition, element, first));
        });
  });
}

PositionTable::CosSin PositionTable::load(OpBuilder &builder, Location loc,
                                          const Kept &kept, Value first,
                                          int64_t lanes) const {
  auto loadRow = [&](int64_t which) -> Value {
    return vector::LoadOp::create(
        builder, loc, VectorType::get({lanes}, steps.getBaseType()),
        kept.elements, steps.getOffset(builder, loc, first, which, 2));
  };
  return {loadRow(0), loadRow(1)};
}

void PositionTable::store(OpBuilder &builder, Location loc, const Kept &kept,
                          Value first, const CosSin &element) const {
  for (auto [which, value] : {std::pair(0, element.cos), {1, element.sin}})
    vector::StoreOp::create(builder, loc, value, kept.elements,
                            steps.getOffset(builder, loc, first, which, 2));
}

void PositionTable::emitAndRecompute(OpBuilder &builder, Location loc,
                                     Pairs pairs, int64_t lanes,
                                     EmitVectors emitVectors,
                                     Recompute recompute) const {
  int64_t block = kVectorsPerStore * lanes, whole = pairs.count / block * block;
  SmallVector<Value> marks;
  if (whole > 0) {
    SmallVector<Value> ones;
    if (steps.canBeSmall())
      ones.push_back(arith::ConstantOp::create(
          builder, loc,
          DenseElementsAttr::get(VectorType::get({lanes}, builder.getI32Type()),
                                 builder.getI32IntegerAttr(-1))));
    auto loop = scf::ForOp::create(
        builder, loc, createIndex(builder, loc, 0),
        createIndex(builder, loc, whole), createIndex(builder, loc, block),
        ones, [&](OpBuilder &b, Location l, Value number, ValueRange before) {
          Value first = b.createOrFold<arith::AddIOp>(l, pairs.first, number);
          SmallVector<Value> combined =
              emitVectors(b, l, first, splitIntoVectors(block, lanes));
          for (auto [mark, old] : llvm::zip_equal(combined, before))
            mark = steps.joinMarks(b, l, mark, old);
          scf::YieldOp::create(b, l, combined);
        });
    llvm::append_range(marks, loop.getResults());
  }
  if (whole < pairs.count) {
    Value first = builder.createOrFold<arith::AddIOp>(
        loc, pairs.first, createIndex(builder, loc, whole));
    llvm::append_range(
        marks, emitVectors(builder, loc, first,
                           splitIntoVectors(pairs.count - whole, lanes)));
  }
  Value isSmall = isAnySmall(builder, loc, marks);
  if (!isSmall)
    return;
  scf::IfOp::create(builder, loc, isSmall, [&](OpBuilder &b, Location l) {
    recompute(b, l);
    scf::YieldOp::create(b, l);
  });
}

/// Emits an i1: whether any mark stands for an element near zero. Returns null
/// without marks.
Value PositionTable::isAnySmall(OpBuilder &builder, Location loc,
                                ValueRange marks) const {
  Value any;
  for (Value mark : marks) {
    Value isSmall = steps.isAnySmall(builder, loc, mark);
    any = any ? arith::OrIOp::create(builder, loc, any, isSmall) : isSmall;
  }
  return any;
}

void PositionTable::addMarks(OpBuilder &builder, Location loc, Value first,
                             const CosSin &element, ValueRange finished,
                             SmallVectorImpl<Value> &marks) const {
  if (!steps.canBeSmall())
    return;
  Value mark = steps.getMarks(builder, loc, element, finished, first);
  if (marks.empty() || marks.back().getType() != mark.getType())
    marks.push_back(mark);
  else
    marks.back() = steps.joinMarks(builder, loc, marks.back(), mark);
}

/// Recomputes elements near zero and writes their vectors again.
void PositionTable::recomputePairs(OpBuilder &builder, Location loc,
                                   const Position &position, Value behind,
                                   Pairs pairs, int64_t lanes,
                                   Writer writer) const {
  auto recompute = [&](OpBuilder &b, Location l, Value number, int64_t n) {
    Value first = b.createOrFold<arith::AddIOp>(l, pairs.first, number);
    CosSin element =
        steps.rotate(b, l, position, load(b, l, base, first, n), first);
    scf::IfOp::create(
        b, l, steps.isAnySmall(b, l, steps.getMarks(b, l, element, {}, first)),
        [&](OpBuilder &b2, Location l2) {
          CosSin exact = steps.recompute(b2, l2, position, first, element);
          writer.write(b2, l2, behind, first, writer.finish(b2, l2, exact));
          scf::YieldOp::create(b2, l2);
        });
  };
  forEachVector(builder, loc, pairs.count, lanes, recompute);
}

/// Computes and writes a row from the base position in memory.
void PositionTable::emitRow(OpBuilder &builder, Location loc,
                            const Position &position, Pairs pairs,
                            int64_t lanes, Writer writer) const {
  auto emitVectors = [&](OpBuilder &b, Location l, Value first,
                         Vectors vectors) {
    SmallVector<Value> marks;
    for (auto [offset, length] : vectors) {
      Value firstPair =
          b.createOrFold<arith::AddIOp>(l, first, createIndex(b, l, offset));
      CosSin element = steps.rotate(
          b, l, position, load(b, l, base, firstPair, length), firstPair);
      SmallVector<Value> finished = writer.finish(b, l, element);
      writer.write(b, l, /*behind=*/{}, firstPair, finished);
      addMarks(b, l, firstPair, element, finished, marks);
    }
    return marks;
  };
  forEachVector(
      builder, loc, pairs.count, kChunk,
      [&](OpBuilder &b, Location l, Value number, int64_t n) {
        Pairs part{b.createOrFold<arith::AddIOp>(l, pairs.first, number), n};
        emitAndRecompute(b, l, part, lanes, emitVectors,
                         [&](OpBuilder &b2, Location l2) {
                           recomputePairs(b2, l2, position, /*behind=*/{}, part,
                                          lanes, writer);
                         });
      });
}

void PositionTable::forEachElement(OpBuilder &builder, Location loc,
                                   const Position &position, Pairs pairs,
                                   int64_t lanes, Writer writer) const {
  if (!steps.hasRuns())
    return forEachPhase(
        builder, loc, position, pairs, lanes,
        [&](OpBuilder &b, Location l, Value first, const CosSin &element) {
          writer.write(b, l, /*behind=*/{}, first,
                       writer.finish(b, l, element));
        });
  ensureBase(builder, loc, position, pairs, lanes);
  emitRow(builder, loc, position, pairs, lanes, writer);
}

void PositionTable::forEachElement(OpBuilder &builder, Location loc,
                                   const Position &position, Pairs pairs,
                                   int64_t lanes, Body body) const {
  auto finish = [](OpBuilder &, Location, const CosSin &element) {
    return SmallVector<Value>{element.cos, element.sin};
  };
  auto write = [&](OpBuilder &b, Location l, Value, Value first,
                   ValueRange elements) {
    body(b, l, first, {elements[0], elements[1]});
  };
  forEachElement(builder, loc, position, pairs, lanes, Writer{finish, write});
}

//===- PositionRuns.cpp - cos and sin of a run of positions ---------------===//
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
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::posenc;

Value PositionTable::isAtRun(OpBuilder &builder, Location loc, Value positions,
                             ValueRange indices, const Position &position,
                             Value left) const {
  Value step =
      arith::AndIOp::create(builder, loc, position.axes.front(),
                            createI64(builder, loc, steps.getRun() - 1));
  Value starts = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                       step, createI64(builder, loc, 0));
  Value isLong =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::uge, left,
                            createIndex(builder, loc, steps.getRun()));
  Value mayBe = arith::AndIOp::create(builder, loc, starts, isLong);
  auto memref = dyn_cast<MemRefType>(positions.getType());
  if (!memref)
    return mayBe;
  auto check = [&](OpBuilder &b, Location l) {
    auto type = VectorType::get({steps.getRun()}, memref.getElementType());
    Value all = vector::LoadOp::create(b, l, type, positions, indices);
    if (memref.getElementType().isIndex())
      all = arith::IndexCastOp::create(b, l, type.clone(b.getI64Type()), all);
    auto word = cast<VectorType>(all.getType());
    Value start = position.axes.front();
    if (!word.getElementType().isInteger(64))
      start = arith::TruncIOp::create(b, l, word.getElementType(), start);
    // Adds 0, 1, 2, ... by OR: the lower bits of a run's first position are 0.
    SmallVector<Attribute> numbers;
    for (int64_t number = 0; number < steps.getRun(); ++number)
      numbers.push_back(b.getIntegerAttr(word.getElementType(), number));
    Value expected = arith::OrIOp::create(
        b, l, vector::BroadcastOp::create(b, l, word, start),
        arith::ConstantOp::create(b, l, DenseElementsAttr::get(word, numbers)));
    Value change =
        vector::ReductionOp::create(b, l, vector::CombiningKind::OR,
                                    arith::XOrIOp::create(b, l, all, expected));
    Value none = arith::ConstantOp::create(
        b, l, b.getIntegerAttr(word.getElementType(), 0));
    scf::YieldOp::create(b, l,
                         ValueRange(arith::CmpIOp::create(
                             b, l, arith::CmpIPredicate::eq, change, none)));
  };
  return scf::IfOp::create(builder, loc, mayBe, check,
                           [&](OpBuilder &b, Location l) {
                             scf::YieldOp::create(b, l, ValueRange(mayBe));
                           })
      .getResult(0);
}

/// Computes and writes some pairs of two positions. The stores of the later
/// position are a few vectors ahead of those of the earlier one: if rows are
/// whole pages, streaming stores of both to the same offset within a page would
/// halve the speed. Returns an i1, whether any element is near zero; null if
/// none can be.
Value PositionTable::emitBoth(OpBuilder &builder, Location loc,
                              const Both &both, Pairs pairs, int64_t lanes,
                              Writer writer) const {
  SmallVector<Value> marks;
  // Writes the elements of the later position and returns those of the earlier
  // one.
  auto emitBehind = [&](OpBuilder &b, Location l, Value number,
                        Vectors vectors) {
    SmallVector<Value> before;
    for (auto [offset, length] : vectors) {
      Value first = b.createOrFold<arith::AddIOp>(
          l, b.createOrFold<arith::AddIOp>(l, pairs.first, number),
          createIndex(b, l, offset));
      auto [later, earlier] = steps.rotateBoth(
          b, l, both.step, load(b, l, base, first, length), first);
      SmallVector<Value> behind = writer.finish(b, l, later);
      writer.write(b, l, both.behind, first, behind);
      SmallVector<Value> finished = writer.finish(b, l, earlier);
      llvm::append_range(before, finished);
      addMarks(b, l, first, later, behind, marks);
      addMarks(b, l, first, earlier, finished, marks);
    }
    return before;
  };
  auto emitBefore = [&](OpBuilder &b, Location l, Value number, Vectors vectors,
                        ValueRange before) {
    size_t perVector = before.size() / vectors.size();
    for (auto [step, vector] : llvm::enumerate(vectors)) {
      Value first = b.createOrFold<arith::AddIOp>(
          l, b.createOrFold<arith::AddIOp>(l, pairs.first, number),
          createIndex(b, l, vector.first));
      writer.write(b, l, both.before, first,
                   before.slice(step * perVector, perVector));
    }
  };
  int64_t block = kVectorsPerStore * lanes, whole = pairs.count / block * block;
  auto vectors = splitIntoVectors(block, lanes);
  if (whole > 0) {
    Value zero = createIndex(builder, loc, 0);
    Value step = createIndex(builder, loc, block);
    SmallVector<Value> carried = emitBehind(builder, loc, zero, vectors);
    int64_t numBefore = carried.size();
    llvm::append_range(carried, marks);
    auto loop = scf::ForOp::create(
        builder, loc, step, createIndex(builder, loc, whole), step, carried,
        [&](OpBuilder &b, Location l, Value number, ValueRange old) {
          marks.assign(old.begin() + numBefore, old.end());
          SmallVector<Value> next = emitBehind(b, l, number, vectors);
          emitBefore(b, l, arith::SubIOp::create(b, l, number, step), vectors,
                     old.take_front(numBefore));
          llvm::append_range(next, marks);
          scf::YieldOp::create(b, l, next);
        });
    ValueRange last = loop.getResults();
    emitBefore(builder, loc, createIndex(builder, loc, whole - block), vectors,
               last.take_front(numBefore));
    marks.assign(last.begin() + numBefore, last.end());
  }
  if (whole < pairs.count) {
    Value number = createIndex(builder, loc, whole);
    auto rest = splitIntoVectors(pairs.count - whole, lanes);
    emitBefore(builder, loc, number, rest,
               emitBehind(builder, loc, number, rest));
  }
  return isAnySmall(builder, loc, marks);
}

/// Recomputes both positions, one after the other.
void PositionTable::recomputeBoth(OpBuilder &builder, Location loc,
                                  const Position &position, const Both &both,
                                  Pairs pairs, int64_t lanes,
                                  Writer writer) const {
  Value step = arith::SubIOp::create(builder, loc, both.behind, both.before);
  Value end = arith::AddIOp::create(builder, loc, both.behind,
                                    createIndex(builder, loc, 1));
  scf::ForOp::create(
      builder, loc, both.before, end, step, ValueRange(),
      [&](OpBuilder &b, Location l, Value which, ValueRange) {
        Value more = arith::IndexCastOp::create(b, l, b.getI64Type(), which);
        Value axis = arith::AddIOp::create(b, l, position.axes.front(), more);
        recomputePairs(b, l, {{axis}, position.isShort}, which, pairs, lanes,
                       writer);
        scf::YieldOp::create(b, l);
      });
}

/// Emits `body` for the chunks of some pairs, with the chunk's number and a
/// word that is carried from one chunk to the next.
static Value forEachChunk(OpBuilder &builder, Location loc,
                          PositionTable::Pairs pairs,
                          function_ref<Value(OpBuilder &, Location, Value,
                                             PositionTable::Pairs, Value)>
                              body) {
  constexpr int64_t length = PositionTable::kChunk;
  auto emit = [&](OpBuilder &b, Location l, Value number, int64_t count,
                  Value word) {
    Value first =
        b.createOrFold<arith::MulIOp>(l, number, createIndex(b, l, length));
    first = b.createOrFold<arith::AddIOp>(l, pairs.first, first);
    return body(b, l, number, {first, count}, word);
  };
  Value zero = createI64(builder, loc, 0), word = zero;
  int64_t whole = pairs.count / length, rest = pairs.count % length;
  if (whole > 0)
    word = scf::ForOp::create(
               builder, loc, createIndex(builder, loc, 0),
               createIndex(builder, loc, whole), createIndex(builder, loc, 1),
               zero,
               [&](OpBuilder &b, Location l, Value number, ValueRange before) {
                 scf::YieldOp::create(
                     b, l, emit(b, l, number, length, before.front()));
               })
               .getResult(0);
  if (rest > 0)
    word = emit(builder, loc, createIndex(builder, loc, whole), rest, word);
  return word;
}

/// Writes one pair of positions of a run. Each chunk with elements near zero
/// sets a bit of a word; these chunks are recomputed after all are written.
/// Recomputing within the loop would take registers from it, and loads from the
/// stack would wait for streaming stores to the same offset within a page.
void PositionTable::emitStep(OpBuilder &builder, Location loc,
                             const Position &position, const Both &both,
                             Pairs pairs, int64_t lanes, Writer writer) const {
  auto getBit = [](OpBuilder &b, Location l, Value number) -> Value {
    Value shift = arith::IndexCastOp::create(b, l, b.getI64Type(), number);
    return arith::ShLIOp::create(b, l, createI64(b, l, 1), shift);
  };
  Value small = forEachChunk(
      builder, loc, pairs,
      [&](OpBuilder &b, Location l, Value number, Pairs part, Value before) {
        Value isSmall = emitBoth(b, l, both, part, lanes, writer);
        if (!isSmall)
          return before;
        Value bit = arith::SelectOp::create(b, l, isSmall, getBit(b, l, number),
                                            createI64(b, l, 0));
        return arith::OrIOp::create(b, l, before, bit).getResult();
      });
  if (!steps.canBeSmall())
    return;
  auto isSet = [](OpBuilder &b, Location l, Value word) -> Value {
    return arith::CmpIOp::create(b, l, arith::CmpIPredicate::ne, word,
                                 createI64(b, l, 0));
  };
  scf::IfOp::create(
      builder, loc, isSet(builder, loc, small), [&](OpBuilder &b, Location l) {
        forEachChunk(
            b, l, pairs,
            [&](OpBuilder &b2, Location l2, Value number, Pairs part,
                Value before) {
              Value bit =
                  arith::AndIOp::create(b2, l2, small, getBit(b2, l2, number));
              scf::IfOp::create(
                  b2, l2, isSet(b2, l2, bit), [&](OpBuilder &b3, Location l3) {
                    recomputeBoth(b3, l3, position, both, part, lanes, writer);
                    scf::YieldOp::create(b3, l3);
                  });
              return before;
            });
        scf::YieldOp::create(b, l);
      });
}

void PositionTable::forEachElementOfRun(OpBuilder &builder, Location loc,
                                        const Position &position, Pairs pairs,
                                        int64_t lanes, Writer writer) const {
  ensureBase(builder, loc, position, pairs, lanes);
  Value numSteps = createIndex(builder, loc, steps.getNumSteps());
  forEachIndex(
      builder, loc, numSteps,
      [&](OpBuilder &b, Location l, ValueRange indices) {
        Value step = indices.front();
        Both both{step,
                  arith::AddIOp::create(
                      b, l, createIndex(b, l, steps.getNumSteps()), step),
                  arith::SubIOp::create(
                      b, l, createIndex(b, l, steps.getNumSteps() - 1), step)};
        emitStep(b, l, position, both, pairs, lanes, writer);
      });
}

//===- ConsecutiveRows.cpp - rows of a table, one from another --*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ConsecutiveRows.h"

#include "BF16Halves.h"
#include "ElementwiseBuilder.h"
#include "Streaming.h"

#include "posenc/Codegen/ExactSincos.h"
#include "posenc/IR/PairFrequencies.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::posenc;
using ::posenc::BigFloat;

/// So many rotations of an anchor add up to an error below 2^-46; it has
/// another 2^-46 itself.
static constexpr int64_t kRotations = 63;

/// What leaves room in the first cache.
static constexpr int64_t kFactorBytes = 32 << 10;

static int64_t getBytes(Type type) { return type.getIntOrFloatBitWidth() / 8; }

static Value createIndex(OpBuilder &builder, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(builder, loc, value);
}

static Value addIndex(OpBuilder &builder, Location loc, Value a, Value b) {
  return builder.createOrFold<arith::AddIOp>(loc, a, b);
}

static Value addIndex(OpBuilder &builder, Location loc, Value a, int64_t b) {
  return b == 0 ? a : addIndex(builder, loc, a, createIndex(builder, loc, b));
}

static Value createInt(OpBuilder &builder, Location loc, int64_t value) {
  return arith::ConstantIntOp::create(builder, loc, value, 64);
}

/// A loop over `[0, count)`; the body's values are not carried.
static void forEach(OpBuilder &builder, Location loc, Value count, int64_t step,
                    function_ref<void(OpBuilder &, Location, Value)> body) {
  scf::ForOp::create(builder, loc, createIndex(builder, loc, 0), count,
                     createIndex(builder, loc, step), ValueRange(),
                     [&](OpBuilder &b, Location l, Value index, ValueRange) {
                       body(b, l, index);
                       scf::YieldOp::create(b, l);
                     });
}

bool ConsecutiveRows::isFor(Type elementType, AxesAttr axes) {
  return !elementType.isF64() && !axes;
}

/// Columns in the order of the memory: rounding to bf16 takes even ones and odd
/// ones apart. Without a pair are those that fill the last group.
static TableColumns arrange(const TableColumns &columns, bool isBF16,
                            int64_t lanes, int64_t padded) {
  int64_t total = columns.pairs.size();
  TableColumns result{columns.memref, columns.firstLane, {}, {}};
  SmallVector<int64_t> order = isBF16 ? getHalvesOrder(padded, 2 * lanes)
                                      : llvm::to_vector(llvm::seq(padded));
  for (int64_t number : order) {
    bool isColumn = number < total;
    result.pairs.push_back(isColumn ? columns.pairs[number] : -1);
    result.quarters.push_back(isColumn ? columns.quarters[number] : 0);
  }
  return result;
}

ConsecutiveRows::ConsecutiveRows(OpBuilder &builder, PositionalOpInterface op,
                                 FrequenciesAttr frequencies,
                                 const TableColumns &given,
                                 const VectorTarget &target)
    : op(op), frequencies(frequencies), target(target),
      element(getElementTypeOrSelf(given.memref.getType())),
      // Products of f32 do for bf16 alone: with f16 every third group would be
      // next to a tie.
      compute(element.isBF16() ? builder.getF32Type() : builder.getF64Type()),
      lanes(target.vectorBytes / 4),
      group(std::max(64u, target.vectorBytes) / getBytes(element)),
      numColumns(given.pairs.size()),
      most(kFactorBytes / (kRows * 2 * getBytes(compute))),
      columns(arrange(given, element.isBF16(), lanes,
                      llvm::alignTo(numColumns, group))),
      table(builder, op, frequencies, /*axes=*/nullptr, /*inverse=*/false,
            builder.getF32Type(), TableUse::Entries, columns.pairs,
            columns.quarters),
      stepOfRow(createSteps(builder, 1)),
      stepOfBlock(createSteps(builder, kRows)) {
  // Two products of numbers up to 1, and all of it rounded, is 6*2^-25 in f32.
  // In f64 it is the rotations.
  error = compute.isF32() ? 0x1p-22 : 0x1p-44;
  double factor = frequencies.computeAttentionFactor().toDouble();
  for (; factor > 1.0; factor /= 2.0)
    error *= 2.0;

  OpBuilder::InsertionGuard guard(builder);
  auto function = op->getParentOfType<FunctionOpInterface>();
  builder.setInsertionPointToStart(&function.getFunctionBody().front());
  auto allocate = [&](ArrayRef<int64_t> shape, Type type) -> Value {
    return memref::AllocaOp::create(builder, op->getLoc(),
                                    MemRefType::get(shape, type),
                                    builder.getI64IntegerAttr(64));
  };
  anchor = allocate({2, most}, builder.getF64Type());
  base = compute.isF64() ? anchor : allocate({2, most}, compute);
  factors = allocate({kRows, 2, most}, compute);
  Type word = builder.getI32Type();
  entries = allocate({group}, element.isBF16() ? word : element);
  differing = allocate({group}, element.isF16() ? builder.getI16Type() : word);
  state = allocate({2}, builder.getI64Type());
}

/// The cosines, then the sines, of so many positions.
std::string ConsecutiveRows::createSteps(OpBuilder &builder,
                                         int64_t positions) const {
  SmallVector<PairFrequency> pairs =
      computePairFrequencies(frequencies, /*axes=*/nullptr);
  SmallVector<double> cosines, sines;
  for (int64_t pair : columns.pairs) {
    BigFloat frequency = pair < 0 ? BigFloat(0.0) : pairs[pair].frequency;
    BigFloat angle = frequency * BigFloat(positions);
    cosines.push_back(cos(angle).toDouble());
    sines.push_back(sin(angle).toDouble());
  }
  cosines.append(sines);
  return createConstants(builder, op, "steps", ArrayRef<double>(cosines));
}

//===----------------------------------------------------------------------===//
// Rotations in memory
//===----------------------------------------------------------------------===//

ConsecutiveRows::Rotation ConsecutiveRows::loadStep(OpBuilder &builder,
                                                    Location loc,
                                                    StringRef symbol,
                                                    Value column) const {
  int64_t length = columns.pairs.size();
  Type f64 = builder.getF64Type();
  Value steps = memref::GetGlobalOp::create(
      builder, loc, MemRefType::get({2 * length}, f64), symbol);
  auto load = [&](int64_t offset) -> Value {
    return vector::LoadOp::create(builder, loc, VectorType::get({lanes}, f64),
                                  steps,
                                  addIndex(builder, loc, column, offset));
  };
  return {load(0), load(length)};
}

ConsecutiveRows::Rotation ConsecutiveRows::load(OpBuilder &builder,
                                                Location loc, Value memref,
                                                ValueRange row,
                                                Value column) const {
  auto type = VectorType::get({lanes}, getElementTypeOrSelf(memref.getType()));
  auto load = [&](int64_t which) -> Value {
    SmallVector<Value> at(row);
    at.append({createIndex(builder, loc, which), column});
    return vector::LoadOp::create(builder, loc, type, memref, at);
  };
  return {load(0), load(1)};
}

void ConsecutiveRows::store(OpBuilder &builder, Location loc,
                            const Rotation &values, Value memref,
                            ValueRange row, Value column) const {
  Type type = getElementTypeOrSelf(memref.getType());
  auto store = [&](int64_t which, Value value) {
    SmallVector<Value> at(row);
    at.append({createIndex(builder, loc, which), column});
    value = ExactSincos::emitRounding(builder, loc, value, type);
    vector::StoreOp::create(builder, loc, value, memref, at);
  };
  store(0, values.cos);
  store(1, values.sin);
}

ConsecutiveRows::Rotation ConsecutiveRows::rotate(OpBuilder &builder,
                                                  Location loc,
                                                  const Rotation &of,
                                                  const Rotation &by) {
  ElementwiseBuilder b(builder, loc, of.cos);
  return {b.fma(of.cos, by.cos, b.neg(b.mul(of.sin, by.sin))),
          b.fma(of.sin, by.cos, b.mul(of.cos, by.sin))};
}

/// The columns of a chunk in whole groups.
Value ConsecutiveRows::getFilled(OpBuilder &builder, Location loc,
                                 const Chunk &chunk) const {
  if (numColumns % group == 0)
    return chunk.count;
  Value size = createIndex(builder, loc, group);
  Value groups = arith::CeilDivUIOp::create(builder, loc, chunk.count, size);
  return arith::MulIOp::create(builder, loc, groups, size);
}

void ConsecutiveRows::begin(OpBuilder &builder, Location loc,
                            const Chunk &chunk) const {
  memref::StoreOp::create(builder, loc, createInt(builder, loc, 0), state,
                          createIndex(builder, loc, 1));
  forEach(builder, loc, getFilled(builder, loc, chunk), lanes,
          [&](OpBuilder &b, Location l, Value column) {
            Rotation step =
                loadStep(b, l, stepOfRow, addIndex(b, l, chunk.first, column));
            ElementwiseBuilder e(b, l, step.cos);
            Rotation none{e.f64(1.0), e.f64(0.0)};
            scf::ForOp::create(
                b, l, createIndex(b, l, 0), createIndex(b, l, kRows),
                createIndex(b, l, 1), ValueRange{none.cos, none.sin},
                [&](OpBuilder &b2, Location l2, Value row, ValueRange values) {
                  Rotation mine{values[0], values[1]};
                  store(b2, l2, mine, factors, row, column);
                  Rotation next = rotate(b2, l2, mine, step);
                  scf::YieldOp::create(b2, l2, ValueRange{next.cos, next.sin});
                });
          });
}

/// From its phase, or from the block before.
void ConsecutiveRows::fillAnchor(OpBuilder &builder, Location loc,
                                 const Chunk &chunk, const Block &block,
                                 bool isNext) const {
  forEach(builder, loc, getFilled(builder, loc, chunk), lanes,
          [&](OpBuilder &b, Location l, Value column) {
            Value first = addIndex(b, l, chunk.first, column);
            Rotation values;
            if (isNext) {
              values = rotate(b, l, load(b, l, anchor, {}, column),
                              loadStep(b, l, stepOfBlock, first));
            } else {
              auto [cos, sin] =
                  table.emitUnrounded(b, l, {{block.position}, nullptr}, first,
                                      lanes, /*isShort=*/false);
              values = {cos, sin};
            }
            store(b, l, values, anchor, {}, column);
            if (base != anchor)
              store(b, l, values, base, {}, column);
          });
}

//===----------------------------------------------------------------------===//
// Groups of entries
//===----------------------------------------------------------------------===//

/// To the type of the entries; for bf16 to its bits in the upper half of words,
/// half away from zero. Next to a tie the result does not count.
Value ConsecutiveRows::round(OpBuilder &builder, Location loc,
                             Value sums) const {
  if (!element.isBF16())
    return ExactSincos::emitRounding(builder, loc, sums, element);
  ElementwiseBuilder b(builder, loc, sums);
  return b.addi(b.cast<arith::BitcastOp>(builder.getI32Type(), sums),
                b.i32(0x8000));
}

/// Vectors of entries, or of bits, in the order of the columns.
void ConsecutiveRows::storeGroup(OpBuilder &builder, Location loc,
                                 ArrayRef<Value> vectors, ValueRange at,
                                 int64_t valid, Access access) const {
  int64_t vectorsOfStore = 4 / getBytes(element);
  for (int64_t first = 0; first < valid; first += lanes * vectorsOfStore) {
    Value stored = vectors.front();
    if (element.isBF16()) {
      stored = joinRoundedBF16(builder, loc, {vectors[0], vectors[1]});
    } else if (vectorsOfStore == 2) {
      stored = vector::ShuffleOp::create(builder, loc, vectors[0], vectors[1],
                                         llvm::to_vector(llvm::seq(2 * lanes)));
    }
    vectors = vectors.drop_front(vectorsOfStore);
    int64_t length = cast<VectorType>(stored.getType()).getNumElements();
    for (auto [lane, count] :
         splitIntoVectors(std::min(valid - first, length), length)) {
      SmallVector<Value> place(at);
      place.back() = addIndex(builder, loc, place.back(), first + lane);
      Value part = stored;
      if (count < length)
        part = vector::ExtractStridedSliceOp::create(builder, loc, stored, lane,
                                                     count, 1);
      storeRow(builder, loc, part, columns.memref, place, target,
               count < length ? Access::Cached : access);
    }
  }
}

/// Whether rounding made a difference.
Value ConsecutiveRows::isAny(OpBuilder &builder, Location loc,
                             Value differences) const {
  ElementwiseBuilder b(builder, loc, differences);
  if (element.isBF16())
    differences = b.andi(differences, b.i32(0xffff0000));
  Value any = vector::ReductionOp::create(
      builder, loc, vector::CombiningKind::OR, differences);
  Value none = arith::ConstantOp::create(builder, loc,
                                         builder.getZeroAttr(any.getType()));
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, any,
                               none);
}

/// The first `valid` entries of the group at `column` of the chunk.
void ConsecutiveRows::writeGroup(OpBuilder &builder, Location loc,
                                 const Chunk &chunk, const Block &block,
                                 Value row, Value column, int64_t valid,
                                 Access access) const {
  SmallVector<Value> sums, differences;
  Value all;
  for (int64_t lane = 0; lane < group; lane += lanes) {
    Value mine = addIndex(builder, loc, column, lane);
    Rotation a = load(builder, loc, base, {}, mine);
    Rotation factor = load(builder, loc, factors, row, mine);
    ElementwiseBuilder b(builder, loc, a.cos);
    Value sum = b.fma(a.sin, factor.cos, b.mul(a.cos, factor.sin));
    Value wrong = compute.isF32() ? b.f32(error) : b.f64(error);
    Value upper = round(builder, loc, b.add(sum, wrong));
    Value lower = round(builder, loc, b.sub(sum, wrong));
    sums.push_back(upper);
    Type bits = getElementTypeOrSelf(differing.getType());
    if (!element.isBF16()) {
      upper = b.cast<arith::BitcastOp>(bits, upper);
      lower = b.cast<arith::BitcastOp>(bits, lower);
    }
    Value difference = b.xori(upper, lower);
    differences.push_back(difference);
    all = all ? b.ori(all, difference) : difference;
  }
  SmallVector<Value> at(block.rows);
  at.back() = addIndex(builder, loc, at.back(), row);
  Value first = addIndex(builder, loc, chunk.first, column);
  at.push_back(addIndex(builder, loc, first, columns.firstLane));
  storeGroup(builder, loc, sums, at, valid, access);
  scf::IfOp::create(
      builder, loc, isAny(builder, loc, all), [&](OpBuilder &b, Location l) {
        Value offset = arith::IndexCastOp::create(b, l, b.getI64Type(), row);
        Value position = arith::AddIOp::create(b, l, block.position, offset);
        correct(b, l, sums, differences, position, first);
        storeGroup(b, l, sums, at, valid, access);
        scf::YieldOp::create(b, l);
      });
}

/// Replaces those vectors of sums of which a rounding differs, at column
/// `first` of the table, by what comes from their phases.
void ConsecutiveRows::correct(OpBuilder &builder, Location loc,
                              MutableArrayRef<Value> sums,
                              ArrayRef<Value> differences, Value position,
                              Value first) const {
  auto getLane = [&](int64_t number) {
    return createIndex(builder, loc, number * lanes);
  };
  for (auto [number, sum, difference] : llvm::enumerate(sums, differences)) {
    vector::StoreOp::create(builder, loc, sum, entries, getLane(number));
    vector::StoreOp::create(builder, loc, difference, differing,
                            getLane(number));
  }
  auto load = [&](OpBuilder &b, Location l, Value memref, Value lane) -> Value {
    auto type =
        VectorType::get({lanes}, getElementTypeOrSelf(memref.getType()));
    return vector::LoadOp::create(b, l, type, memref, lane);
  };
  forEach(builder, loc, createIndex(builder, loc, group), lanes,
          [&](OpBuilder &b, Location l, Value lane) {
            Value isWrong = isAny(b, l, load(b, l, differing, lane));
            scf::IfOp::create(b, l, isWrong, [&](OpBuilder &b2, Location l2) {
              auto [cos, sin] = table.emitUnrounded(
                  b2, l2, {{position}, nullptr}, addIndex(b2, l2, first, lane),
                  lanes, /*isShort=*/false);
              Type type = element.isBF16() ? Type(b2.getF32Type()) : element;
              Value value = ExactSincos::emitRounding(b2, l2, sin, type);
              if (element.isBF16())
                value = roundBF16(b2, l2, value);
              vector::StoreOp::create(b2, l2, value, entries, lane);
              scf::YieldOp::create(b2, l2);
            });
          });
  for (auto [number, sum] : llvm::enumerate(sums))
    sum = load(builder, loc, entries, getLane(number));
}

//===----------------------------------------------------------------------===//
// Blocks of rows
//===----------------------------------------------------------------------===//

static Value areConsecutive(OpBuilder &builder, Location loc, Value positions,
                            ValueRange loops) {
  constexpr int64_t kRows = ConsecutiveRows::kRows;
  auto type = cast<MemRefType>(positions.getType());
  Type i64 = builder.getI64Type();
  auto wide = VectorType::get({kRows}, i64);
  Value values = vector::LoadOp::create(
      builder, loc, VectorType::get({kRows}, type.getElementType()), positions,
      loops);
  if (type.getElementType().isIndex())
    values = arith::IndexCastOp::create(builder, loc, wide, values);
  else if (!type.getElementType().isInteger(64))
    values = arith::ExtSIOp::create(builder, loc, wide, values);
  Value first = vector::ExtractOp::create(builder, loc, values, 0);
  SmallVector<int64_t> rows = llvm::to_vector(llvm::seq(kRows));
  Value offsets = arith::ConstantOp::create(
      builder, loc, DenseElementsAttr::get(wide, ArrayRef(rows)));
  Value expected = arith::AddIOp::create(
      builder, loc, vector::BroadcastOp::create(builder, loc, wide, first),
      offsets);
  Value differ = arith::XOrIOp::create(builder, loc, values, expected);
  Value any = vector::ReductionOp::create(builder, loc,
                                          vector::CombiningKind::OR, differ);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(builder, loc, value, 64);
  };
  Value equal = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                      any, constant(0));
  // After the greatest position comes the least one, whose angle is not next.
  Value below = arith::CmpIOp::create(
      builder, loc, arith::CmpIPredicate::sle, first,
      constant(std::numeric_limits<int64_t>::max() - kRows));
  return arith::AndIOp::create(builder, loc, equal, below);
}

Value ConsecutiveRows::areEnough(OpBuilder &builder, Location loc, Value rows) {
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::uge, rows,
                               createIndex(builder, loc, 2 * kRows));
}

Value ConsecutiveRows::isBlock(OpBuilder &builder, Location loc,
                               Value positions, ValueRange loops, Value rest) {
  Value isWhole = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::uge,
                                        rest, createIndex(builder, loc, kRows));
  if (!isa<MemRefType>(positions.getType()))
    return isWhole;
  // Beyond the last there is no position to load.
  auto result = scf::IfOp::create(
      builder, loc, isWhole,
      [&](OpBuilder &b, Location l) {
        scf::YieldOp::create(b, l, areConsecutive(b, l, positions, loops));
      },
      [&](OpBuilder &b, Location l) { scf::YieldOp::create(b, l, isWhole); });
  return result.getResult(0);
}

void ConsecutiveRows::writeBlock(OpBuilder &builder, Location loc,
                                 const Chunk &chunk, ValueRange rows,
                                 Value position, Access access) const {
  Block block{llvm::to_vector(rows), position};
  Value nextAt = createIndex(builder, loc, 0),
        leftAt = createIndex(builder, loc, 1);
  Value next = memref::LoadOp::create(builder, loc, state, nextAt);
  Value left = memref::LoadOp::create(builder, loc, state, leftAt);
  Value isNext = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                       position, next);
  Value mayRotate =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sgt, left,
                            createInt(builder, loc, 0));
  auto fill = [&](bool isNext) {
    return [&, isNext](OpBuilder &b, Location l) {
      fillAnchor(b, l, chunk, block, isNext);
      Value rotations =
          isNext ? Value(arith::SubIOp::create(b, l, left, createInt(b, l, 1)))
                 : createInt(b, l, kRotations);
      scf::YieldOp::create(b, l, rotations);
    };
  };
  auto filled = scf::IfOp::create(
      builder, loc, arith::AndIOp::create(builder, loc, isNext, mayRotate),
      fill(true), fill(false));
  memref::StoreOp::create(builder, loc,
                          arith::AddIOp::create(builder, loc, position,
                                                createInt(builder, loc, kRows)),
                          state, nextAt);
  memref::StoreOp::create(builder, loc, filled.getResult(0), state, leftAt);

  int64_t tail = numColumns % group;
  Value whole = chunk.count;
  if (tail != 0)
    whole = arith::MulIOp::create(
        builder, loc,
        arith::DivUIOp::create(builder, loc, whole,
                               createIndex(builder, loc, group)),
        createIndex(builder, loc, group));
  forEach(builder, loc, createIndex(builder, loc, kRows), 1,
          [&](OpBuilder &b, Location l, Value row) {
            if (numColumns >= group)
              forEach(b, l, whole, group,
                      [&](OpBuilder &b2, Location l2, Value column) {
                        writeGroup(b2, l2, chunk, block, row, column, group,
                                   access);
                      });
            if (tail == 0)
              return;
            Value isLast = arith::CmpIOp::create(b, l, arith::CmpIPredicate::ne,
                                                 whole, chunk.count);
            scf::IfOp::create(b, l, isLast, [&](OpBuilder &b2, Location l2) {
              writeGroup(b2, l2, chunk, block, row, whole, tail, access);
              scf::YieldOp::create(b2, l2);
            });
          });
}

void ConsecutiveRows::forEachChunk(
    OpBuilder &builder, Location loc,
    function_ref<void(OpBuilder &, Location, const Chunk &)> body) const {
  Value total = createIndex(builder, loc, numColumns);
  if (numColumns <= most)
    return body(builder, loc, {createIndex(builder, loc, 0), total});
  forEach(builder, loc, total, most,
          [&](OpBuilder &b, Location l, Value first) {
            Value rest = arith::SubIOp::create(b, l, total, first);
            Value count =
                arith::MinUIOp::create(b, l, rest, createIndex(b, l, most));
            body(b, l, {first, count});
          });
}

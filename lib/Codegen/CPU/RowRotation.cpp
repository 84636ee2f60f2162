//===- RowRotation.cpp - rotates the rows of one position -------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RowRotation.h"

#include "BF16Halves.h"
#include "ElementwiseBuilder.h"
#include "Streaming.h"
#include "VectorLoops.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace mlir::posenc;

RowRotation::RowRotation(OpBuilder &builder, Operation *op, Pairing pairing,
                         int64_t rotaryDim, int64_t offset, Type elementType,
                         int64_t numSlots, const VectorTarget &target)
    : rotaryDim(rotaryDim), offset(offset), element(elementType),
      compute(elementType.isF64() ? builder.getF64Type()
                                  : builder.getF32Type()),
      target(target), lanes(target.vectorBytes / (elementType.isF64() ? 8 : 4)),
      rowLanes(target.vectorBytes * 8 / elementType.getIntOrFloatBitWidth()) {
  bool isHalf = pairing == Pairing::Half;
  if (elementType.isBF16())
    form = isHalf ? Form::SplitHalf : Form::SplitInterleaved;
  else
    form = isHalf ? Form::Half : Form::Swapped;
  // In the entry block: a loop must not grow the stack.
  OpBuilder::InsertionGuard guard(builder);
  auto function = op->getParentOfType<FunctionOpInterface>();
  builder.setInsertionPointToStart(&function.getFunctionBody().front());
  int64_t entries = form == Form::Swapped ? rotaryDim : rotaryDim / 2;
  auto type = MemRefType::get({numSlots, entries}, compute);
  IntegerAttr alignment = builder.getI64IntegerAttr(64);
  cosTable = memref::AllocaOp::create(builder, op->getLoc(), type, alignment);
  sinTable = memref::AllocaOp::create(builder, op->getLoc(), type, alignment);
}

static SmallVector<Value> append(ValueRange indices, Value last) {
  SmallVector<Value> result(indices);
  result.push_back(last);
  return result;
}

static Value offsetIndex(OpBuilder &builder, Location loc, Value index,
                         int64_t offset) {
  if (offset == 0)
    return index;
  return builder.createOrFold<arith::AddIOp>(
      loc, index, arith::ConstantIndexOp::create(builder, loc, offset));
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

SmallVector<int64_t> RowRotation::getOrder() const {
  if (form == Form::SplitHalf)
    return getHalvesOrder(rotaryDim / 2, rowLanes);
  return llvm::to_vector(llvm::seq(rotaryDim / 2));
}

void RowRotation::store(OpBuilder &builder, Location loc, Value first,
                        Value cos, Value sin) const {
  if (form == Form::Swapped) {
    cos = vector::InterleaveOp::create(builder, loc, cos, cos);
    Value negated = arith::NegFOp::create(builder, loc, sin);
    sin = vector::InterleaveOp::create(builder, loc, negated, sin);
    first = builder.createOrFold<arith::MulIOp>(
        loc, first, arith::ConstantIndexOp::create(builder, loc, 2));
  }
  SmallVector<Value> indices{slot, first};
  vector::StoreOp::create(builder, loc, cos, cosTable, indices);
  vector::StoreOp::create(builder, loc, sin, sinTable, indices);
}

void RowRotation::storeAll(OpBuilder &builder, Location loc, Load load) const {
  bool isSplit = form == Form::SplitHalf;
  forEachVector(builder, loc, rotaryDim / 2, isSplit ? rowLanes : lanes,
                [&](OpBuilder &b, Location l, Value pair, int64_t length) {
                  auto [cos, sin] = load(b, l, pair, length);
                  if (!isSplit || length == 1)
                    return store(b, l, pair, cos, sin);
                  auto c = vector::DeinterleaveOp::create(b, l, cos);
                  auto s = vector::DeinterleaveOp::create(b, l, sin);
                  store(b, l, pair, c.getRes1(), s.getRes1());
                  store(b, l, offsetIndex(b, l, pair, length / 2), c.getRes2(),
                        s.getRes2());
                });
}

Value RowRotation::loadEntries(OpBuilder &builder, Location loc, Value table,
                               Value entry, int64_t length) const {
  return vector::LoadOp::create(builder, loc,
                                VectorType::get({length}, compute), table,
                                ValueRange{slot, entry});
}

//===----------------------------------------------------------------------===//
// Between the elements and f32
//===----------------------------------------------------------------------===//

Value RowRotation::widen(OpBuilder &builder, Location loc, Value value) const {
  if (element == compute)
    return value;
  auto type = cast<VectorType>(value.getType());
  return arith::ExtFOp::create(builder, loc, type.clone(compute), value);
}

Value RowRotation::narrow(OpBuilder &builder, Location loc, Value value) const {
  if (element == compute)
    return value;
  auto type = cast<VectorType>(value.getType());
  return arith::TruncFOp::create(builder, loc, type.clone(element), value);
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

RowRotation::Lanes RowRotation::rotate(OpBuilder &builder, Location loc,
                                       Lanes lanes, Value entry,
                                       int64_t length) const {
  ElementwiseBuilder b(builder, loc, lanes.x);
  Value c = loadEntries(builder, loc, cosTable, entry, length);
  Value s = loadEntries(builder, loc, sinTable, entry, length);
  Value ys = b.mul(lanes.y, s);
  Value xs = b.mul(lanes.x, s);
  return {b.fma(lanes.x, c, b.neg(ys)), b.fma(lanes.y, c, xs)};
}

RowRotation::Lanes RowRotation::rotateHalf(OpBuilder &builder, Location loc,
                                           Value input, ValueRange indices,
                                           Value pair, int64_t length,
                                           Access access) const {
  auto load = [&](int64_t first) {
    SmallVector<Value> at =
        append(indices, offsetIndex(builder, loc, pair, first));
    return loadRow(builder, loc, input, at, length, target, access);
  };
  // Each prefetch beside its load: many in a row are dropped.
  Value x = load(offset), y = load(offset + rotaryDim / 2);
  if (form == Form::SplitHalf && length > 1) {
    BF16Halves xs = splitBF16(builder, loc, x), ys = splitBF16(builder, loc, y);
    Lanes even = rotate(builder, loc, {xs.even, ys.even}, pair, length / 2);
    Lanes odd = rotate(builder, loc, {xs.odd, ys.odd},
                       offsetIndex(builder, loc, pair, length / 2), length / 2);
    Value newX = joinBF16(builder, loc, {even.x, odd.x});
    return {newX, joinBF16(builder, loc, {even.y, odd.y})};
  }
  Lanes result =
      rotate(builder, loc, {widen(builder, loc, x), widen(builder, loc, y)},
             pair, length);
  Value newX = narrow(builder, loc, result.x);
  return {newX, narrow(builder, loc, result.y)};
}

/// A streamed line must not wait half written.
int64_t RowRotation::getLanesTogether(Access access) const {
  if (access != Access::Streamed)
    return rowLanes;
  return std::max(rowLanes, kLineBytes * 8 / element.getIntOrFloatBitWidth());
}

/// For a part of lanes that are written together: their lines are asked for
/// once each.
RowRotation RowRotation::ofPiece(int64_t first, Access access) const {
  bool isWithinLine =
      first * element.getIntOrFloatBitWidth() % (8 * kLineBytes) != 0;
  return access == Access::Streamed && isWithinLine ? withPrefetch(0) : *this;
}

void RowRotation::rotateHalves(OpBuilder &builder, Location loc, Value input,
                               Value output, ValueRange indices,
                               Access access) const {
  forEachVector(
      builder, loc, rotaryDim / 2, getLanesTogether(access),
      [&](OpBuilder &b, Location l, Value first, int64_t length) {
        SmallVector<std::pair<Value, Lanes>> results;
        for (auto [number, mine] : splitIntoVectors(length, rowLanes)) {
          Value pair = offsetIndex(b, l, first, number);
          results.push_back({pair, ofPiece(number, access)
                                       .rotateHalf(b, l, input, indices, pair,
                                                   mine, access)});
        }
        auto store = [&](Value lanes, Value pair, int64_t half) {
          SmallVector<Value> at =
              append(indices, offsetIndex(b, l, pair, offset + half));
          storeRow(b, l, lanes, output, at, target, access);
        };
        for (auto [pair, result] : results)
          store(result.x, pair, 0);
        for (auto [pair, result] : results)
          store(result.y, pair, rotaryDim / 2);
      });
}

Value RowRotation::rotateInterleaved(OpBuilder &builder, Location loc,
                                     Value input, ValueRange indices,
                                     Value lane, int64_t length,
                                     Access access) const {
  SmallVector<Value> at =
      append(indices, offsetIndex(builder, loc, lane, offset));
  Value row = loadRow(builder, loc, input, at, length, target, access);
  if (form == Form::SplitInterleaved) {
    Value pair = builder.createOrFold<arith::DivUIOp>(
        loc, lane, arith::ConstantIndexOp::create(builder, loc, 2));
    BF16Halves halves = splitBF16(builder, loc, row);
    Lanes result =
        rotate(builder, loc, {halves.even, halves.odd}, pair, length / 2);
    return joinBF16(builder, loc, {result.x, result.y});
  }
  Value x = widen(builder, loc, row);
  SmallVector<int64_t> neighbours;
  for (int64_t i = 0; i < length; ++i)
    neighbours.push_back(i ^ 1);
  Value swapped = vector::ShuffleOp::create(builder, loc, x, x, neighbours);
  ElementwiseBuilder b(builder, loc, x);
  Value c = loadEntries(builder, loc, cosTable, lane, length);
  Value s = loadEntries(builder, loc, sinTable, lane, length);
  return narrow(builder, loc, b.fma(x, c, b.mul(swapped, s)));
}

void RowRotation::rotatePairs(OpBuilder &builder, Location loc, Value input,
                              Value output, ValueRange indices,
                              Access access) const {
  forEachVector(
      builder, loc, rotaryDim, getLanesTogether(access),
      [&](OpBuilder &b, Location l, Value first, int64_t length) {
        for (auto [number, mine] : splitIntoVectors(length, rowLanes)) {
          Value lane = offsetIndex(b, l, first, number);
          Value result =
              ofPiece(number, access)
                  .rotateInterleaved(b, l, input, indices, lane, mine, access);
          SmallVector<Value> at =
              append(indices, offsetIndex(b, l, lane, offset));
          storeRow(b, l, result, output, at, target, access);
        }
      });
}

void RowRotation::copyLanes(OpBuilder &builder, Location loc, Value input,
                            Value output, ValueRange indices, int64_t first,
                            int64_t count) const {
  forEachVector(builder, loc, count, rowLanes,
                [&](OpBuilder &b, Location l, Value lane, int64_t length) {
                  SmallVector<Value> at =
                      append(indices, offsetIndex(b, l, lane, first));
                  Value value = vector::LoadOp::create(
                      b, l, VectorType::get({length}, element), input, at);
                  vector::StoreOp::create(b, l, value, output, at);
                });
}

bool RowRotation::canStream() const {
  int64_t bytes = element.getIntOrFloatBitWidth() / 8;
  bool isHalf = form == Form::Half || form == Form::SplitHalf;
  return offset * bytes % target.vectorBytes == 0 &&
         (!isHalf || rotaryDim / 2 * bytes % target.vectorBytes == 0);
}

void RowRotation::rotateRow(OpBuilder &builder, Location loc, Value input,
                            Value output, ValueRange indices,
                            Access access) const {
  if (form == Form::Half || form == Form::SplitHalf)
    rotateHalves(builder, loc, input, output, indices, access);
  else
    rotatePairs(builder, loc, input, output, indices, access);

  // Lanes outside of the window pass through, which in place is nothing to do.
  int64_t size = cast<MemRefType>(input.getType()).getShape().back();
  int64_t after = size - offset - rotaryDim;
  if (input == output || (offset == 0 && after == 0))
    return;
  scf::IfOp::create(
      builder, loc, areDifferentPlaces(builder, loc, input, output),
      [&](OpBuilder &b, Location l) {
        copyLanes(b, l, input, output, indices, 0, offset);
        copyLanes(b, l, input, output, indices, offset + rotaryDim, after);
        scf::YieldOp::create(b, l);
      });
}

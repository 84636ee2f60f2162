//===- RowRotation.cpp - rotation of the rows of a position ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RowRotation.h"

#include "CPU/Memory/Streaming.h"
#include "CPU/VectorLoops.h"
#include "posenc/Numerics/BF16.h"
#include "posenc/Numerics/ElementwiseBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
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
      // A tile is at least a cache line: streaming stores must complete a line
      // at once.
      tileLanes(std::max<int64_t>(target.vectorBytes, kLineBytes) * 8 /
                elementType.getIntOrFloatBitWidth()) {
  bool isHalf = pairing == Pairing::Half;
  if (elementType.isBF16())
    form = isHalf ? Form::SplitHalf : Form::SplitInterleaved;
  else
    form = isHalf ? Form::Half : Form::Swapped;
  // The buffer is allocated in the entry block: an alloca in a loop would grow
  // the stack.
  OpBuilder::InsertionGuard guard(builder);
  auto function = op->getParentOfType<FunctionOpInterface>();
  builder.setInsertionPointToStart(&function.getFunctionBody().front());
  int64_t elements = form == Form::Swapped ? rotaryDim : rotaryDim / 2;
  auto type = MemRefType::get({numSlots, elements}, compute);
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
    return getHalvesOrder(rotaryDim / 2, tileLanes);
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
  forEachVector(builder, loc, rotaryDim / 2, isSplit ? tileLanes : lanes,
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

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

void RowRotation::rotate(OpBuilder &builder, Location loc,
                         ArrayRef<PairLanes> parts, Access access) const {
  linalg::GenericOp tile = createRotation(builder, loc, compute, parts);
  if (access == Access::Streamed)
    tile->setAttr(PosencDialect::kStreamedAttrName, builder.getUnitAttr());
}

void RowRotation::prefetch(OpBuilder &builder, Location loc, Value input,
                           ValueRange indices, Access access) const {
  if (access != Access::Cached)
    prefetchRow(builder, loc, input, indices, target);
}

/// Rotates the half pairs from index `pair` on, whose two lanes are in
/// different halves of the row.
void RowRotation::rotateHalves(OpBuilder &builder, Location loc, Value input,
                               Value output, ValueRange indices, Value pair,
                               int64_t length, Access access) const {
  Value x = offsetIndex(builder, loc, pair, offset);
  Value y = offsetIndex(builder, loc, pair, offset + rotaryDim / 2);
  for (Value first : {x, y})
    prefetch(builder, loc, input, append(indices, first), access);
  bool isSplit = form == Form::SplitHalf && length > 1;
  int64_t stride = isSplit ? 2 : 1, count = length / stride;
  SmallVector<PairLanes> parts;
  for (int64_t part = 0; part < stride; ++part) {
    auto lanes = [&](Value memref, Value first) {
      return createLanes(
          builder, loc, memref,
          append(indices, offsetIndex(builder, loc, first, part)), count,
          stride);
    };
    auto elements = [&](Value table) {
      return createLanes(builder, loc, table,
                         {slot, offsetIndex(builder, loc, pair, part * count)},
                         count, 1);
    };
    Value cos = elements(cosTable), sin = elements(sinTable);
    parts.push_back({lanes(input, x), lanes(input, y), lanes(output, x),
                     lanes(output, y), cos, sin, cos, sin});
  }
  rotate(builder, loc, parts, access);
}

/// Rotates the interleaved pairs in the lanes [lane, lane + length).
void RowRotation::rotatePairs(OpBuilder &builder, Location loc, Value input,
                              Value output, ValueRange indices, Value lane,
                              int64_t length, Access access) const {
  Value first = offsetIndex(builder, loc, lane, offset);
  prefetch(builder, loc, input, append(indices, first), access);
  auto lanes = [&](Value memref, ValueRange at, Value from, int64_t which) {
    return createLanes(builder, loc, memref,
                       append(at, offsetIndex(builder, loc, from, which)),
                       length / 2, 2);
  };
  PairLanes pairs{lanes(input, indices, first, 0),
                  lanes(input, indices, first, 1),
                  lanes(output, indices, first, 0),
                  lanes(output, indices, first, 1),
                  {},
                  {},
                  {},
                  {}};
  if (form == Form::Swapped) {
    pairs.cosX = lanes(cosTable, slot, lane, 0);
    pairs.cosY = lanes(cosTable, slot, lane, 1);
    pairs.sinX = lanes(sinTable, slot, lane, 0);
    pairs.sinY = lanes(sinTable, slot, lane, 1);
  } else {
    Value pair = builder.createOrFold<arith::DivUIOp>(
        loc, lane, arith::ConstantIndexOp::create(builder, loc, 2));
    pairs.cosX = pairs.cosY =
        createLanes(builder, loc, cosTable, {slot, pair}, length / 2, 1);
    pairs.sinX = pairs.sinY =
        createLanes(builder, loc, sinTable, {slot, pair}, length / 2, 1);
  }
  rotate(builder, loc, pairs, access);
}

void RowRotation::copyLanes(OpBuilder &builder, Location loc, Value input,
                            Value output, ValueRange indices, int64_t first,
                            int64_t count) const {
  forEachVector(
      builder, loc, count, tileLanes,
      [&](OpBuilder &b, Location l, Value lane, int64_t length) {
        Value from = offsetIndex(b, l, lane, first);
        linalg::CopyOp::create(
            b, l, createLanes(b, l, input, append(indices, from), length, 1),
            createLanes(b, l, output, append(indices, from), length, 1));
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
  bool isHalf = form == Form::Half || form == Form::SplitHalf;
  forEachVector(
      builder, loc, isHalf ? rotaryDim / 2 : rotaryDim, tileLanes,
      [&](OpBuilder &b, Location l, Value first, int64_t length) {
        if (isHalf)
          rotateHalves(b, l, input, output, indices, first, length, access);
        else
          rotatePairs(b, l, input, output, indices, first, length, access);
      });

  // Copies the lanes that are not rotated, unless input and output are the
  // same memory.
  int64_t size = cast<MemRefType>(input.getType()).getShape().back();
  int64_t after = size - offset - rotaryDim;
  if (input == output || (offset == 0 && after == 0))
    return;
  scf::IfOp::create(
      builder, loc, haveDifferentAddresses(builder, loc, input, output),
      [&](OpBuilder &b, Location l) {
        copyLanes(b, l, input, output, indices, 0, offset);
        copyLanes(b, l, input, output, indices, offset + rotaryDim, after);
        scf::YieldOp::create(b, l);
      });
}

//===- RowRotations.cpp - rotations of rows -------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The threads of a team compute the cos and sin of the iteration's positions,
// one pair each, in shared memory. Then each rotates its pairs of all rows. The
// arithmetic is that of the kernels of rope, so the bits are the same.
//
//===----------------------------------------------------------------------===//

#include "GPU/Rotation/SharedTable.h"
#include "GPU/Threads/TileReader.h"
#include "RowKernel.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::posenc;

Value RowKernel::getRowElement(const RowTensor &tensor,
                               ArrayRef<Value> indices) {
  return load(tensor, getOffset(tensor, indices), 1).front();
}

/// Fills the table of a rope with the cos and sin of each position and pair.
RowTensor RowKernel::fillTable(RopeOp op, ArrayRef<Value> sizes) {
  int64_t pairs = op.getFrequencies().getDim() / 2;
  Type element = getElementTypeOrSelf(op.getInits().front().getType());
  Type compute = element.isF64() ? element : Type(b.getF32Type());
  // cos and sin of a pair are neighbours.
  RowTensor table;
  table.base = b.add(sharedBase, buffers.get(op).begin);
  table.first = index(0);
  table.element = compute;
  table.strides = {index(2 * pairs), index(2)};
  table.alignment = 2;
  SmallVector<Value> turns;
  for (Value list : op.getTurns())
    turns.push_back(getTensor(list).memref);
  Angles angles{op.getFrequencies(), op.getAxesAttr(), turns, op.getInverse(),
                areFloats(op.getPositions())};
  AngleAddition steps(b, kernel.getFunction(), angles, element,
                      TableUse::Rotation, llvm::to_vector(llvm::seq(pairs)));
  SmallVector<Value> extents(sizes);
  extents.push_back(index(pairs));
  Value count = index(1);
  for (Value size : extents)
    count = b.mul(count, size);
  forUnits(count, [&](Value number) {
    SmallVector<Value> loops = decompose(number, extents);
    Value pair = loops.pop_back_val();
    AngleAddition::Position position;
    if (auto type = dyn_cast<MemRefType>(op.getPositions().getType())) {
      const RowTensor &positions = getTensor(op.getPositions());
      SmallVector<Value> axes;
      int64_t numAxes = op.getAxesAttr() ? op.getAxesAttr().getNumAxes() : 1;
      for (int64_t axis = 0; axis < numAxes; ++axis) {
        SmallVector<Value> indices(loops);
        if (op.getAxesAttr())
          indices.insert(indices.begin(), index(axis));
        axes.push_back(getRowElement(positions, indices));
      }
      position = steps.getPhases().createPosition(b, loc, axes);
    } else {
      position = steps.getPhases().loadPosition(
          b, loc, getIndex(op.getPositions()), loops);
    }
    AngleAddition::CosSin both =
        posenc::emitElement(b, loc, steps, position, pair, /*lanes=*/1);
    store(table, getOffset(table, {b.div(number, pairs), pair}),
          {vector::ExtractOp::create(b, both.cos, ArrayRef<int64_t>{0}),
           vector::ExtractOp::create(b, both.sin, ArrayRef<int64_t>{0})});
  });
  synchronize();
  return table;
}

void RowKernel::emitRotation(PositionalOpInterface positional) {
  auto rope = dyn_cast<RopeOp>(positional.getOperation());
  auto rotate = dyn_cast<RotateOp>(positional.getOperation());
  auto op = cast<DestinationStyleOpInterface>(positional.getOperation());
  ArrayRef<int64_t> dims = rope ? rope.getDims() : rotate.getDims();
  ValueRange inputs = rope ? rope.getInputs() : rotate.getInputs();
  bool isHalf =
      (rope ? rope.getPairing() : rotate.getPairing()) == Pairing::Half;
  int64_t rotaryDim =
      rope ? rope.getFrequencies().getDim() : rotate.getRotaryDim();
  int64_t offset = rope ? rope.getOffset() : rotate.getOffset();
  Type element = getElementTypeOrSelf(inputs.front().getType());
  Type compute = element.isF64() ? element : Type(b.getF32Type());

  SmallVector<Value> sizes;
  for (int64_t dim : dims)
    sizes.push_back(getTensor(op.getDpsInits().front()).sizes[dim]);
  RowTensor table;
  if (rope)
    table = fillTable(rope, sizes);
  auto getCosSin = [&](ArrayRef<Value> loops, Value pair, int64_t count) {
    SmallVector<std::pair<Value, Value>> pairs;
    for (int64_t i = 0; i < count; ++i) {
      Value at = b.add(pair, i);
      if (rope) {
        Value position = index(0);
        for (auto [loop, size] : llvm::zip_equal(loops, sizes))
          position = b.add(b.mul(position, size), loop);
        SmallVector<Value> both =
            load(table, getOffset(table, {position, at}), 2);
        pairs.push_back({both[0], both[1]});
        continue;
      }
      SmallVector<Value> indices(loops);
      indices.push_back(at);
      Value cos = b.convert(getRowElement(getTensor(rotate.getCos()), indices),
                            compute);
      Value sin = b.convert(getRowElement(getTensor(rotate.getSin()), indices),
                            compute);
      if (rotate.getInverse())
        sin = arith::NegFOp::create(b, sin);
      pairs.push_back({cos, sin});
    }
    return pairs;
  };

  for (auto [input, init] : llvm::zip_equal(inputs, op.getDpsInits())) {
    RowTensor from = getTensor(input), to = getTensor(init);
    int64_t width = cast<MemRefType>(init.getType()).getShape().back();
    int64_t rest = width - rotaryDim;
    int64_t row = isHalf ? rotaryDim / 2 : rotaryDim;
    int64_t bytes = element.getIntOrFloatBitWidth() / 8;
    int64_t access = getDivisor(offset, getDivisor(row, 16 / bytes));
    from.alignment = std::min(from.alignment, access);
    to.alignment = std::min(to.alignment, access);
    int64_t lanes = isHalf ? access : std::max<int64_t>(access, 2);
    int64_t pairs = isHalf ? lanes : lanes / 2;
    SmallVector<Value> units(to.sizes);
    units.back() = index(row / lanes);
    Value count = index(1);
    for (Value size : units)
      count = b.mul(count, size);
    forUnits(count, [&](Value number) {
      SmallVector<Value> indices = decompose(number, units), loops;
      for (int64_t dim : dims)
        loops.push_back(indices[dim]);
      Value column = indices.back();
      Value pair = b.mul(column, pairs);
      auto getPlace = [&](const RowTensor &tensor, int64_t lane) {
        SmallVector<Value> at(indices);
        at.back() = b.add(b.mul(column, lanes), offset + lane);
        return getOffset(tensor, at);
      };
      SmallVector<Value> x, y;
      SmallVector<Value> loaded = load(from, getPlace(from, 0), lanes);
      if (isHalf) {
        x = loaded;
        y = load(from, getPlace(from, rotaryDim / 2), lanes);
      } else {
        for (int64_t i = 0; i < pairs; ++i) {
          x.push_back(loaded[2 * i]);
          y.push_back(loaded[2 * i + 1]);
        }
      }
      auto cosSin = getCosSin(loops, pair, pairs);
      SmallVector<Value> newX, newY;
      for (int64_t i = 0; i < pairs; ++i) {
        auto [cos, sin] = cosSin[i];
        Value first = b.convert(x[i], compute),
              second = b.convert(y[i], compute);
        Value ys = arith::NegFOp::create(b, b.mulf(second, sin));
        Value xs = b.mulf(first, sin);
        newX.push_back(b.convert(b.fma(first, cos, ys), element));
        newY.push_back(b.convert(b.fma(second, cos, xs), element));
      }
      if (isHalf) {
        store(to, getPlace(to, 0), newX);
        store(to, getPlace(to, rotaryDim / 2), newY);
        return;
      }
      SmallVector<Value> both;
      for (int64_t i = 0; i < pairs; ++i)
        both.append({newX[i], newY[i]});
      store(to, getPlace(to, 0), both);
    });
    if (rest == 0 || input == init)
      continue;
    // Copies the lanes before and behind the window.
    int64_t unit = getDivisor(rotaryDim, getDivisor(rest, access));
    units.back() = index(rest / unit);
    count = index(1);
    for (Value size : units)
      count = b.mul(count, size);
    forUnits(count, [&](Value number) {
      SmallVector<Value> indices = decompose(number, units);
      Value lane = b.mul(indices.back(), unit);
      Value isBefore =
          b.compare(arith::CmpIPredicate::ult, lane, index(offset));
      indices.back() = b.select(isBefore, lane, b.add(lane, rotaryDim));
      store(to, getOffset(to, indices),
            load(from, getOffset(from, indices), unit));
    });
  }
}

//===- PositionGrid.cpp - tiles of positions in a kernel ------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PositionGrid.h"
#include "posenc/IR/CreateIndex.h"

#include "LoopSizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::posenc;

PositionGrid::PositionGrid(OpBuilder &host, GpuKernel &kernel,
                           PositionalOpInterface op, int64_t positionsPerTile)
    : positionsPerTile(positionsPerTile), loops(op.getNumLoops() > 0) {
  Location loc = op.getLoc();
  SmallVector<Value> hostSizes = getLoopSizes(host, op);
  if (!hasLoops())
    hostSizes.push_back(createIndex(host, loc, 1));
  for (Value size : hostSizes)
    sizes.push_back(kernel.addIndex(host, size));
  Value last = host.createOrFold<arith::CeilDivUIOp>(
      loc, hostSizes.pop_back_val(), createIndex(host, loc, positionsPerTile));
  tilesOfLast = kernel.addIndex(host, last);
  numTiles = last;
  for (Value size : hostSizes)
    numTiles = host.createOrFold<arith::MulIOp>(loc, numTiles, size);
}

PositionGrid::Tile PositionGrid::getTile(OpBuilder &builder, Location loc,
                                         Value number) const {
  Tile tile{SmallVector<Value>(sizes.size()), sizes.back()};
  for (int64_t loop = sizes.size() - 1; loop > 0; --loop) {
    Value size = loop + 1 == int64_t(sizes.size()) ? tilesOfLast : sizes[loop];
    std::tie(number, tile.loops[loop]) = divide32(builder, loc, number, size);
  }
  tile.loops.front() = number;
  tile.loops.back() = builder.createOrFold<arith::MulIOp>(
      loc, tile.loops.back(), createIndex(builder, loc, positionsPerTile));
  return tile;
}

std::pair<SmallVector<Value>, Value>
PositionGrid::getLoops(OpBuilder &builder, Location loc, const Tile &tile,
                       Value number) const {
  SmallVector<Value> loops(tile.loops);
  if (!hasLoops())
    return {SmallVector<Value>(), nullptr};
  if (positionsPerTile == 1)
    return {loops, nullptr};
  Value at = arith::AddIOp::create(builder, loc, loops.back(), number);
  Value exists = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult,
                                       at, tile.end);
  Value last = arith::SubIOp::create(builder, loc, tile.end,
                                     createIndex(builder, loc, 1));
  loops.back() = arith::MinUIOp::create(builder, loc, at, last);
  return {loops, exists};
}

//===- PositionGrid.h - which positions a thread has ------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_GPU_POSITIONGRID_H
#define POSENC_LIB_CODEGEN_GPU_POSITIONGRID_H

#include "GpuKernel.h"

#include "posenc/IR/Posenc.h"

namespace mlir::posenc {

/// The grid of an operation's positions, cut into tiles of some that follow
/// each other along the last loop.
class PositionGrid {
public:
  /// Passes the sizes of the grid to the kernel.
  PositionGrid(OpBuilder &host, GpuKernel &kernel, PositionalOpInterface op,
               int64_t positionsPerTile);

  /// Whether there are loops; else there is one position.
  bool hasLoops() const { return loops; }
  /// On the host: how many tiles there are.
  Value getNumTiles() const { return numTiles; }

  /// The loop indices of a tile's first position, and the size of the last
  /// loop; a 0 and a 1 where there are no loops.
  struct Tile {
    SmallVector<Value> loops;
    Value end;
  };
  Tile getTile(OpBuilder &builder, Location loc, Value number) const;

  /// The loop indices of position `number` of a tile, and whether it exists;
  /// if not, they are those of the last one. Null for tiles of one.
  std::pair<SmallVector<Value>, Value> getLoops(OpBuilder &builder,
                                                Location loc, const Tile &tile,
                                                Value number) const;

private:
  int64_t positionsPerTile;
  bool loops;
  Value numTiles;
  /// Values in the kernel: the sizes, and the number of tiles along the last
  /// loop.
  SmallVector<Value> sizes;
  Value tilesOfLast;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_GPU_POSITIONGRID_H

//===- PositionGrid.h - tiles of positions in a kernel ----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_GPU_ROTATION_POSITIONGRID_H
#define POSENC_LIB_CODEGEN_GPU_ROTATION_POSITIONGRID_H

#include "GPU/Launch/GpuKernel.h"

#include "posenc/IR/Posenc.h"

namespace mlir::posenc {

/// The position loops of an operation, with the last one divided into tiles of
/// `positionsPerTile` consecutive positions.
class PositionGrid {
public:
  /// Passes the sizes of the grid to the kernel.
  PositionGrid(OpBuilder &host, GpuKernel &kernel, PositionalOpInterface op,
               int64_t positionsPerTile);

  /// Whether there are loops; otherwise there is a single position.
  bool hasLoops() const { return loops; }
  /// Returns the number of tiles, a value on the host.
  Value getNumTiles() const { return numTiles; }

  /// The loop indices of a tile's first position, and the size of the last
  /// loop; 0 and 1 if there are no loops.
  struct Tile {
    SmallVector<Value> loops;
    Value end;
  };
  Tile getTile(OpBuilder &builder, Location loc, Value number) const;

  /// Returns the loop indices of position `number` of a tile, and an i1:
  /// whether the position exists, null for tiles of one position. If it does
  /// not exist, the indices are those of the last position.
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

#endif // POSENC_LIB_CODEGEN_GPU_ROTATION_POSITIONGRID_H

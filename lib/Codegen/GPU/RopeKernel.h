//===- RopeKernel.h - the body of a kernel that rotates ---------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block processes one position, or several if a position has few rows, with
// all rows of all tensors. Each thread first issues the loads of its columns,
// 16 bytes of each half of half pairs. Meanwhile the threads compute the cos
// and sin, one pair each, which all rows of a position share.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_GPU_ROPEKERNEL_H
#define POSENC_LIB_CODEGEN_GPU_ROPEKERNEL_H

#include "PositionGrid.h"
#include "SharedTable.h"

#include <optional>
#include <vector>

namespace mlir::posenc {

/// The rotation of a rope or a rotate.
struct Rotation {
  Operation *op;
  SmallVector<Value> inputs, inits;
  ArrayRef<int64_t> dims;
  bool isHalf;
  int64_t rotaryDim, offset;
  Type element, compute;
};

/// How the work is divided.
struct Cut {
  /// The largest number of elements of an access, and the elements of a column;
  /// with half pairs a column has as many in the other half.
  int64_t access, lanes;
  int64_t columns;
  int64_t positions, threads;
};

/// The best cut; `hasManyPositions` unless the last loop is known to have one.
Cut chooseCut(const Rotation &rotation, bool hasManyPositions);

/// The body of a kernel.
class RopeKernel {
public:
  RopeKernel(OpBuilder &host, GpuKernel &kernel, const Rotation &rotation,
             const Cut &cut, bool isWide);

  /// Emits the whole body. `emitElement` has the cos and sin of one pair of the
  /// position at `loops`.
  using EmitElement = function_ref<AngleAddition::CosSin(
      OpBuilder &, Location, ValueRange loops, Value pair)>;
  void emit(const SharedTable &table, EmitElement emitElement);
  Value getNumBlocks() const { return grid.getNumTiles(); }

private:
  struct Operand {
    GpuKernel::Tensor input, output;
    /// Sizes of the dimensions that are no loops, and their numbers.
    SmallVector<int64_t> rowDims;
    SmallVector<Value> rowSizes;
    /// The rows of a position, if they are known.
    std::optional<int64_t> rows;
    int64_t rest;
    /// Whether lanes outside of the window have to be copied, as an index.
    Value copies;
  };
  /// The first element of a column.
  struct Place {
    Value input, output;
    /// Whether it exists; null: it does.
    Value exists;
    Value position, pair;
  };
  /// The lanes of a column, in memory of the thread; `y` is null where pairs
  /// are neighbours.
  struct Column {
    Place place;
    Value x, y;
  };

  Place locate(const Operand &operand, Value number, Value count,
               int64_t columns);
  Column load(const Operand &operand, Value number, Value count);
  void finish(const Operand &operand, const Column &column,
              const SharedTable &table);
  Value getLanes(Value memref, Value first, int64_t lane, int64_t count,
                 int64_t stride);
  void emitLoop(const Operand &operand, const SharedTable &table);
  void copyRest(const Operand &operand);
  Value countItems(const Operand &operand, int64_t columns);
  void ifExists(Value exists, function_ref<void()> body);

  Rotation rotation;
  Cut cut;
  bool isWide;
  OpBuilder &b;
  Location loc;
  std::vector<Operand> operands;
  PositionGrid grid;
  PositionGrid::Tile tile;
  Value thread;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_GPU_ROPEKERNEL_H

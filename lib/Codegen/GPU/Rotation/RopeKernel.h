//===- RopeKernel.h - body of the rotation kernel ---------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block processes all rows of all tensors at one position, or at several
// positions if a position has few rows. A column is the part of a row that one
// thread processes: 16 bytes, with half pairs 16 bytes of each half. Each
// thread first issues the loads of its columns. While these are in flight, the
// threads compute the cos and sin, one pair each, which all rows of a position
// share.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_GPU_ROTATION_ROPEKERNEL_H
#define POSENC_LIB_CODEGEN_GPU_ROTATION_ROPEKERNEL_H

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

/// The division of the work among blocks and threads.
struct WorkSplit {
  /// The maximum number of elements of an access, and the elements of a column;
  /// with half pairs, a column has as many elements in the other half.
  int64_t access, lanes;
  int64_t columns;
  int64_t positions, threads;
};

/// Chooses the division. `hasManyPositions` is false if the last loop is known
/// to have a single iteration.
WorkSplit chooseWorkSplit(const Rotation &rotation, bool hasManyPositions);

/// The body of a kernel.
class RopeKernel {
public:
  RopeKernel(OpBuilder &host, GpuKernel &kernel, const Rotation &rotation,
             const WorkSplit &cut, bool isWide);

  /// Emits the whole body. `emitElement` emits the cos and sin of one pair of
  /// the position at `loops`.
  using EmitElement = function_ref<AngleAddition::CosSin(
      OpBuilder &, Location, ValueRange loops, Value pair)>;
  void emit(const SharedTable &table, EmitElement emitElement);
  Value getNumBlocks() const { return grid.getNumTiles(); }

private:
  struct Operand {
    GpuKernel::Tensor input, output;
    /// The dimensions that are no position loops, and their sizes.
    SmallVector<int64_t> rowDims;
    SmallVector<Value> rowSizes;
    /// The number of rows of a position, if it is static.
    std::optional<int64_t> rows;
    int64_t rest;
    /// An index, 1 if lanes that are not rotated must be copied, else 0.
    Value copies;
  };
  /// The indices of a column's first element: offsets in the input and output.
  struct ColumnIndex {
    Value input, output;
    /// An i1: whether the column exists; null if it always does.
    Value exists;
    Value position, pair;
  };
  /// The elements of a column, in buffers of the thread. `y` is null for
  /// interleaved pairs.
  struct Column {
    ColumnIndex index;
    Value x, y;
  };

  ColumnIndex locate(const Operand &operand, Value number, Value count,
                     int64_t columns);
  Column load(const Operand &operand, Value number, Value count);
  void finish(const Operand &operand, const Column &column,
              const SharedTable &table);
  Value getLanes(Value memref, Value first, int64_t lane, int64_t count,
                 int64_t stride);
  void emitLoop(const Operand &operand, const SharedTable &table);
  void copyOtherLanes(const Operand &operand);
  Value countItems(const Operand &operand, int64_t columns);
  void ifExists(Value exists, function_ref<void()> body);

  Rotation rotation;
  WorkSplit cut;
  bool isWide;
  OpBuilder &b;
  Location loc;
  std::vector<Operand> operands;
  PositionGrid grid;
  PositionGrid::Tile tile;
  Value thread;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_GPU_ROTATION_ROPEKERNEL_H

//===- RowRotation.h - rotation of the rows of a position -------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The cos and sin of a position are buffered in the order of a row's lanes, so
// that rows need no shuffles:
//
//   half      x and y are in different vectors without a shuffle;
//   swapped   for interleaved pairs: `x*cos + swap(x)*sin`, with each cos twice
//             and the sines with alternating signs;
//   split     for bf16: even and odd elements in separate vectors
//             (BF16.h). These are the two lanes of interleaved pairs, or
//             the even and the odd pairs of half pairs.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_CPU_ROTATION_ROWROTATION_H
#define POSENC_LIB_CODEGEN_CPU_ROTATION_ROWROTATION_H

#include "CPU/VectorTarget.h"
#include "PairRotation.h"

#include "posenc/IR/Posenc.h"

#include "mlir/IR/Builders.h"

namespace mlir::posenc {

/// Emits the rotation of rows by a position's table on the stack.
class RowRotation {
public:
  /// Allocates tables for `numSlots` positions in the function of `op`.
  RowRotation(OpBuilder &builder, Operation *op, Pairing pairing,
              int64_t rotaryDim, int64_t offset, Type elementType,
              int64_t numSlots, const VectorTarget &target);

  /// Returns the rotation by the position in table `slot`.
  RowRotation at(Value slot) const {
    RowRotation result = *this;
    result.slot = slot;
    return result;
  }

  /// Whether all lanes of a row are rotated.
  bool isOfWholeRows(MemRefType type) const {
    return type.getShape().back() == rotaryDim;
  }
  /// Returns the same rotation with prefetches `distance` bytes ahead; 0
  /// disables them.
  RowRotation withPrefetch(uint64_t distance) const {
    RowRotation result = *this;
    result.target.prefetchDistance = distance;
    return result;
  }

  /// The type of the products and of the table: f64, or f32.
  Type getComputeType() const { return compute; }
  /// The lanes of a vector of the table.
  int64_t getLanes() const { return lanes; }
  /// Returns the pairs in the order of the table.
  SmallVector<int64_t> getOrder() const;

  /// Stores cos and sin of the pairs from index `first` of the order on in the
  /// table.
  void store(OpBuilder &builder, Location loc, Value first, Value cos,
             Value sin) const;

  /// Fills the table from rows with the pairs in ascending order.
  /// `load(builder, loc, pair, lanes)` returns vectors of their cosines and
  /// sines.
  using Load = function_ref<std::pair<Value, Value>(OpBuilder &, Location,
                                                    Value, int64_t)>;
  void storeAll(OpBuilder &builder, Location loc, Load load) const;

  /// Whether all streaming stores are aligned if the rows are aligned to the
  /// vector.
  bool canStream() const;

  /// Rotates the row of `input` at `indices` into `output`.
  void rotateRow(OpBuilder &builder, Location loc, Value input, Value output,
                 ValueRange indices, Access access) const;

private:
  enum class Form { Half, Swapped, SplitHalf, SplitInterleaved };

  void rotate(OpBuilder &builder, Location loc, ArrayRef<PairLanes> parts,
              Access access) const;
  void prefetch(OpBuilder &builder, Location loc, Value input,
                ValueRange indices, Access access) const;
  void rotateHalves(OpBuilder &builder, Location loc, Value input, Value output,
                    ValueRange indices, Value pair, int64_t length,
                    Access access) const;
  void rotatePairs(OpBuilder &builder, Location loc, Value input, Value output,
                   ValueRange indices, Value lane, int64_t length,
                   Access access) const;
  void copyLanes(OpBuilder &builder, Location loc, Value input, Value output,
                 ValueRange indices, int64_t first, int64_t count) const;

  Form form;
  int64_t rotaryDim, offset;
  Type element, compute;
  VectorTarget target;
  /// Lanes of a vector of the table, and of a tile of linalg.
  int64_t lanes, tileLanes;
  Value cosTable, sinTable, slot;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_CPU_ROTATION_ROWROTATION_H

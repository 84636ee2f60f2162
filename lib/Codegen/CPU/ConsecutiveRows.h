//===- ConsecutiveRows.h - rows of a table, one from another ----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The short way to a table whose positions follow each other. Every column is a
// sine (a cosine is one a quarter turn ahead), and for r = 0 to 15
//
//   sin(a + rF) = sin(a) cos(rF) + cos(a) sin(rF):
//
// a product and an fma an entry, instead of polynomials. The sines and cosines
// at `a`, the anchor, are rotated by 16F for the next block of rows.
//
// The entries are those of the long way, bit by bit: the sum is wrong by less
// than some E, and where sum - E and sum + E round to the same number, that is
// the entry. Where they do not, which is next to a tie or to a zero, it is
// computed from its own phase.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_CPU_CONSECUTIVEROWS_H
#define POSENC_LIB_CODEGEN_CPU_CONSECUTIVEROWS_H

#include "PositionTable.h"

namespace mlir::posenc {

/// Columns of a table that lie side by side, from `firstLane` of the rows of
/// `memref` on: the pair of each, and how many quarter turns it is ahead of the
/// sine.
struct TableColumns {
  Value memref;
  int64_t firstLane;
  SmallVector<int64_t> pairs, quarters;
};

/// Writes the columns of blocks of rows.
class ConsecutiveRows {
public:
  /// Rows of a block.
  static constexpr int64_t kRows = 16;

  /// Whether the table has the short way: one axis, entries that are rounded.
  static bool isFor(Type elementType, AxesAttr axes);

  /// Allocates memory in the function of `op`, whose rows they are.
  ConsecutiveRows(OpBuilder &builder, PositionalOpInterface op,
                  FrequenciesAttr frequencies, const TableColumns &columns,
                  const VectorTarget &target);

  /// Whether there are blocks enough, of so many rows, to begin.
  static Value areEnough(OpBuilder &builder, Location loc, Value rows);

  /// Whether the block at `loops`, if `rest` rows are left there, is whole and
  /// has consecutive positions.
  static Value isBlock(OpBuilder &builder, Location loc, Value positions,
                       ValueRange loops, Value rest);

  /// Some of the columns, for which the memory is used.
  struct Chunk {
    Value first, count;
  };
  void forEachChunk(
      OpBuilder &builder, Location loc,
      function_ref<void(OpBuilder &, Location, const Chunk &)> body) const;

  /// Before the first block of a chunk.
  void begin(OpBuilder &builder, Location loc, const Chunk &chunk) const;

  /// Writes 16 rows, the first with index `rows` in the table, at consecutive
  /// positions from `position` on.
  void writeBlock(OpBuilder &builder, Location loc, const Chunk &chunk,
                  ValueRange rows, Value position, Access access) const;

private:
  /// A block of rows, the first with these indices.
  struct Block {
    SmallVector<Value> rows;
    Value position;
  };
  struct Rotation {
    Value cos, sin;
  };
  std::string createSteps(OpBuilder &builder, int64_t positions) const;

  Rotation loadStep(OpBuilder &builder, Location loc, StringRef symbol,
                    Value column) const;
  Rotation load(OpBuilder &builder, Location loc, Value memref, ValueRange row,
                Value column) const;
  void store(OpBuilder &builder, Location loc, const Rotation &values,
             Value memref, ValueRange row, Value column) const;
  static Rotation rotate(OpBuilder &builder, Location loc, const Rotation &of,
                         const Rotation &by);

  Value getFilled(OpBuilder &builder, Location loc, const Chunk &chunk) const;
  void fillAnchor(OpBuilder &builder, Location loc, const Chunk &chunk,
                  const Block &block, bool isNext) const;
  void writeGroup(OpBuilder &builder, Location loc, const Chunk &chunk,
                  const Block &block, Value row, Value column, int64_t valid,
                  Access access) const;
  void correct(OpBuilder &builder, Location loc, MutableArrayRef<Value> sums,
               ArrayRef<Value> differences, Value position, Value first) const;
  Value isAny(OpBuilder &builder, Location loc, Value differences) const;
  Value round(OpBuilder &builder, Location loc, Value sums) const;
  void storeGroup(OpBuilder &builder, Location loc, ArrayRef<Value> vectors,
                  ValueRange at, int64_t valid, Access access) const;

  PositionalOpInterface op;
  FrequenciesAttr frequencies;
  VectorTarget target;
  /// Of the entries, and of the products.
  Type element, compute;
  /// Columns of a vector, of a whole number of stores, all, and of the memory.
  int64_t lanes, group, numColumns, most;
  /// In the order of the memory, filled up to whole groups.
  TableColumns columns;
  /// More than the sums are wrong by.
  double error;
  PositionTable table;
  /// Names of globals: what a row, and a block, is further.
  std::string stepOfRow, stepOfBlock;
  /// The cos and sin of the anchor, also in the type of the products; those of
  /// the rows of a block against it.
  Value anchor, base, factors;
  /// The position after the block before, and how often the anchor may still be
  /// rotated.
  Value state;
  /// Of a group that is corrected: the sums, and where roundings differ.
  Value entries, differing;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_CPU_CONSECUTIVEROWS_H

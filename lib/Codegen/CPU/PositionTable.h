//===- PositionTable.h - cos and sin of one position ------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the conversions to vectors have in common: the loops over positions, the
// position of an iteration, and its cos and sin vector by vector.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_CPU_POSITIONTABLE_H
#define POSENC_LIB_CODEGEN_CPU_POSITIONTABLE_H

#include "VectorTarget.h"

#include "posenc/Codegen/ExactSincos.h"
#include "posenc/IR/Posenc.h"

#include "mlir/IR/BuiltinOps.h"

namespace mlir::posenc {

/// `[0, count)` in pieces of `lanes`, then what is left in ever shorter powers
/// of two: first lane and length of each.
SmallVector<std::pair<int64_t, int64_t>> splitIntoVectors(int64_t count,
                                                          int64_t lanes);

/// Loops over these pieces. The body gets the first lane and the vector length.
/// `count` is static, so that no tail needs a mask.
void forEachVector(
    OpBuilder &builder, Location loc, int64_t count, int64_t lanes,
    function_ref<void(OpBuilder &, Location, Value, int64_t)> body);

/// The nest of loops over `sizes`; a static 1 needs none. The body gets the
/// indices.
void forEachIndex(OpBuilder &builder, Location loc, ValueRange sizes,
                  function_ref<void(OpBuilder &, Location, ValueRange)> body);

/// The size of a memref's dimension, a constant where it is static.
Value getDimSize(OpBuilder &builder, Location loc, Value memref, int64_t dim);

/// Emits an error unless the operation is in a function, on memrefs whose last
/// dimension is contiguous, and the options make sense.
LogicalResult checkConvertible(Operation *op, const VectorTarget &target);

/// A constant global of `op`'s module with these values, and its name; equal
/// ones are shared.
template <typename Number>
std::string createConstants(OpBuilder &builder, Operation *op, StringRef prefix,
                            ArrayRef<Number> values);

/// The sizes of the loops of a positional operation on memrefs.
SmallVector<Value> getLoopSizes(OpBuilder &builder, PositionalOpInterface op);

/// What cos and sin are for: the entries of a table, each right to its own last
/// place; or a rotation, which multiplies and adds them.
enum class TableUse { Entries, Rotation };

/// The constants of a frequencies attribute and the cos and sin from them.
class PositionTable {
public:
  /// Puts the constants in front of `op`'s function, in its module. The entries
  /// are of type `type`, f32 or f64. `order` has the pairs in the order in
  /// which they are asked for, -1 for none; each may be some `quarters` of a
  /// turn ahead.
  PositionTable(OpBuilder &builder, Operation *op, FrequenciesAttr frequencies,
                AxesAttr axes, bool inverse, Type type, TableUse use,
                ArrayRef<int64_t> order, ArrayRef<int64_t> quarters = {});

  /// A position, or one for each axis, as i64.
  struct Position {
    SmallVector<Value> axes;
    /// Whether all are small enough for the short way to the phase.
    Value isShort;
  };
  /// The position at loop indices `indices`.
  Position loadPosition(OpBuilder &builder, Location loc, Value positions,
                        ValueRange indices) const;

  struct Entry {
    Value cos, sin;
  };
  /// Emits `body` for vectors of up to `lanes` pairs, from number `first` of
  /// the order on, with their cos and sin.
  using Body = function_ref<void(OpBuilder &, Location, Value first,
                                 const Entry &entry)>;
  void forEachEntry(OpBuilder &builder, Location loc, const Position &position,
                    int64_t lanes, Body body) const;

  /// Table entries of `lanes` pairs, from number `first` of the order on, in
  /// f64, before they are rounded. For a position that `isShort` there is a
  /// shorter way.
  Entry emitUnrounded(OpBuilder &builder, Location loc,
                      const Position &position, Value first, int64_t lanes,
                      bool isShort) const;

private:
  Value loadConstants(OpBuilder &builder, Location loc, StringRef symbol,
                      Type type, Value first, int64_t lanes) const;
  Value selectAxis(OpBuilder &builder, Location loc, ValueRange axes,
                   Value first, int64_t lanes) const;
  Value emitPhase(OpBuilder &builder, Location loc, const Position &position,
                  Value first, int64_t lanes, bool isShort) const;
  Value emitPhaseTop(OpBuilder &builder, Location loc, const Position &position,
                     Value first, int64_t lanes, bool isShort) const;
  ExactSincos getSincos() const;
  Entry emit(OpBuilder &builder, Location loc, const Position &position,
             Value first, int64_t lanes, bool isShort) const;

  FrequenciesAttr frequencies;
  AxesAttr axes;
  bool inverse;
  Type type;
  TableUse use;
  int64_t length;
  /// Names of globals: the two parts of a frequency that `ExactSincos` wants;
  /// its upper 64 bits as two signed numbers; the axis of each pair; the phase
  /// that each is ahead.
  std::string high, low, top, rest, axisOfPair, ahead;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_CPU_POSITIONTABLE_H

//===- PositionTable.h - cos and sin of one position ------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The first position of a run of `kRun`, its anchor, has cos and sin from its
// phase. They stay in memory, and the others are a rotation further,
//
//   cos(a + bF) = cos(a) cos(bF) - sin(a) sin(bF)
//   sin(a + bF) = sin(a) cos(bF) + cos(a) sin(bF)
//
// by constants: two products an entry, or four where the constants have two
// parts, for a phase and its polynomials, which are forty operations. What a
// position gets depends on it alone, whatever was asked for before. Tables of
// f64, and of very many pairs, have all of it from the phase.
//
// Sums are wrong by a share of 1: where an entry of a table is so small that it
// shows, next to a zero, the entry is from its own phase.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_CPU_POSITIONTABLE_H
#define POSENC_LIB_CODEGEN_CPU_POSITIONTABLE_H

#include "PositionPhases.h"

#include "posenc/IR/PairFrequencies.h"

namespace mlir::posenc {

/// What cos and sin are for: the entries of a table, each right to its own last
/// place; or a rotation, which multiplies and adds them.
enum class TableUse { Entries, Rotation };

/// The cos and sin of positions, one after the other.
class PositionTable {
public:
  /// Positions of a run, a power of two.
  static constexpr int64_t kRun = 16;

  /// Puts constants in front of `op`'s function, in its module, and memory into
  /// it. For tensors of type `type`; the entries are f64 for f64, else f32.
  /// `order` has the pairs in the order in which they are asked for.
  PositionTable(OpBuilder &builder, Operation *op, FrequenciesAttr frequencies,
                AxesAttr axes, bool inverse, Type type, TableUse use,
                ArrayRef<int64_t> order);

  using Position = PositionPhases::Position;
  using Entry = PositionPhases::Entry;
  using Pairs = PositionPhases::Pairs;
  using Body = PositionPhases::Body;

  /// The position at loop indices `indices`.
  Position loadPosition(OpBuilder &builder, Location loc, Value positions,
                        ValueRange indices) const {
    return phases.loadPosition(builder, loc, positions, indices);
  }

  /// Emits `body` for pairs whose constants fit into the first cache: all
  /// positions have their turn before the next of these.
  void forEachPart(OpBuilder &builder, Location loc,
                   function_ref<void(OpBuilder &, Location, Pairs)> body) const;

  /// Emits `body` for vectors of up to `lanes` of the pairs, with the number of
  /// the first and their cos and sin; a second time for those to be mended.
  void forEachEntry(OpBuilder &builder, Location loc, const Position &position,
                    Pairs pairs, int64_t lanes, Body body) const;

  Pairs getAll(OpBuilder &builder, Location loc) const;

private:
  void createSteps(OpBuilder &builder, Operation *op,
                   ArrayRef<PairFrequency> pairs, bool inverse,
                   ArrayRef<int64_t> order);
  void allocate(OpBuilder &builder, Operation *op);
  void forget(OpBuilder &builder, Location loc) const;
  void ensureAnchor(OpBuilder &builder, Location loc, const Position &position,
                    Pairs pairs, int64_t lanes) const;
  SmallVector<Value> loadStep(OpBuilder &builder, Location loc,
                              const Position &position, Value first,
                              int64_t lanes) const;
  Entry rotateAnchor(OpBuilder &builder, Location loc, const Position &position,
                     Value first, int64_t lanes) const;
  Value getMagnitude(OpBuilder &builder, Location loc, Value entry,
                     Value first) const;
  void emitGroup(OpBuilder &builder, Location loc, const Position &position,
                 Value first, ArrayRef<std::pair<int64_t, int64_t>> vectors,
                 Body body) const;
  Entry mend(OpBuilder &builder, Location loc, const Position &position,
             Value first, const Entry &entry) const;

  /// Whether there are anchors at all.
  bool hasRuns;
  PositionPhases phases;
  TableUse use;
  int64_t length, numAxes;
  /// Of the entries, and of the products.
  Type type, products;
  /// The constants of a step: cos and sin; for a rotation also what f32 lost.
  int64_t numParts;
  /// Sums below are not precise enough; 0 for a rotation.
  double limit;
  /// Names of globals: `kRun` x `numParts` x pairs; all bits of a magnitude for
  /// the pairs whose frequency is 0, if there are any.
  std::string steps, stillPairs;
  /// The cosines and sines of an anchor, and which it is.
  Value anchor, anchored;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_CPU_POSITIONTABLE_H

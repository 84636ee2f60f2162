//===- PositionTable.h - cos and sin of one position ------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The anchor of the last position (AngleAddition.h) stays in memory.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_CPU_POSITIONTABLE_H
#define POSENC_LIB_CODEGEN_CPU_POSITIONTABLE_H

#include "posenc/Numerics/AngleAddition.h"

namespace mlir::posenc {

/// The cos and sin of positions, one after the other.
class PositionTable {
public:
  /// Puts constants in front of `op`'s function, in its module, and memory into
  /// it. For tensors of type `type`; the elements are f64 for f64, else f32.
  /// `order` has the pairs in the order in which they are asked for.
  PositionTable(OpBuilder &builder, Operation *op, FrequenciesAttr frequencies,
                AxesAttr axes, bool inverse, Type type, TableUse use,
                ArrayRef<int64_t> order);

  using Position = ExactPhase::Position;
  using CosSin = ExactPhase::CosSin;

  /// Some of the pairs, by their numbers in the order.
  struct Pairs {
    Value first;
    int64_t count;
  };
  using Body = function_ref<void(OpBuilder &, Location, Value first,
                                 const CosSin &element)>;

  /// What becomes of vectors of elements.
  struct Writer {
    /// What is written of a vector of pairs: rounded, in the order of a row.
    function_ref<SmallVector<Value>(OpBuilder &, Location, const CosSin &)>
        finish;
    /// Writes that for the pairs from number `first` on; `behind` is how far
    /// the position is behind the first of a run, and null for one alone.
    function_ref<void(OpBuilder &, Location, Value behind, Value first,
                      ValueRange finished)>
        write;
  };

  /// The position at loop indices `indices`.
  Position loadPosition(OpBuilder &builder, Location loc, Value positions,
                        ValueRange indices) const {
    return steps.getPhases().loadPosition(builder, loc, positions, indices);
  }

  /// Emits `body` for pairs whose constants fit into the second cache: all
  /// positions have their turn before the next of these.
  void forEachPart(OpBuilder &builder, Location loc,
                   function_ref<void(OpBuilder &, Location, Pairs)> body) const;

  /// Emits `body` for vectors of up to `lanes` of the pairs, with the number of
  /// the first and their cos and sin; a second time for those to be mended.
  void forEachElement(OpBuilder &builder, Location loc,
                      const Position &position, Pairs pairs, int64_t lanes,
                      Body body) const;
  void forEachElement(OpBuilder &builder, Location loc,
                      const Position &position, Pairs pairs, int64_t lanes,
                      Writer writer) const;

  /// Pairs whose elements are looked at together: one to be mended means
  /// another look at each.
  static constexpr int64_t kChunk = 64;

  /// Whether all positions of a run are better taken together.
  bool canTakeRuns() const { return takesRuns; }
  int64_t getRun() const { return steps.getRun(); }
  /// Whether the last loop, at `indices`, has a whole run before it: getRun()
  /// consecutive positions, from `position` on. `left` is how many there are.
  Value isAtRun(OpBuilder &builder, Location loc, Value positions,
                ValueRange indices, const Position &position, Value left) const;
  /// The same as `forEachElement` for the positions of a run, from `position`
  /// on.
  void forEachElementOfRun(OpBuilder &builder, Location loc,
                           const Position &position, Pairs pairs, int64_t lanes,
                           Writer writer) const;

  Pairs getAll(OpBuilder &builder, Location loc) const;

private:
  void allocate(OpBuilder &builder, Operation *op);
  void forget(OpBuilder &builder, Location loc) const;
  void forEachPhase(OpBuilder &builder, Location loc, const Position &position,
                    Pairs pairs, int64_t lanes, Body body) const;
  /// The cosines and sines of an anchor or a stretch in memory, and of which:
  /// its first position.
  struct Kept {
    Value elements, which;
  };
  Kept allocateKept(OpBuilder &builder, Location loc) const;
  CosSin load(OpBuilder &builder, Location loc, const Kept &kept, Value first,
              int64_t lanes) const;
  void store(OpBuilder &builder, Location loc, const Kept &kept, Value first,
             const CosSin &element) const;
  void ensure(OpBuilder &builder, Location loc, const Kept &kept,
              const Position &position,
              function_ref<void(OpBuilder &, Location)> fill) const;
  void ensureAnchor(OpBuilder &builder, Location loc, const Position &position,
                    Pairs pairs, int64_t lanes) const;
  void fillFromPhases(OpBuilder &builder, Location loc, const Kept &kept,
                      const Position &position, Pairs pairs,
                      int64_t lanes) const;

  /// Vectors of a position that are written together: at least a line.
  static constexpr int64_t kGroup = 2;

  /// First lanes and lengths of vectors.
  using Vectors = ArrayRef<std::pair<int64_t, int64_t>>;
  using EmitGroup = function_ref<SmallVector<Value>(OpBuilder &, Location,
                                                    Value first, Vectors)>;
  using Mend = function_ref<void(OpBuilder &, Location)>;
  /// Emits all groups of some pairs, each with the marks of its elements, one
  /// of each vector type, then `mend` where any is small.
  void emitAndMend(OpBuilder &builder, Location loc, Pairs pairs, int64_t lanes,
                   EmitGroup emitGroup, Mend mend) const;
  Value isAnySmall(OpBuilder &builder, Location loc, ValueRange marks) const;
  void addMarks(OpBuilder &builder, Location loc, Value first,
                const CosSin &element, ValueRange finished,
                SmallVectorImpl<Value> &marks) const;

  /// Two positions of a run that have the same constants: those of a place,
  /// behind the middle and before it.
  struct Both {
    Value place, behind, before;
  };
  Value emitBoth(OpBuilder &builder, Location loc, const Both &both,
                 Pairs pairs, int64_t lanes, Writer writer) const;
  void emitPlace(OpBuilder &builder, Location loc, const Position &position,
                 const Both &both, Pairs pairs, int64_t lanes,
                 Writer writer) const;
  void mendBoth(OpBuilder &builder, Location loc, const Position &position,
                const Both &both, Pairs pairs, int64_t lanes,
                Writer writer) const;
  void emitRow(OpBuilder &builder, Location loc, const Position &position,
               Pairs pairs, int64_t lanes, Writer writer) const;
  void mendPairs(OpBuilder &builder, Location loc, const Position &position,
                 Value behind, Pairs pairs, int64_t lanes, Writer writer) const;

  AngleAddition steps;
  bool takesRuns;
  Kept anchor, stretch;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_CPU_POSITIONTABLE_H

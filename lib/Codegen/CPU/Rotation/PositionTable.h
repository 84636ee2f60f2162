//===- PositionTable.h - cos and sin of single positions --------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The cos and sin of the last base position (AngleAddition.h) stay in memory.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_CODEGEN_CPU_ROTATION_POSITIONTABLE_H
#define POSENC_LIB_CODEGEN_CPU_ROTATION_POSITIONTABLE_H

#include "posenc/Numerics/AngleAddition.h"

namespace mlir::posenc {

/// Emits the cos and sin of positions, one position after the other.
class PositionTable {
public:
  /// Creates the constants in `op`'s module and buffers in its function. `type`
  /// is the element type of the tensors; elements are computed in f64 for f64,
  /// else in f32. `order` lists the pairs in the order in which they are
  /// requested.
  PositionTable(OpBuilder &builder, Operation *op, const Angles &angles,
                Type type, TableUse use, ArrayRef<int64_t> order);

  using Position = ExactPhase::Position;
  using CosSin = ExactPhase::CosSin;

  /// The pairs [first, first + count) of the order.
  struct Pairs {
    Value first;
    int64_t count;
  };
  using Body = function_ref<void(OpBuilder &, Location, Value first,
                                 const CosSin &element)>;

  /// Converts and stores vectors of elements.
  struct Writer {
    /// Returns the vectors to write for a vector of pairs: rounded, in row
    /// order.
    function_ref<SmallVector<Value>(OpBuilder &, Location, const CosSin &)>
        finish;
    /// Stores these vectors for the pairs from `first` on; `behind` is the
    /// offset of the position from the start of its run, null for a single
    /// position.
    function_ref<void(OpBuilder &, Location, Value behind, Value first,
                      ValueRange finished)>
        write;
  };

  /// Loads the position at the loop indices `indices`.
  Position loadPosition(OpBuilder &builder, Location loc, Value positions,
                        ValueRange indices) const {
    return steps.getPhases().loadPosition(builder, loc, positions, indices);
  }

  /// Emits `body` for parts of the pairs whose constants fit in the L2 cache.
  /// All positions are computed for one part before the next.
  void forEachPart(OpBuilder &builder, Location loc,
                   function_ref<void(OpBuilder &, Location, Pairs)> body) const;

  /// Emits `body` for vectors of up to `lanes` pairs, with the index of the
  /// first pair and their cos and sin; once more for those recomputed near
  /// zeros.
  void forEachElement(OpBuilder &builder, Location loc,
                      const Position &position, Pairs pairs, int64_t lanes,
                      Body body) const;
  void forEachElement(OpBuilder &builder, Location loc,
                      const Position &position, Pairs pairs, int64_t lanes,
                      Writer writer) const;

  /// The number of pairs that are checked for zeros together: one near a zero
  /// causes a check of each.
  static constexpr int64_t kChunk = 64;

  /// Whether computing all positions of a run together is faster.
  bool canTakeRuns() const { return takesRuns; }
  int64_t getRun() const { return steps.getRun(); }
  /// Emits an i1: whether the positions along the last loop, from `indices` on,
  /// are a whole run: getRun() consecutive positions that begin with
  /// `position`. `left` is the number of remaining iterations.
  Value isAtRun(OpBuilder &builder, Location loc, Value positions,
                ValueRange indices, const Position &position, Value left) const;
  /// Like `forEachElement`, for all positions of a run, from `position` on.
  void forEachElementOfRun(OpBuilder &builder, Location loc,
                           const Position &position, Pairs pairs, int64_t lanes,
                           Writer writer) const;

  Pairs getAll(OpBuilder &builder, Location loc) const;

private:
  void allocate(OpBuilder &builder, Operation *op);
  void forget(OpBuilder &builder, Location loc) const;
  void forEachPhase(OpBuilder &builder, Location loc, const Position &position,
                    Pairs pairs, int64_t lanes, Body body) const;
  /// Cos and sin of a base position or a stretch in memory, and the first
  /// position of the run or stretch.
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
  void ensureBase(OpBuilder &builder, Location loc, const Position &position,
                  Pairs pairs, int64_t lanes) const;
  void fillFromPhases(OpBuilder &builder, Location loc, const Kept &kept,
                      const Position &position, Pairs pairs,
                      int64_t lanes) const;

  /// Vectors of a position that are written together: at least a cache line.
  static constexpr int64_t kVectorsPerStore = 2;

  /// First lanes and lengths of vectors.
  using Vectors = ArrayRef<std::pair<int64_t, int64_t>>;
  using EmitVectors = function_ref<SmallVector<Value>(OpBuilder &, Location,
                                                      Value first, Vectors)>;
  using Recompute = function_ref<void(OpBuilder &, Location)>;
  /// Emits all vectors of some pairs, with marks of elements near zero, then
  /// recomputes these if there are any.
  void emitAndRecompute(OpBuilder &builder, Location loc, Pairs pairs,
                        int64_t lanes, EmitVectors emitVectors,
                        Recompute recompute) const;
  Value isAnySmall(OpBuilder &builder, Location loc, ValueRange marks) const;
  void addMarks(OpBuilder &builder, Location loc, Value first,
                const CosSin &element, ValueRange finished,
                SmallVectorImpl<Value> &marks) const;

  /// Two positions of a run at the same distance from its middle, which share
  /// constants. `behind` and `before` are the offsets of the later and the
  /// earlier position from the start of the run.
  struct Both {
    Value step, behind, before;
  };
  Value emitBoth(OpBuilder &builder, Location loc, const Both &both,
                 Pairs pairs, int64_t lanes, Writer writer) const;
  void emitStep(OpBuilder &builder, Location loc, const Position &position,
                const Both &both, Pairs pairs, int64_t lanes,
                Writer writer) const;
  void recomputeBoth(OpBuilder &builder, Location loc, const Position &position,
                     const Both &both, Pairs pairs, int64_t lanes,
                     Writer writer) const;
  void emitRow(OpBuilder &builder, Location loc, const Position &position,
               Pairs pairs, int64_t lanes, Writer writer) const;
  void recomputePairs(OpBuilder &builder, Location loc,
                      const Position &position, Value behind, Pairs pairs,
                      int64_t lanes, Writer writer) const;

  AngleAddition steps;
  bool takesRuns;
  Kept base, stretch;
};

} // namespace mlir::posenc

#endif // POSENC_LIB_CODEGEN_CPU_ROTATION_POSITIONTABLE_H

//===- AngleAddition.h - cos and sin by angle addition ----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Positions are divided into runs. The cos and sin of one position of a run,
// its base position a, are computed from the exact phase; those of the others
// are a rotation by a constant step b further:
//
//   cos(a + bF) = cos(a) cos(bF) - sin(a) sin(bF)
//   sin(a + bF) = sin(a) cos(bF) + cos(a) sin(bF)
//
// The constants cos(bF) and sin(bF) are in memory. This takes two products per
// element, or four where the constants have two parts, instead of the phase and
// its polynomials, which are forty operations. The result for a position
// depends on the position alone, not on earlier ones, and is the same on every
// target. Tables of f64, those of more than 4096 pairs, positions that are
// floats, angles that are rounded, and frequencies that are computed at run
// time, use the phase of each position.
//
// For a rotation, the base position is the first of a run of 16, so position 0
// is the identity. For a table, it is the middle of a run of 32, or of 64 for
// bf16, between two positions: b is -15.5, -14.5, ..., 15.5. Two positions at
// the same distance before and after it share their constants, and the products
// `sin(a) sin(bF)` and `cos(a) sin(bF)` up to the sign (`rotateBoth`).
//
// The base positions of four neighbouring runs of a table, a stretch, are
// themselves rotations of the position in their middle, since their phases
// would take a tenth of a table's time.
//
// Angle addition has an absolute error. Near a zero of sin or cos that is a
// large relative error, so these elements of a table are recomputed from the
// exact phase of their position.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_NUMERICS_ANGLEADDITION_H
#define POSENC_NUMERICS_ANGLEADDITION_H

#include "posenc/Numerics/ExactPhase.h"

#include "posenc/IR/PairFrequencies.h"

namespace mlir::posenc {

/// The use of cos and sin. The elements of a table are accurate to their own
/// last place; a rotation multiplies and adds them, so only their absolute
/// error counts.
enum class TableUse { Table, Rotation };

/// Computes the cos and sin of a position from those of its base position.
class AngleAddition {
public:
  /// The smallest number of positions in a run.
  static constexpr int64_t kRun = 16;

  using Position = ExactPhase::Position;
  using CosSin = ExactPhase::CosSin;

  /// Creates the constants in `op`'s module. `type` is the element type of the
  /// tensors; elements are computed in f64 for f64, else in f32. `order` lists
  /// the pairs in the order in which they are requested.
  AngleAddition(OpBuilder &builder, Operation *op, const Angles &angles,
                Type type, TableUse use, ArrayRef<int64_t> order);

  /// Positions of a run, a power of two.
  int64_t getRun() const {
    return use == TableUse::Table ? 2 * getNumSteps() : getNumSteps();
  }
  /// The number of rotation steps that have constants.
  int64_t getNumSteps() const { return stepLevel.numSteps; }
  /// Whether there are runs; otherwise each position's own phase is used.
  bool hasRuns() const { return runs; }
  const ExactPhase &getPhases() const { return phases; }
  int64_t getNumPairs() const { return length; }
  int64_t getNumAxes() const { return numAxes; }
  /// The size and alignment of memory for `numParts` values of each pair (cos
  /// and sin are two parts), and the offset of a part for the pairs from
  /// `first` on.
  int64_t getSize(int64_t numParts) const {
    return getLead() + getStride(numParts);
  }
  int64_t getAlignment() const { return hasPageOffset() ? kPageBytes : 64; }
  Value getOffset(OpBuilder &builder, Location loc, Value first, int64_t part,
                  int64_t numParts) const;
  /// The type of a base position's cos and sin.
  Type getBaseType() const { return products; }
  /// Bytes of the constants of a pair.
  int64_t getStepBytes() const;

  /// Returns the first position of the position's run.
  Position getBasePosition(OpBuilder &builder, Location loc,
                           const Position &position) const;
  /// Whether base positions are rotations of a stretch's middle; otherwise a
  /// stretch is a single run.
  bool hasStretches() const { return baseLevel.numSteps > 0; }
  int64_t getStretchLength() const {
    return hasStretches() ? 2 * baseLevel.numSteps * getRun() : getRun();
  }
  /// Returns the first position of the stretch. `ExactPhase::emit` of it gives
  /// the cos and sin of the middle.
  Position getStretch(OpBuilder &builder, Location loc,
                      const Position &position) const;
  /// Converts the result of `ExactPhase::emit` for a stretch to the type of
  /// `rotateBase` and `rotate`; without runs, to the element itself.
  CosSin roundPhase(OpBuilder &builder, Location loc,
                    const CosSin &element) const;
  /// Computes the base position of the position's run from that of its stretch.
  CosSin rotateBase(OpBuilder &builder, Location loc, const Position &position,
                    const CosSin &stretch, Value first) const;
  /// Rotates the base position's cos and sin, for the vector of pairs from
  /// `first` on, by the position's step within its run.
  CosSin rotate(OpBuilder &builder, Location loc, const Position &position,
                const CosSin &base, Value first) const;

  /// For a table with one axis: computes the elements of two positions, `step`
  /// positions after the middle of the run and as many before it. The results
  /// are those of `rotate`, bit for bit.
  std::pair<CosSin, CosSin> rotateBoth(OpBuilder &builder, Location loc,
                                       Value step, const CosSin &base,
                                       Value first) const;

  /// Whether `rotate` can return an element that must be recomputed.
  bool canBeSmall() const { return limit != 0.0; }
  /// Returns the bits of an element without the sign, which are ordered by
  /// magnitude. Sines of frequency 0, which are always zero, get the largest
  /// magnitude.
  Value getMagnitude(OpBuilder &builder, Location loc, Value element,
                     Value first) const;
  /// Emits an i1 vector: whether elements of these magnitudes must be
  /// recomputed.
  Value isSmall(OpBuilder &builder, Location loc, Value magnitude) const;
  /// Returns words from which `isAnySmall` tells whether any element may have
  /// to be recomputed. They are cheap to compute, without constants that would
  /// occupy registers. Words with all bits set stand for no such element.
  /// `written` are the vectors to be stored: one vector of bf16 has half the
  /// words.
  Value getMarks(OpBuilder &builder, Location loc, const CosSin &element,
                 ValueRange written, Value first) const;
  /// Combines the marks of two sets of elements.
  Value joinMarks(OpBuilder &builder, Location loc, Value a, Value b) const;
  /// Emits an i1: whether the marks stand for any element near zero.
  Value isAnySmall(OpBuilder &builder, Location loc, Value marks) const;
  /// Returns the element, recomputed from the exact phase where it is near
  /// zero.
  CosSin recompute(OpBuilder &builder, Location loc, const Position &position,
                   Value first, const CosSin &element) const;

private:
  /// Constants that rotate by multiples of `unit` positions.
  struct Level {
    int64_t numSteps, unit;
    /// Name of a global of the shape steps x blocks x parts x `block`.
    std::string constants;
  };
  void createLevel(OpBuilder &builder, Operation *op, Level &level,
                   StringRef name, ArrayRef<PairFrequency> pairs, bool inverse,
                   ArrayRef<int64_t> order);
  Position getFirst(OpBuilder &builder, Location loc, const Position &position,
                    int64_t length) const;
  /// Whether the constants start at an offset within their page that outputs
  /// rarely have. A load waits for all earlier stores if a line at the same
  /// offset within a page was just written; long rows of constants are read as
  /// fast as a table is written.
  bool hasPageOffset() const {
    return use == TableUse::Table && length >= kLongRow;
  }
  /// Elements before the first constant.
  int64_t getLead() const {
    return hasPageOffset() ? kLeadBytes * 8 / products.getIntOrFloatBitWidth()
                           : 0;
  }
  int64_t getBlock() const;
  /// Elements from the constants of one step to those of the next.
  int64_t getStride(int64_t numParts) const {
    return llvm::divideCeil(length, block) * block * numParts;
  }
  struct Step;
  Step getStep(OpBuilder &builder, Location loc, const Level &level,
               Value axis) const;
  Value loadPart(OpBuilder &builder, Location loc, const Level &level,
                 Value row, int64_t part, Value first, int64_t lanes) const;
  SmallVector<Value> loadLevel(OpBuilder &builder, Location loc,
                               const Level &level, const Position &position,
                               Value first, int64_t lanes) const;
  CosSin round(OpBuilder &builder, Location loc, const CosSin &element) const;
  Value orStill(OpBuilder &builder, Location loc, Value words,
                Value first) const;

  /// From this number of pairs on, constants are read faster in long rows, even
  /// with such conflicts.
  static constexpr int64_t kLongRow = 512;
  static constexpr int64_t kPageBytes = 4096, kLeadBytes = 640;

  TableUse use;
  bool runs;
  Level stepLevel, baseLevel;
  ExactPhase phases;
  int64_t length, numAxes;
  /// The types of the elements and of the products.
  Type type, products;
  /// The number of pairs whose parts are contiguous, a multiple of all vector
  /// sizes. It is small for f64, as short rows of constants would conflict with
  /// the stores to a table at the same offset within a page.
  int64_t block;
  /// The parts of a step's constants: cos and sin, and for rotations of more
  /// than 16 bits the rounding errors of both.
  int64_t numParts;
  /// Elements of a smaller magnitude are recomputed; 0 for a rotation.
  double limit;
  /// Name of a global: all bits of a magnitude for the pairs whose frequency is
  /// 0, if there are any.
  std::string stillPairs;
};

} // namespace mlir::posenc

#endif // POSENC_NUMERICS_ANGLEADDITION_H

//===- AngleAddition.h - from a position to those after it ------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Of a run of positions one, its anchor, has cos and sin from its phase, the
// others are a rotation further,
//
//   cos(a + bF) = cos(a) cos(bF) - sin(a) sin(bF)
//   sin(a + bF) = sin(a) cos(bF) + cos(a) sin(bF)
//
// by constants: two products an element, or four where the constants have two
// parts, for a phase and its polynomials, which are forty operations. What a
// position gets depends on it alone, whatever was asked for before, and is the
// same on every target. Tables of f64, and of very many pairs, have all of it
// from the phase.
//
// For a rotation the anchor is the first position of a run of 16, so that
// position 0 changes nothing. For a table it is in the middle of a run of 32,
// or of 64 for bf16, between two positions: b is -15.5, -14.5 to 15.5. Those as
// far before it as behind it have the same constants and the same `sin(a)
// sin(bF)` and `cos(a) sin(bF)`, but for the sign: `rotateBoth`.
//
// The anchors of four neighbouring runs of a table are themselves rotations of
// one in the middle of all, a stretch: their phases would be a tenth of a
// table's time.
//
// Sums are wrong by a share of 1: where an element of a table is so small that
// it shows, next to a zero, the element is from its own phase.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_NUMERICS_ANGLEADDITION_H
#define POSENC_NUMERICS_ANGLEADDITION_H

#include "posenc/Numerics/ExactPhase.h"

#include "posenc/IR/PairFrequencies.h"

namespace mlir::posenc {

/// What cos and sin are for: the elements of a table, each right to its own
/// last place; or a rotation, which multiplies and adds them.
enum class TableUse { Table, Rotation };

/// The cos and sin of a position from those of its anchor.
class AngleAddition {
public:
  /// The least positions of a run.
  static constexpr int64_t kRun = 16;

  using Position = ExactPhase::Position;
  using CosSin = ExactPhase::CosSin;

  /// Puts constants in front of `op`'s function, in its module. For tensors of
  /// type `type`; the elements are f64 for f64, else f32. `order` has the pairs
  /// in the order in which they are asked for.
  AngleAddition(OpBuilder &builder, Operation *op, FrequenciesAttr frequencies,
                AxesAttr axes, bool inverse, Type type, TableUse use,
                ArrayRef<int64_t> order);

  /// Positions of a run, a power of two.
  int64_t getRun() const {
    return use == TableUse::Table ? 2 * getNumPlaces() : getNumPlaces();
  }
  /// How many constants of a pair there are.
  int64_t getNumPlaces() const { return stepLevel.numPlaces; }
  /// Whether there are anchors at all; else the phases are those of the
  /// positions themselves.
  bool hasRuns() const { return runs; }
  const ExactPhase &getPhases() const { return phases; }
  int64_t getNumPairs() const { return length; }
  int64_t getNumAxes() const { return numAxes; }
  /// The size of memory for so many parts of the pairs, as cos and sin are two,
  /// how it is aligned, and where a part of pairs from `first` on is in it.
  int64_t getSize(int64_t numParts) const {
    return getLead() + getStride(numParts);
  }
  int64_t getAlignment() const { return isAtPlaceOfPage() ? kPageBytes : 64; }
  Value getPlaceOf(OpBuilder &builder, Location loc, Value first, int64_t part,
                   int64_t numParts) const;
  /// The type of an anchor's cos and sin.
  Type getAnchorType() const { return products; }
  /// Bytes of the constants of a pair.
  int64_t getStepBytes() const;

  /// The first position of the run.
  Position getAnchor(OpBuilder &builder, Location loc,
                     const Position &position) const;
  /// Whether anchors are those of a stretch turned; else a stretch is a run.
  bool hasStretches() const { return turnLevel.numPlaces > 0; }
  int64_t getStretchLength() const {
    return hasStretches() ? 2 * turnLevel.numPlaces * getRun() : getRun();
  }
  /// The first position of the stretch, whose `emit` is for its middle.
  Position getStretch(OpBuilder &builder, Location loc,
                      const Position &position) const;
  /// `emit`'s result for a stretch, as `turn` and `rotate` want it; without
  /// anchors, the element itself.
  CosSin roundPhase(OpBuilder &builder, Location loc,
                    const CosSin &element) const;
  /// The anchor of the position's run from that of its stretch.
  CosSin turn(OpBuilder &builder, Location loc, const Position &position,
              const CosSin &stretch, Value first) const;
  /// The anchor's cos and sin of vectors of pairs from number `first` on,
  /// further by the position's place in its run.
  CosSin rotate(OpBuilder &builder, Location loc, const Position &position,
                const CosSin &anchor, Value first) const;

  /// For a table, with one axis: the elements of the positions `place` behind
  /// the middle of the run, from 0 on, and as far before it. The same bits.
  std::pair<CosSin, CosSin> rotateBoth(OpBuilder &builder, Location loc,
                                       Value place, const CosSin &anchor,
                                       Value first) const;

  /// Whether `rotate` can give an element that has to be mended.
  bool canBeSmall() const { return limit != 0.0; }
  /// What to compare of an element: its bits without the sign, which are in the
  /// order of magnitudes. Sines that are zero everywhere are as large as can
  /// be.
  Value getMagnitude(OpBuilder &builder, Location loc, Value element,
                     Value first) const;
  /// Whether elements of such magnitudes have to be mended.
  Value isSmall(OpBuilder &builder, Location loc, Value magnitude) const;
  /// Words of which `isAnySmall` can tell whether any of the elements may have
  /// to be mended: what takes least, where it matters without constants, which
  /// would take registers or be loaded. All bits are those of none. `written`
  /// is what becomes of them: one vector of bf16 has half the words.
  Value getMarks(OpBuilder &builder, Location loc, const CosSin &element,
                 ValueRange written, Value first) const;
  /// The marks of all elements of both.
  Value joinMarks(OpBuilder &builder, Location loc, Value a, Value b) const;
  /// An i1.
  Value isAnySmall(OpBuilder &builder, Location loc, Value marks) const;
  /// The element, from the phase where it is small.
  CosSin mend(OpBuilder &builder, Location loc, const Position &position,
              Value first, const CosSin &element) const;

private:
  /// Constants that rotate by some places of `unit` positions each.
  struct Level {
    int64_t numPlaces, unit;
    /// Name of a global: places x blocks x parts x `block`.
    std::string constants;
  };
  void createLevel(OpBuilder &builder, Operation *op, Level &level,
                   StringRef name, ArrayRef<PairFrequency> pairs, bool inverse,
                   ArrayRef<int64_t> order);
  Position getFirst(OpBuilder &builder, Location loc, const Position &position,
                    int64_t length) const;
  /// Long rows of a table are read as fast as it is written. A load from where
  /// in its page a line was just written waits until all stores are done, so
  /// that rows begin where the memory of few tables does.
  bool isAtPlaceOfPage() const {
    return use == TableUse::Table && length >= kLongRow;
  }
  /// What is before the first.
  int64_t getLead() const {
    return isAtPlaceOfPage() ? kLeadBytes * 8 / products.getIntOrFloatBitWidth()
                             : 0;
  }
  int64_t getBlock() const;
  /// From one place of constants to the next.
  int64_t getStride(int64_t numParts) const {
    return llvm::divideCeil(length, block) * block * numParts;
  }
  struct Place;
  Place getPlace(OpBuilder &builder, Location loc, const Level &level,
                 Value axis) const;
  Value loadPart(OpBuilder &builder, Location loc, const Level &level,
                 Value row, int64_t part, Value first, int64_t lanes) const;
  SmallVector<Value> loadLevel(OpBuilder &builder, Location loc,
                               const Level &level, const Position &position,
                               Value first, int64_t lanes) const;
  CosSin round(OpBuilder &builder, Location loc, const CosSin &element) const;
  Value orStill(OpBuilder &builder, Location loc, Value words,
                Value first) const;

  /// From here on constants are read faster as rows, whatever they meet.
  static constexpr int64_t kLongRow = 512;
  static constexpr int64_t kPageBytes = 4096, kLeadBytes = 640;

  TableUse use;
  bool runs;
  Level stepLevel, turnLevel;
  ExactPhase phases;
  int64_t length, numAxes;
  /// Of the elements, and of the products.
  Type type, products;
  /// Pairs whose parts lie side by side, a multiple of all vectors. Short rows
  /// of f64 would be read as fast as a table is written: where they are at the
  /// same place of a page, each load waits for a store.
  int64_t block;
  /// The constants of a step: cos and sin; for a rotation of more than 16 bits
  /// also what f32 lost.
  int64_t numParts;
  /// Sums below are not precise enough; 0 for a rotation.
  double limit;
  /// Name of a global: all bits of a magnitude for the pairs whose frequency is
  /// 0, if there are any.
  std::string stillPairs;
};

} // namespace mlir::posenc

#endif // POSENC_NUMERICS_ANGLEADDITION_H

//===- ExactPhase.h - cos and sin of a phase --------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_NUMERICS_EXACTPHASE_H
#define POSENC_NUMERICS_EXACTPHASE_H

#include "posenc/IR/Posenc.h"
#include "posenc/Numerics/ExactSincos.h"
#include "posenc/Numerics/FloatPhase.h"

namespace mlir::posenc {

/// The accuracy of the f64 cos and sin of a phase: a relative error
/// (`ExactSincos::emit`), or an absolute one (`ExactSincos::emitForRotation`),
/// for which the upper half of the phase suffices.
enum class PhasePrecision { Relative, Absolute };

/// Determines the angles of an operation.
struct Angles {
  FrequenciesAttr frequencies;
  /// The position axes; null for one axis.
  AxesAttr axes;
  /// The frequencies as computed by `posenc.turns`, two memrefs; empty if they
  /// are those of the attribute.
  ValueRange turns;
  bool inverse = false;
  /// Whether positions are floats, for which `turns` must be empty.
  bool hasFloatPositions = false;
};

/// Emits cos and sin from constants, or from turns that are computed at run
/// time.
class ExactPhase {
public:
  /// Creates the constants in `op`'s module. `order` lists the pairs in the
  /// order in which they are requested. `emit` adds `ahead` positions to the
  /// position that it gets; this requires constants. Turns are copied to memory
  /// on the stack unless the pairs are requested in their order.
  ExactPhase(OpBuilder &builder, Operation *op, const Angles &angles, Type type,
             PhasePrecision precision, ArrayRef<int64_t> order,
             double ahead = 0.0);

  /// A position, one i64 for each axis, or one f64 if positions are floats or
  /// angles are rounded.
  struct Position {
    SmallVector<Value> axes;
    /// An i1: whether all are small enough for the faster computation of the
    /// phase. Null if there is no faster one.
    Value isShort;
  };
  /// Creates a position of one number for each axis: i32, i64, index or a
  /// float.
  Position createPosition(OpBuilder &builder, Location loc,
                          ValueRange axes) const;
  /// Loads the position at the loop indices `indices`.
  Position loadPosition(OpBuilder &builder, Location loc, Value positions,
                        ValueRange indices) const;

  /// Cos and sin, in f64.
  struct CosSin {
    Value cos, sin;
  };
  /// Emits the cos and sin of `lanes` pairs from index `first` of the order on.
  /// `isShort` selects the faster code for small positions; it requires that
  /// `position.isShort` holds. Those of a float that is not finite, or whose
  /// absolute value is at least 2^63, are NaN.
  CosSin emit(OpBuilder &builder, Location loc, const Position &position,
              Value first, int64_t lanes, bool isShort) const;
  /// Emits the cos and sin of the position itself, without `ahead`, with a
  /// relative error whatever the precision.
  CosSin emitRelative(OpBuilder &builder, Location loc,
                      const Position &position, Value first, int64_t lanes,
                      bool isShort = false) const;

  /// Returns for each of `lanes` pairs the value of its axis; values are
  /// scalars or vectors.
  Value selectAxis(OpBuilder &builder, Location loc, ValueRange values,
                   Value first, int64_t lanes) const;

private:
  void createConstantPhases(OpBuilder &builder, Operation *op,
                            ArrayRef<int64_t> order, double ahead);
  void arrangeTurns(OpBuilder &builder, Operation *op, ValueRange unordered,
                    ArrayRef<int64_t> order);
  /// The two parts of a frequency for `ExactSincos`.
  struct Frequency {
    Value high, low;
  };
  Frequency loadFrequency(OpBuilder &builder, Location loc, Value first,
                          int64_t lanes) const;
  /// The upper 64 bits of a frequency as two signed numbers of 32 bits.
  struct RoundedFrequency {
    Value top, rest;
  };
  RoundedFrequency loadRounded(OpBuilder &builder, Location loc, Value first,
                               int64_t lanes) const;
  CosSin emitOfPhase(OpBuilder &builder, Location loc, Value phase) const;
  Value loadConstants(OpBuilder &builder, Location loc, StringRef symbol,
                      Type type, Value first, int64_t lanes) const;
  /// Whether phases are those of floats: of positions, or of rounded angles.
  bool hasFloats() const {
    return hasFloatPositions || frequencies.roundsAngles();
  }
  Value emitFloat(OpBuilder &builder, Location loc, const Position &position,
                  Value first, int64_t lanes) const;
  Value emitPhase(OpBuilder &builder, Location loc, const Position &position,
                  Value first, int64_t lanes, bool isShort) const;
  CosSin addGuard(OpBuilder &builder, Location loc, const Position &position,
                  Value first, int64_t lanes, CosSin element) const;
  Value addAhead(OpBuilder &builder, Location loc, Value phases,
                 StringRef symbol, Value first) const;
  Value emitPhaseTop(OpBuilder &builder, Location loc, const Position &position,
                     Value first, int64_t lanes, bool isShort) const;
  ExactSincos getSincos() const;

  FrequenciesAttr frequencies;
  AxesAttr axes;
  bool inverse, hasFloatPositions;
  Type type;
  PhasePrecision precision;
  int64_t length;
  /// Both parts of the frequencies in the requested order; null if they are
  /// constants.
  Value turnsHigh, turnsLow;
  /// Names of globals: the frequencies of f32, if angles are rounded; the two
  /// parts of a frequency for `ExactSincos`; its whole turns, for floats; its
  /// upper 64 bits as two signed numbers; the axis of each pair; the phase of
  /// `ahead` positions, and its upper half.
  std::string rounded, high, low, whole, top, rest, axisOfPair, aheads,
      aheadTops;
};

} // namespace mlir::posenc

#endif // POSENC_NUMERICS_EXACTPHASE_H

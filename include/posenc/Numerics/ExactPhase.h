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

namespace mlir::posenc {

/// How near the cos and sin of a phase are, in f64: each to its own last places
/// (`ExactSincos::emit`), or against 1 (`ExactSincos::emitForRotation`), for
/// which the upper half of the phase will do.
enum class PhasePrecision { Relative, Absolute };

/// The constants of a frequencies attribute, and the cos and sin from them.
class ExactPhase {
public:
  /// Puts the constants in front of `op`'s function, in its module. `order` has
  /// the pairs in the order in which they are asked for. `emit` is for phases
  /// that are `ahead` positions further than the position it gets.
  ExactPhase(OpBuilder &builder, Operation *op, FrequenciesAttr frequencies,
             AxesAttr axes, bool inverse, Type type, PhasePrecision precision,
             ArrayRef<int64_t> order, double ahead = 0.0);

  /// A position, or one for each axis, as i64.
  struct Position {
    SmallVector<Value> axes;
    /// Whether all are small enough for the short way to the phase.
    Value isShort;
  };
  /// The position of these numbers, one for each axis: i32, i64 or indices.
  Position createPosition(OpBuilder &builder, Location loc,
                          ValueRange axes) const;
  /// The position at loop indices `indices`.
  Position loadPosition(OpBuilder &builder, Location loc, Value positions,
                        ValueRange indices) const;

  /// In f64.
  struct CosSin {
    Value cos, sin;
  };
  /// Of `lanes` pairs from number `first` of the order on. `isShort` takes the
  /// short way, which is right where the position says so.
  CosSin emit(OpBuilder &builder, Location loc, const Position &position,
              Value first, int64_t lanes, bool isShort) const;
  /// Of the position itself, to the last places, whatever the precision else.
  CosSin emitRelative(OpBuilder &builder, Location loc,
                      const Position &position, Value first, int64_t lanes,
                      bool isShort = false) const;

  /// For each of `lanes` pairs the value of its axis, of scalars or of vectors.
  Value selectAxis(OpBuilder &builder, Location loc, ValueRange values,
                   Value first, int64_t lanes) const;

private:
  CosSin emitOfPhase(OpBuilder &builder, Location loc, Value phase) const;
  Value loadConstants(OpBuilder &builder, Location loc, StringRef symbol,
                      Type type, Value first, int64_t lanes) const;
  Value emitPhase(OpBuilder &builder, Location loc, const Position &position,
                  Value first, int64_t lanes, bool isShort) const;
  Value addAhead(OpBuilder &builder, Location loc, Value phases,
                 StringRef symbol, Value first) const;
  Value emitPhaseTop(OpBuilder &builder, Location loc, const Position &position,
                     Value first, int64_t lanes, bool isShort) const;
  ExactSincos getSincos() const;

  FrequenciesAttr frequencies;
  AxesAttr axes;
  bool inverse;
  Type type;
  PhasePrecision precision;
  int64_t length;
  /// Names of globals: the two parts of a frequency that `ExactSincos` wants;
  /// its upper 64 bits as two signed numbers; the axis of each pair; what to
  /// add to a phase to be ahead, and its upper half.
  std::string high, low, top, rest, axisOfPair, aheads, aheadTops;
};

} // namespace mlir::posenc

#endif // POSENC_NUMERICS_EXACTPHASE_H

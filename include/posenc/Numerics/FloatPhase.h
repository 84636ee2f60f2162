//===- FloatPhase.h - exact phase of a float --------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The phase of a float p is as exact as that of an integer (ExactSincos.h). The
// bits of |p| are an integer I below 2^63 and a fraction Q of 64 bits; with the
// frequency in turns, W + H*2^-64 + L*2^-96 for an integer W, the phase in
// units of 2^-64 of a turn is
//
//   I*H + (I*L)*2^-32 + Q*W + (Q*H)*2^-64 + (Q*L)*2^-96   modulo 2^64,
//
// rounded once, with the sign of p. The whole turns W count only for floats:
// their product with an integer is a whole number of turns. Bits of |p| below
// 2^-64 are dropped.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_NUMERICS_FLOATPHASE_H
#define POSENC_NUMERICS_FLOATPHASE_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/TypeUtilities.h"

namespace mlir::posenc {

/// Whether positions, a scalar or a shaped value, are floats.
inline bool areFloats(Value positions) {
  return isa<FloatType>(getElementTypeOrSelf(positions.getType()));
}

/// A frequency in turns per position, as i64 or vectors of i64.
struct FloatFrequency {
  /// The whole turns; null if there are none.
  Value whole;
  /// The 64 bits after the point, and the 32 bits after these, zero-extended.
  Value high, low;
};

/// Emits the phase of `position`, an f64 or a vector of f64, as i64 in units of
/// 2^-64 of a turn; the error is at most one unit and 2^-64 of the frequency.
/// Positions of absolute value 2^63 or more, infinities and NaN give any phase.
Value emitPhaseOfFloat(OpBuilder &builder, Location loc, Value position,
                       const FloatFrequency &frequency);

/// Converts a position to f64. `rounds` rounds it to f32.
Value emitFloatPosition(OpBuilder &builder, Location loc, Value position,
                        bool rounds);

/// Returns the f32 product of a position that is a number of f32, given as f64,
/// and a frequency of f32, as f64.
Value emitRoundedAngle(OpBuilder &builder, Location loc, Value position,
                       Value frequency);

/// Emits the phase of an angle in radians.
Value emitPhaseOfAngle(OpBuilder &builder, Location loc, Value angle);

/// Returns zero for a position whose phase is exact, else NaN: the cos and sin
/// of a position have this added.
Value emitFloatGuard(OpBuilder &builder, Location loc, Value position);

} // namespace mlir::posenc

#endif // POSENC_NUMERICS_FLOATPHASE_H

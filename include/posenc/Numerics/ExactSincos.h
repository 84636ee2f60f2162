//===- ExactSincos.h - cos and sin of an exact phase ------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one definition of cos(p*f) and sin(p*f) for all targets. It consists of
// integer and float additions, products and fused multiply-adds only, so tables
// have the same bits on all targets. It has neither library calls nor branches,
// and the same accuracy at every position.
//
// Exact phase (range reduction in fixed point). `F = round(f/(2*pi) * 2^96)`, a
// fraction of a turn per position with 96 bits, is a constant of the kernel: `F
// = H*2^32 + L`. With `p = ph*2^32 + pl` (`pl` unsigned) the phase in turns
// times 2^64 is `p*H + ph*L + ((pl*L) >> 32)` modulo 2^64. It is exact for
// every 64-bit position: two bits select the quadrant and 62 bits are the
// angle, no matter how many turns the product has.
//
// Elements. Those of f32 and narrower types are computed in f64 with an error
// of 2^-46 and rounded; elements of f64 are within 2 units in the last place.
//
// Rotations. A rotation multiplies and adds cos and sin, so their absolute
// error counts. The upper 32 bits of the phase, in units of 2^-32 of a turn,
// are 20 times finer than f32.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_NUMERICS_EXACTSINCOS_H
#define POSENC_NUMERICS_EXACTSINCOS_H

#include "posenc/Support/BigFloat.h"

#include "mlir/IR/Builders.h"

namespace mlir::posenc {

/// Emits the cos and sin of phases, on scalars or on vectors.
class ExactSincos {
public:
  /// `factor` multiplies both results; it is folded into the constants, so
  /// that it costs no rounding. `inverse` negates the sine.
  ExactSincos(const ::posenc::BigFloat &factor, bool inverse);

  struct Result {
    Value cos, sin;
  };

  /// Emit the two parts of a phase, whose sum is the phase of any 64-bit
  /// position; the second part is zero for positions from 0 to 2^32-1. All
  /// values are i64 or vectors of i64 of one shape: positions and the two parts
  /// of their frequencies (`low` zero-extended).
  static Value emitPhaseOfLow(OpBuilder &builder, Location loc, Value position,
                              Value high, Value low);
  static Value emitPhaseOfHigh(OpBuilder &builder, Location loc, Value position,
                               Value high, Value low);

  /// Emits cos and sin in f64, for elements of type `type`: within 2 units in
  /// the last place for f64; for other types with a relative error of 2^-46,
  /// next to zero an absolute error of 2^-61.
  Result emit(OpBuilder &builder, Location loc, Value phase, Type type) const;

  /// Rounds cos or sin elements to `type`. 16-bit types are rounded from f32.
  static Value emitRounding(OpBuilder &builder, Location loc, Value elements,
                            Type type);

  /// Emits cos and sin of a rotation in f64, from the upper 32 bits of the
  /// phase as i32 or a vector of i32; the largest error is 2^-29 times the
  /// factor.
  Result emitForRotation(OpBuilder &builder, Location loc,
                         Value phaseTop) const;

private:
  double factorHigh, factorLow;
  bool inverse;
};

} // namespace mlir::posenc

#endif // POSENC_NUMERICS_EXACTSINCOS_H

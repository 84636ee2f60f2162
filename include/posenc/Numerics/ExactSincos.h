//===- ExactSincos.h - cos and sin of an exact phase ------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One definition of cos(p*f) and sin(p*f) for all targets, from integer and
// float add, multiply and fma only, so that tables have the same bits wherever
// there is a fused multiply-add. No library function, no branch, no range in
// which it is less exact.
//
// The phase. `F = round(f/(2*pi) * 2^96)`, a fraction of a turn per position
// with 96 bits, is a constant of the kernel: `F = H*2^32 + L`. With
// `p = ph*2^32 + pl` (`pl` unsigned) the phase in turns times 2^64 is
// `p*H + ph*L + ((pl*L) >> 32)` modulo 2^64, right for every 64-bit position:
// the two bits that matter for the quadrant, and 62 for the angle, survive
// however often the product has gone round.
//
// The elements. What becomes f32 or less is f64 within 2^-46 here, and rounded;
// tables of f64 are within 2 units in the last place.
//
// A rotation multiplies and adds the two, so that what counts is the error
// against 1: the upper 32 bits of the phase, 2^-32 of a turn, are 20 times
// finer than f32.
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

  /// The phase of any 64-bit position is the sum of both parts; the second is
  /// zero from 0 to 2^32-1. All values are i64 or equal vectors of i64:
  /// positions and the two parts of their frequencies (`low` zero-extended).
  static Value emitPhaseOfLow(OpBuilder &builder, Location loc, Value position,
                              Value high, Value low);
  static Value emitPhaseOfHigh(OpBuilder &builder, Location loc, Value position,
                               Value high, Value low);

  /// The cos and sin in f64, for elements of type `type`: for f64 within 2
  /// units in the last place, for others within 2^-46 of what they are; next to
  /// zero within 2^-61.
  Result emit(OpBuilder &builder, Location loc, Value phase, Type type) const;

  /// Them in that type. 16 bits are rounded from f32.
  static Value emitRounding(OpBuilder &builder, Location loc, Value elements,
                            Type type);

  /// For a rotation, in f64, from the upper 32 bits of the phase, as i32 or a
  /// vector of it; largest error 2^-29 times the factor.
  Result emitForRotation(OpBuilder &builder, Location loc,
                         Value phaseTop) const;

private:
  double factorHigh, factorLow;
  bool inverse;
};

} // namespace mlir::posenc

#endif // POSENC_NUMERICS_EXACTSINCOS_H

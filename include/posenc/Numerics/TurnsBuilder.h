//===- TurnsBuilder.h - frequencies computed at run time --------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A frequency that is a constant is rounded to 96 bits of a turn by MPFR. One
// that is known only at run time is computed in double-double arithmetic, which
// has 106 bits: sums of f64 products whose rounding errors are exact values of
// their own. Like all of MathBuilder, this consists of exactly rounded
// operations only, so the bits are the same on all targets.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_NUMERICS_TURNSBUILDER_H
#define POSENC_NUMERICS_TURNSBUILDER_H

#include "posenc/Numerics/MathBuilder.h"
#include "posenc/Support/BigFloat.h"

namespace mlir::posenc {

/// A number of at least 106 bits as two doubles.
struct TwoDoubles {
  double hi, lo;
  static TwoDoubles round(const ::posenc::BigFloat &value);
};

/// Emits frequencies in turns, on f64 scalars or vectors.
class TurnsBuilder : public MathBuilder {
public:
  TurnsBuilder(OpBuilder &builder, Location loc, Value like)
      : MathBuilder(builder, loc, like, /*hasAVX512=*/false) {}

  /// A fraction of a turn, `(high * 2^32 + low) / 2^96` with `0 <= low < 2^32`;
  /// both are i64.
  struct Turns {
    Value high, low;
  };

  /// Converts an f64 frequency in radians. The result is that of the exact
  /// number, within one of its last bit. Numbers of 2^60 or more, infinities
  /// and NaNs become 0.
  Turns fromRadians(Value radians);

  /// Returns `ln(max(1, 1 + (length - maxPosition) * factor / maxPosition))` of
  /// an i64 length, in double-double precision. This is the logarithm of the
  /// scale in dynamic NTK scaling.
  TwoFloats logOfDynamicScale(Value length, double factor, double maxPosition);

  /// Returns the turns `unscaled * exp(-log * exponent)`, within one of their
  /// last bit for a `log` from 0 to 64 and an `exponent` from 0 to 1.
  Turns scale(TwoFloats unscaled, TwoFloats log, TwoFloats exponent);

private:
  TwoFloats constant2(TwoDoubles value) {
    return {f64(value.hi), f64(value.lo)};
  }
  TwoFloats sum(TwoFloats a, TwoFloats b);
  TwoFloats expTwoFloats(TwoFloats x);
  Turns toTurns(ArrayRef<Value> terms);
};

} // namespace mlir::posenc

#endif // POSENC_NUMERICS_TURNSBUILDER_H

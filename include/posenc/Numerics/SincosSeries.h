//===- SincosSeries.h - cos and sin of reduced angles -----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_NUMERICS_SINCOSSERIES_H
#define POSENC_NUMERICS_SINCOSSERIES_H

#include "posenc/Numerics/ElementwiseBuilder.h"

namespace mlir::posenc {

/// cos and sin of one angle, in f64.
struct CosSin {
  Value cos, sin;
};

/// Evaluates a polynomial of `z` in f64, highest power first.
Value emitSeries(ElementwiseBuilder &b, Value z, ArrayRef<double> coefficients);

/// Emits `bits * unit - minus` exactly, for integers `bits` below 2^32 and a
/// power of two `unit`. This needs no conversion from 64-bit integers, which
/// AVX2 does not have.
Value emitFixedPoint(ElementwiseBuilder &b, Value bits, double unit,
                     double minus);

/// Converts the angle `hi + lo` from quarter turns to radians, again as an
/// unevaluated sum `hi + lo`.
std::pair<Value, Value> emitQuarterTurnsToRadians(ElementwiseBuilder &b,
                                                  Value hi, Value lo);

/// Emits cos and sin of the angle `hi + lo`, between -pi/4 and pi/4, within one
/// unit in the last place of f64.
CosSin emitPreciseCosSin(ElementwiseBuilder &b, Value hi, Value lo);

/// Rotates an angle by the number of quarter turns in the upper two bits of
/// `phase`: bit 62 swaps cos and sin, bit 63 negates the sine, and exactly one
/// set bit negates the cosine. `inverse` negates the sine of the result.
CosSin emitQuadrant(ElementwiseBuilder &b, Value phase, CosSin values,
                    bool inverse = false);

} // namespace mlir::posenc

#endif // POSENC_NUMERICS_SINCOSSERIES_H

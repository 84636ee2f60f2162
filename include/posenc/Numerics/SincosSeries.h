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

/// `bits * unit - minus` exactly, for integers below 2^32 and a power of two.
/// This needs no conversion from 64-bit integers, which AVX2 does not have.
Value emitFixedPoint(ElementwiseBuilder &b, Value bits, double unit,
                     double minus);

/// The angle `hi + lo` in quarter turns as `hi + lo` in radians.
std::pair<Value, Value> emitQuarterTurnsToRadians(ElementwiseBuilder &b,
                                                  Value hi, Value lo);

/// Of the angle `hi + lo` between -pi/4 and pi/4, within a unit in the last
/// place of f64.
CosSin emitPreciseCosSin(ElementwiseBuilder &b, Value hi, Value lo);

/// Turns an angle by the multiple of a quarter turn in the upper two bits of
/// `phase`: bit 62 swaps cos and sin, bit 63 negates the sine, and either alone
/// the cosine. `inverse` negates the sine.
CosSin emitQuadrant(ElementwiseBuilder &b, Value phase, CosSin values,
                    bool inverse = false);

} // namespace mlir::posenc

#endif // POSENC_NUMERICS_SINCOSSERIES_H

//===- SincosSeries.cpp - cos and sin of reduced angles ---------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Numerics/SincosSeries.h"

#include "llvm/ADT/bit.h"

#include <limits>

using namespace mlir;
using namespace mlir::posenc;

Value mlir::posenc::emitSeries(ElementwiseBuilder &b, Value z,
                               ArrayRef<double> coefficients) {
  Value sum = b.f64(coefficients.front());
  for (double coefficient : coefficients.drop_front())
    sum = b.fma(sum, z, b.f64(coefficient));
  return sum;
}

Value mlir::posenc::emitFixedPoint(ElementwiseBuilder &b, Value bits,
                                   double unit, double minus) {
  double bias = unit * 0x1p52;
  Value raw = b.ori(bits, b.i64(llvm::bit_cast<int64_t>(bias)));
  return b.sub(b.cast<arith::BitcastOp>(b.builder.getF64Type(), raw),
               b.f64(bias + minus));
}

std::pair<Value, Value>
mlir::posenc::emitQuarterTurnsToRadians(ElementwiseBuilder &b, Value hi,
                                        Value lo) {
  Value halfPi = b.f64(0x1.921fb54442d18p+0);
  Value halfPiRest = b.f64(0x1.1a62633145c07p-54);
  Value x = b.mul(hi, halfPi);
  Value rest = b.fma(hi, halfPi, b.neg(x));
  rest = b.fma(hi, halfPiRest, rest);
  return {x, b.fma(lo, halfPi, rest)};
}

CosSin mlir::posenc::emitPreciseCosSin(ElementwiseBuilder &b, Value hi,
                                       Value lo) {
  // Taylor's series: at pi/4 the first term left out is below 2^-58.
  Value z = b.mul(hi, hi);
  Value sinTail =
      emitSeries(b, z,
                 {1.0 / 355687428096000.0, -1.0 / 1307674368000.0,
                  1.0 / 6227020800.0, -1.0 / 39916800.0, 1.0 / 362880.0,
                  -1.0 / 5040.0, 1.0 / 120.0, -1.0 / 6.0});
  Value cosTail = emitSeries(b, z,
                             {1.0 / 20922789888000.0, -1.0 / 87178291200.0,
                              1.0 / 479001600.0, -1.0 / 3628800.0,
                              1.0 / 40320.0, -1.0 / 720.0, 1.0 / 24.0});
  Value half = b.mul(z, b.f64(0.5));
  Value one = b.f64(1.0);
  Value head = b.sub(one, half);
  Value sin = b.add(hi, b.fma(b.mul(hi, z), sinTail, b.mul(lo, head)));
  Value lost = b.sub(b.sub(one, head), half);
  Value cos = b.add(
      head, b.add(b.fma(b.mul(z, z), cosTail, lost), b.neg(b.mul(hi, lo))));
  return {cos, sin};
}

CosSin mlir::posenc::emitQuadrant(ElementwiseBuilder &b, Value phase,
                                  CosSin values, bool inverse) {
  Type integer = b.builder.getI64Type(), real = b.builder.getF64Type();
  Value signBit = b.i64(std::numeric_limits<int64_t>::min());
  Value second = b.shl(phase, b.i64(1));
  Value odd = arith::CmpIOp::create(b.builder, b.loc, arith::CmpIPredicate::slt,
                                    second, b.i64(0));
  auto withSign = [&](Value value, Value sign) {
    Value raw = b.cast<arith::BitcastOp>(integer, value);
    raw = b.xori(raw, b.andi(sign, signBit));
    return b.cast<arith::BitcastOp>(real, raw);
  };
  auto [cos, sin] = values;
  Value sinSign = inverse ? b.xori(phase, signBit) : phase;
  return {withSign(b.select(odd, sin, cos), b.xori(phase, second)),
          withSign(b.select(odd, cos, sin), sinSign)};
}

//===- Scalars.h - short names for scalar arithmetic ------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_IMPORT_ONNX_SCALARS_H
#define POSENC_LIB_IMPORT_ONNX_SCALARS_H

#include "Ops.h"

#include <cmath>

namespace mlir::posenc::onnx {

/// Emits arithmetic on scalars of one float type; add, sub, mul, max, min and
/// select also work on integers.
class Scalars {
public:
  Scalars() = default;
  Scalars(OpBuilder &b, Location loc, Type type) { set(b, loc, type); }
  void set(OpBuilder &builder, Location where, Type elementType) {
    b = &builder;
    loc = where;
    type = elementType;
  }

  Value get(double value) const { return createScalar(*b, *loc, type, value); }
  Value getInfinity() const { return get(INFINITY); }

  Value add(Value x, Value y) const {
    return pick<arith::AddFOp, arith::AddIOp>(x, y);
  }
  Value sub(Value x, Value y) const {
    return pick<arith::SubFOp, arith::SubIOp>(x, y);
  }
  Value mul(Value x, Value y) const {
    return pick<arith::MulFOp, arith::MulIOp>(x, y);
  }
  /// NaN if an operand is, as in NumPy.
  Value max(Value x, Value y) const {
    return pick<arith::MaximumFOp, arith::MaxSIOp>(x, y);
  }
  Value min(Value x, Value y) const {
    return pick<arith::MinimumFOp, arith::MinSIOp>(x, y);
  }
  Value div(Value x, Value y) const {
    return arith::DivFOp::create(*b, *loc, x, y);
  }
  Value neg(Value x) const { return arith::NegFOp::create(*b, *loc, x); }
  Value exp(Value x) const { return math::ExpOp::create(*b, *loc, x); }
  Value less(Value x, Value y) const {
    return arith::CmpFOp::create(*b, *loc, arith::CmpFPredicate::OLT, x, y);
  }
  Value equal(Value x, Value y) const {
    return arith::CmpFOp::create(*b, *loc, arith::CmpFPredicate::OEQ, x, y);
  }
  Value select(Value condition, Value x, Value y) const {
    return arith::SelectOp::create(*b, *loc, condition, x, y);
  }
  Value sigmoid(Value x) const { return div(get(1), add(get(1), exp(neg(x)))); }
  Value gelu(Value x, bool isTanh) const {
    if (!isTanh) {
      Value erf = math::ErfOp::create(*b, *loc, mul(x, get(M_SQRT1_2)));
      return mul(mul(get(0.5), x), add(get(1), erf));
    }
    Value cube = mul(mul(x, x), x);
    Value inner =
        mul(get(std::sqrt(2 / M_PI)), add(x, mul(get(0.044715), cube)));
    Value tanh = math::TanhOp::create(*b, *loc, inner);
    return mul(mul(get(0.5), x), add(get(1), tanh));
  }

private:
  template <typename FloatOp, typename IntOp>
  Value pick(Value x, Value y) const {
    if (isa<FloatType>(x.getType()))
      return FloatOp::create(*b, *loc, x, y);
    return IntOp::create(*b, *loc, x, y);
  }

  OpBuilder *b = nullptr;
  std::optional<Location> loc;
  Type type;
};

} // namespace mlir::posenc::onnx

#endif // POSENC_LIB_IMPORT_ONNX_SCALARS_H

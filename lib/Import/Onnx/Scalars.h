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

#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <cmath>

namespace mlir::posenc::onnx {

/// Emits arithmetic on scalars of one float type; add, sub, mul, max, min and
/// select also work on integers.
class Scalars : public ImplicitLocOpBuilder {
public:
  Scalars(const ImplicitLocOpBuilder &b, Type type)
      : ImplicitLocOpBuilder(b), type(type) {}

  Value get(double value) { return createScalar(*this, type, value); }
  /// Converts a scalar to the type as the operator Cast does.
  Value convert(Value x) { return convert(x, type); }
  Value convert(Value x, Type to) { return convertScalar(*this, x, to); }

  Value add(Value x, Value y) {
    return createByType<arith::AddFOp, arith::AddIOp>(*this, x, y);
  }
  Value sub(Value x, Value y) {
    return createByType<arith::SubFOp, arith::SubIOp>(*this, x, y);
  }
  Value mul(Value x, Value y) {
    return createByType<arith::MulFOp, arith::MulIOp>(*this, x, y);
  }
  /// NaN if an operand is, as in NumPy.
  Value max(Value x, Value y) {
    return createByType<arith::MaximumFOp, arith::MaxSIOp>(*this, x, y);
  }
  Value min(Value x, Value y) {
    return createByType<arith::MinimumFOp, arith::MinSIOp>(*this, x, y);
  }
  /// x * y + z, rounded once.
  Value fma(Value x, Value y, Value z) {
    return math::FmaOp::create(*this, x, y, z);
  }
  Value div(Value x, Value y) { return arith::DivFOp::create(*this, x, y); }
  Value neg(Value x) { return arith::NegFOp::create(*this, x); }
  Value exp(Value x) { return math::ExpOp::create(*this, x); }
  Value less(Value x, Value y) {
    return arith::CmpFOp::create(*this, arith::CmpFPredicate::OLT, x, y);
  }
  Value equal(Value x, Value y) {
    return arith::CmpFOp::create(*this, arith::CmpFPredicate::OEQ, x, y);
  }
  Value select(Value condition, Value x, Value y) {
    return arith::SelectOp::create(*this, condition, x, y);
  }
  Value sigmoid(Value x) { return div(get(1), add(get(1), exp(neg(x)))); }
  Value gelu(Value x, bool isTanh) {
    if (!isTanh) {
      Value erf = math::ErfOp::create(*this, mul(x, get(M_SQRT1_2)));
      return mul(mul(get(0.5), x), add(get(1), erf));
    }
    Value cube = mul(mul(x, x), x);
    Value inner =
        mul(get(std::sqrt(2 / M_PI)), add(x, mul(get(0.044715), cube)));
    Value tanh = math::TanhOp::create(*this, inner);
    return mul(mul(get(0.5), x), add(get(1), tanh));
  }

private:
  Type type;
};

} // namespace mlir::posenc::onnx

#endif // POSENC_LIB_IMPORT_ONNX_SCALARS_H

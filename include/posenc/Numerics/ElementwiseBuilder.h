//===- ElementwiseBuilder.h - arithmetic on scalars or vectors --*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_NUMERICS_ELEMENTWISEBUILDER_H
#define POSENC_NUMERICS_ELEMENTWISEBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"

namespace mlir::posenc {

/// Emits arithmetic in the shape of its operands: a scalar, or a vector.
class ElementwiseBuilder {
public:
  ElementwiseBuilder(OpBuilder &builder, Location loc, Type like)
      : builder(builder), loc(loc), shape(dyn_cast<ShapedType>(like)) {}
  ElementwiseBuilder(OpBuilder &builder, Location loc, Value like)
      : ElementwiseBuilder(builder, loc, like.getType()) {}

  Type like(Type element) {
    return shape ? Type(shape.clone(element)) : element;
  }
  Value constant(TypedAttr scalar) {
    if (!shape)
      return arith::ConstantOp::create(builder, loc, scalar);
    return arith::ConstantOp::create(
        builder, loc,
        DenseElementsAttr::get(shape.clone(scalar.getType()),
                               Attribute(scalar)));
  }
  Value i64(int64_t value) {
    return constant(builder.getI64IntegerAttr(value));
  }
  Value i16(uint16_t value) {
    return constant(builder.getI16IntegerAttr(static_cast<int16_t>(value)));
  }
  Value i32(uint32_t value) {
    return constant(builder.getI32IntegerAttr(static_cast<int32_t>(value)));
  }
  Value f32(double value) {
    return constant(builder.getF32FloatAttr(static_cast<float>(value)));
  }
  Value f64(double value) { return constant(builder.getF64FloatAttr(value)); }

  Value fma(Value a, Value b, Value c) {
    return math::FmaOp::create(builder, loc, a, b, c);
  }
  Value compare(arith::CmpFPredicate predicate, Value a, Value b) {
    return arith::CmpFOp::create(builder, loc, predicate, a, b);
  }
  Value compare(arith::CmpIPredicate predicate, Value a, Value b) {
    return arith::CmpIOp::create(builder, loc, predicate, a, b);
  }
  Value select(Value condition, Value a, Value b) {
    return arith::SelectOp::create(builder, loc, condition, a, b);
  }
  template <typename Op> Value binary(Value a, Value b) {
    return Op::create(builder, loc, a, b);
  }
  template <typename Op> Value cast(Type element, Value a) {
    return Op::create(builder, loc, like(element), a);
  }
  Value add(Value a, Value b) { return binary<arith::AddFOp>(a, b); }
  Value sub(Value a, Value b) { return binary<arith::SubFOp>(a, b); }
  Value mul(Value a, Value b) { return binary<arith::MulFOp>(a, b); }
  Value div(Value a, Value b) { return binary<arith::DivFOp>(a, b); }
  Value neg(Value a) { return arith::NegFOp::create(builder, loc, a); }
  Value addi(Value a, Value b) { return binary<arith::AddIOp>(a, b); }
  Value subi(Value a, Value b) { return binary<arith::SubIOp>(a, b); }
  Value muli(Value a, Value b) { return binary<arith::MulIOp>(a, b); }
  Value andi(Value a, Value b) { return binary<arith::AndIOp>(a, b); }
  Value ori(Value a, Value b) { return binary<arith::OrIOp>(a, b); }
  Value xori(Value a, Value b) { return binary<arith::XOrIOp>(a, b); }
  Value shl(Value a, Value b) { return binary<arith::ShLIOp>(a, b); }
  Value shru(Value a, Value b) { return binary<arith::ShRUIOp>(a, b); }
  Value shrs(Value a, Value b) { return binary<arith::ShRSIOp>(a, b); }

  OpBuilder &builder;
  Location loc;

private:
  ShapedType shape;
};

} // namespace mlir::posenc

#endif // POSENC_NUMERICS_ELEMENTWISEBUILDER_H

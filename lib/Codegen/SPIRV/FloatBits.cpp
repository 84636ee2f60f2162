//===- FloatBits.cpp - device-independent float arithmetic ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FloatBits.h"

#include "posenc/Numerics/BF16.h"

#include "mlir/Dialect/SPIRV/IR/SPIRVOps.h"

using namespace mlir;
using namespace mlir::posenc;

namespace {
/// A rounded sum or product, and its rounding error.
struct Exact {
  Value rounded, lost;
};
} // namespace

/// Emits Knuth's TwoSum, which is exact for any two numbers.
static Exact emitSum(ElementwiseBuilder &b, Value x, Value y) {
  Value sum = b.add(x, y);
  Value ofY = b.sub(sum, x);
  Value ofX = b.sub(sum, ofY);
  return {sum, b.add(b.sub(x, ofX), b.sub(y, ofY))};
}

/// Emits Dekker's product with Veltkamp's split.
static Exact emitProduct(ElementwiseBuilder &b, Value x, Value y) {
  auto split = [&](Value value) {
    Value scaled = b.mul(value, b.f64(0x1p27 + 1.0));
    Value high = b.sub(scaled, b.sub(scaled, value));
    return std::pair(high, b.sub(value, high));
  };
  Value product = b.mul(x, y);
  auto [xh, xl] = split(x);
  auto [yh, yl] = split(y);
  Value lost = b.sub(b.mul(xh, yh), product);
  lost = b.add(lost, b.mul(xh, yl));
  lost = b.add(lost, b.mul(xl, yh));
  return {product, b.add(lost, b.mul(xl, yl))};
}

/// Emits x + y in f64, rounded to odd: if bits are lost, the last bit is set. A
/// later rounding, to fewer bits or of a sum, then gives the result of a single
/// rounding.
static Value emitSumToOdd(ElementwiseBuilder &b, Value x, Value y) {
  Type word = b.builder.getI64Type();
  auto [sum, lost] = emitSum(b, x, y);
  Value bits = b.cast<arith::BitcastOp>(word, sum);
  Value lostBits = b.cast<arith::BitcastOp>(word, lost);
  Value zero = b.f64(0.0);
  Value isInexact = arith::CmpFOp::create(
      b.builder, b.loc, arith::CmpFPredicate::ONE, lost, zero);
  Value isEven =
      arith::CmpIOp::create(b.builder, b.loc, arith::CmpIPredicate::eq,
                            b.andi(bits, b.i64(1)), b.i64(0));
  // Rounds to the neighbour on the side of the error: up in magnitude if both
  // have the same sign.
  Value isAway =
      arith::CmpIOp::create(b.builder, b.loc, arith::CmpIPredicate::sge,
                            b.xori(bits, lostBits), b.i64(0));
  Value step = b.select(isAway, b.i64(1), b.i64(-1));
  Value change = arith::AndIOp::create(b.builder, b.loc, isInexact, isEven);
  Value odd = b.addi(bits, b.select(change, step, b.i64(0)));
  return b.cast<arith::BitcastOp>(b.builder.getF64Type(), odd);
}

static Value emitInline(OpBuilder &builder, Location loc, Value x, Value y,
                        Value z) {
  ElementwiseBuilder b(builder, loc, x);
  if (x.getType().isF32()) {
    // The product of two f32 is exact in f64.
    Type f64 = builder.getF64Type();
    auto widen = [&](Value value) { return b.cast<arith::ExtFOp>(f64, value); };
    Value sum = emitSumToOdd(b, b.mul(widen(x), widen(y)), widen(z));
    return b.cast<arith::TruncFOp>(x.getType(), sum);
  }
  // The algorithm of Boldo and Melquiond. All steps are exact except the last
  // sum, whose smaller operand is rounded to odd.
  Exact product = emitProduct(b, x, y);
  Exact low = emitSum(b, z, product.lost);
  Exact high = emitSum(b, product.rounded, low.rounded);
  return b.add(high.rounded, emitSumToOdd(b, low.lost, high.lost));
}

/// Returns the multiply-add function of the module around the insertion point,
/// which is created if there is none.
static spirv::FuncOp getFused(OpBuilder &builder, Type type) {
  Operation *kernels = builder.getBlock()->getParentOp();
  while (!kernels->hasTrait<OpTrait::SymbolTable>())
    kernels = kernels->getParentOp();
  // The name is not a C identifier, so no function of the input has it.
  std::string name = type.isF32() ? "fma.f32" : "fma.f64";
  if (auto known = SymbolTable::lookupSymbolIn(kernels, name))
    return cast<spirv::FuncOp>(known);
  OpBuilder::InsertionGuard guard(builder);
  Location loc = kernels->getLoc();
  builder.setInsertionPointToStart(&kernels->getRegion(0).front());
  auto function = spirv::FuncOp::create(
      builder, loc, name, builder.getFunctionType({type, type, type}, type));
  Block *body = function.addEntryBlock();
  builder.setInsertionPointToStart(body);
  Value result = emitInline(builder, loc, body->getArgument(0),
                            body->getArgument(1), body->getArgument(2));
  spirv::ReturnValueOp::create(builder, loc, result);
  return function;
}

Value mlir::posenc::emitFusedMultiplyAdd(OpBuilder &builder, Location loc,
                                         Value a, Value b, Value c) {
  spirv::FuncOp function = getFused(builder, a.getType());
  return spirv::FunctionCallOp::create(builder, loc, a.getType(),
                                       SymbolRefAttr::get(function),
                                       ValueRange{a, b, c})
      .getResult(0);
}

static Value compare(ElementwiseBuilder &b, arith::CmpIPredicate predicate,
                     Value x, Value y) {
  return arith::CmpIOp::create(b.builder, b.loc, predicate, x, y);
}

static Value emitNarrowToF16(ElementwiseBuilder &b, Value bits) {
  using arith::CmpIPredicate;
  Type word = b.builder.getI32Type(), real = b.builder.getF32Type();
  Value magnitude = b.andi(bits, b.i32(0x7fffffff));
  Value sign = b.andi(b.shru(bits, b.i32(16)), b.i32(0x8000));
  // Changes the exponent's bias and rounds: half a unit minus one, plus one if
  // the last kept bit is odd, carries into the kept bits.
  Value odd = b.andi(b.shru(magnitude, b.i32(13)), b.i32(1));
  Value normal = b.addi(b.addi(magnitude, b.i32(0xc8000fff)), odd);
  normal = b.shru(normal, b.i32(13));
  // Below 2^-14, adding 1/2 rounds to a subnormal f16 and leaves its 10
  // fraction bits at the end of the sum.
  Value sum = b.add(b.cast<arith::BitcastOp>(real, magnitude), b.f32(0.5));
  Value small = b.andi(b.cast<arith::BitcastOp>(word, sum), b.i32(0x7fffff));
  Value isNaN = compare(b, CmpIPredicate::ugt, magnitude, b.i32(0x7f800000));
  Value large = b.select(isNaN, b.i32(0x7e00), b.i32(0x7c00));
  Value isSmall = compare(b, CmpIPredicate::ult, magnitude, b.i32(0x38800000));
  Value isLarge = compare(b, CmpIPredicate::uge, magnitude, b.i32(0x47800000));
  Value chosen = b.select(isSmall, small, b.select(isLarge, large, normal));
  return b.ori(chosen, sign);
}

static Value emitNarrowToBF16(ElementwiseBuilder &b, Value bits) {
  // Vulkan drivers may assume that comparisons of floats see no NaNs.
  Value isNaN = compare(b, arith::CmpIPredicate::ugt,
                        b.andi(bits, b.i32(0x7fffffff)), b.i32(0x7f800000));
  return roundToBF16(b, bits, isNaN);
}

Value mlir::posenc::emitNarrow(OpBuilder &builder, Location loc, Value value,
                               Type type) {
  ElementwiseBuilder b(builder, loc, value);
  Value bits = b.cast<arith::BitcastOp>(builder.getI32Type(), value);
  return type.isBF16() ? emitNarrowToBF16(b, bits) : emitNarrowToF16(b, bits);
}

static Value emitWidenF16(ElementwiseBuilder &b, Value bits) {
  using arith::CmpIPredicate;
  Type word = b.builder.getI32Type(), real = b.builder.getF32Type();
  Value sign = b.shl(b.andi(bits, b.i32(0x8000)), b.i32(16));
  Value shifted = b.shl(b.andi(bits, b.i32(0x7fff)), b.i32(13));
  Value normal = b.addi(shifted, b.i32(112u << 23));
  // Infinities and NaNs get the maximum exponent.
  Value large = b.ori(shifted, b.i32(0x7f800000));
  // Subnormal f16: inserts the fraction below the exponent of 2^-14, then
  // subtracts 2^-14.
  Value under =
      b.cast<arith::BitcastOp>(real, b.ori(shifted, b.i32(113u << 23)));
  Value small = b.cast<arith::BitcastOp>(word, b.sub(under, b.f32(0x1p-14)));
  Value isSmall = compare(b, CmpIPredicate::ult, shifted, b.i32(1u << 23));
  Value isLarge = compare(b, CmpIPredicate::uge, shifted, b.i32(31u << 23));
  Value chosen = b.select(isSmall, small, b.select(isLarge, large, normal));
  return b.cast<arith::BitcastOp>(real, b.ori(chosen, sign));
}

Value mlir::posenc::emitWiden(OpBuilder &builder, Location loc, Value bits,
                              Type type) {
  ElementwiseBuilder b(builder, loc, bits);
  if (type.isF16())
    return emitWidenF16(b, bits);
  return b.cast<arith::BitcastOp>(builder.getF32Type(), b.shl(bits, b.i32(16)));
}

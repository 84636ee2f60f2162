//===- BF16Weights.cpp - softmax weights rounded to bf16 ------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Numerics/BF16Weights.h"

#include "posenc/Numerics/BF16.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <cfloat>
#include <limits>

using namespace mlir;
using namespace mlir::posenc;
using arith::CmpFPredicate;

/// Weights start at 2^-30, so that a row's offset stays until a score exceeds
/// the maximum of its first keys by 30.
static constexpr double kBias = 30;
/// Weights of this exponent have a sum of 2 or more, rounded or not.
static constexpr double kMaxExponent = 1.5;

static constexpr StringLiteral kReduce = "llvm.x86.avx512.mask.reduce.ps.512";
static constexpr StringLiteral kScale = "llvm.x86.avx512.mask.scalef.ps.512";
static constexpr StringLiteral kRound = "llvm.x86.avx512bf16.cvtne2ps2bf16.512";

double mlir::posenc::getNoOffset() { return FLT_MAX; }

double mlir::posenc::getLowestScore() { return -0x1p126; }

SoftmaxState mlir::posenc::getWeightState(ElementwiseBuilder &b, Value offset,
                                          Value sum) {
  return {b.sub(b.f32(0), offset), sum};
}

RaisedOffset mlir::posenc::raiseOffset(ElementwiseBuilder &b, Value offset,
                                       Value largest) {
  Value isFirst = b.compare(CmpFPredicate::OEQ, offset, b.f32(getNoOffset()));
  double infinity = std::numeric_limits<double>::infinity();
  Value isRaised = b.select(
      isFirst, b.compare(CmpFPredicate::OGT, largest, b.f32(-infinity)),
      b.compare(CmpFPredicate::OGT, b.add(largest, offset),
                b.f32(kMaxExponent)));
  Value ceiling = math::CeilOp::create(b.builder, b.loc, largest);
  Value raised = b.sub(b.f32(-kBias), ceiling);
  Value change = b.sub(offset, raised);
  // The comparisons replace NaN, too. What a first offset scales is 0.
  auto clamp = [&](CmpFPredicate predicate, Value x, double bound) {
    return b.select(b.compare(predicate, x, b.f32(bound)), x, b.f32(bound));
  };
  Value held =
      clamp(CmpFPredicate::OGT, clamp(CmpFPredicate::OLT, change, 126), 0);
  Value exponent = b.cast<arith::FPToSIOp>(b.builder.getI32Type(), held);
  Value factor = b.cast<arith::BitcastOp>(
      b.builder.getF32Type(), b.shl(b.subi(b.i32(127), exponent), b.i32(23)));
  return {b.select(isRaised, raised, offset),
          b.select(isRaised, factor, b.f32(1)), isRaised};
}

static Value createIntrinsic(ElementwiseBuilder &b, StringRef name, Value x,
                             Value y) {
  constexpr int64_t lanes = 16, threadRounding = 4;
  assert(cast<VectorType>(x.getType()).getNumElements() == lanes);
  Value all = arith::ConstantIntOp::create(b.builder, b.loc, -1, lanes);
  Value rounding =
      arith::ConstantIntOp::create(b.builder, b.loc, threadRounding, 32);
  return LLVM::CallIntrinsicOp::create(b.builder, b.loc, x.getType(),
                                       b.builder.getStringAttr(name),
                                       ValueRange{x, y, x, all, rounding})
      .getResult(0);
}

Value mlir::posenc::emitBF16Exp2(ElementwiseBuilder &b, Value x,
                                 WeightUse use) {
  // The argument 9 stands for x - floor(x), without an exception.
  Value rest = createIntrinsic(
      b, kReduce, x, arith::ConstantIntOp::create(b.builder, b.loc, 9, 32));
  // The minimax polynomials of 2^x on [0, 1], from the highest degree on.
  constexpr double rounded[] = {0.0780245215, 0.226067156, 0.695833564,
                                0.999925196};
  constexpr double summed[] = {0.0135341678, 0.0520114601, 0.241442755,
                               0.693003833, 1.00000262};
  ArrayRef<double> coefficients = rounded;
  if (use == WeightUse::Summed)
    coefficients = summed;
  Value power = b.f32(coefficients.front());
  for (double coefficient : coefficients.drop_front())
    power = b.fma(power, rest, b.f32(coefficient));
  return createIntrinsic(b, kScale, power, x);
}

Value mlir::posenc::roundWeights(ElementwiseBuilder &b, Value first,
                                 Value second) {
  int64_t lanes = cast<VectorType>(first.getType()).getNumElements();
  Type type = VectorType::get({2 * lanes}, b.builder.getBF16Type());
  // The first argument becomes the upper half.
  return LLVM::CallIntrinsicOp::create(b.builder, b.loc, type,
                                       b.builder.getStringAttr(kRound),
                                       ValueRange{second, first})
      .getResult(0);
}

bool mlir::posenc::isVectorIntrinsic(Operation *op) {
  auto call = dyn_cast<LLVM::CallIntrinsicOp>(op);
  return call &&
         llvm::is_contained({kReduce, kScale, kRound}, call.getIntrin());
}

Value mlir::posenc::expandVectorIntrinsic(OpBuilder &builder, Operation *op,
                                          bool hasAVX512) {
  if (!isVectorIntrinsic(op))
    return {};
  auto call = cast<LLVM::CallIntrinsicOp>(op);
  Value x = call.getArgs().front();
  ElementwiseBuilder b(builder, op->getLoc(), x);
  if (call.getIntrin() == kRound) {
    Value first = flushSubnormals(b, call.getArgs()[1]);
    Value second = flushSubnormals(b, x);
    auto type = cast<VectorType>(call.getResult(0).getType());
    auto order = llvm::to_vector(llvm::seq<int64_t>(type.getNumElements()));
    return arith::TruncFOp::create(
        builder, b.loc, type,
        vector::ShuffleOp::create(builder, b.loc, first, second, order));
  }
  if (hasAVX512)
    return {};
  double infinity = std::numeric_limits<double>::infinity();
  if (call.getIntrin() == kReduce) {
    // The instruction rounds the difference down, too: to the number before if
    // rounding to nearest has an error, computed as by Knuth, that is negative.
    Value floor = math::FloorOp::create(builder, b.loc, x);
    Value rest = b.sub(x, floor);
    Value other = b.sub(rest, x);
    Value error = b.sub(b.sub(x, b.sub(rest, other)), b.add(floor, other));
    Value bits = b.cast<arith::BitcastOp>(builder.getI32Type(), rest);
    Value before =
        b.cast<arith::BitcastOp>(builder.getF32Type(), b.subi(bits, b.i32(1)));
    rest =
        b.select(b.compare(CmpFPredicate::OLT, error, b.f32(0)), before, rest);
    Value magnitude = math::AbsFOp::create(builder, b.loc, x);
    Value isInfinite =
        b.compare(CmpFPredicate::OEQ, magnitude, b.f32(infinity));
    return b.select(isInfinite, b.f32(0), rest);
  }
  // In two steps, of which one rounds at most: the first factor is 2^-126 or
  // less only if the result is far below the smallest number. NaN is in x too.
  Value exponent = math::FloorOp::create(builder, b.loc, call.getArgs()[1]);
  auto clamp = [&](CmpFPredicate predicate, Value y, double bound) {
    return b.select(b.compare(predicate, y, b.f32(bound)), y, b.f32(bound));
  };
  exponent =
      clamp(CmpFPredicate::OGT, clamp(CmpFPredicate::OLT, exponent, 252), -252);
  Value n = b.cast<arith::FPToSIOp>(builder.getI32Type(), exponent);
  Value half = b.shrs(n, b.i32(1));
  auto powerOf2 = [&](Value k) {
    return b.cast<arith::BitcastOp>(builder.getF32Type(),
                                    b.shl(b.addi(k, b.i32(127)), b.i32(23)));
  };
  return b.mul(b.mul(x, powerOf2(half)), powerOf2(b.subi(n, half)));
}

Value mlir::posenc::scaleBF16Words(ElementwiseBuilder &b, Value words,
                                   Value factor) {
  Type f32 = b.builder.getF32Type(), i32 = b.builder.getI32Type();
  Value bits = b.cast<arith::BitcastOp>(i32, words);
  auto scale = [&](Value half) {
    return b.cast<arith::BitcastOp>(
        i32, b.mul(b.cast<arith::BitcastOp>(f32, half), factor));
  };
  Value even = scale(b.shl(bits, b.i32(16)));
  Value odd = scale(b.andi(bits, b.i32(0xffff0000)));
  return b.cast<arith::BitcastOp>(
      f32, b.ori(b.shru(even, b.i32(16)), b.andi(odd, b.i32(0xffff0000))));
}

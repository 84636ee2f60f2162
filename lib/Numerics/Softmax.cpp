//===- Softmax.cpp - online softmax ---------------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Numerics/Softmax.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/MathExtras.h"

#include <cassert>
#include <cfloat>
#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::posenc;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// Returns the larger number, and `y` if one of them is NaN.
static Value emitLarger(ElementwiseBuilder &b, Value x, Value y) {
  return b.select(b.compare(arith::CmpFPredicate::OGT, x, y), x, y);
}

Value mlir::posenc::emitExp2(ElementwiseBuilder &b, Value x) {
  // Values below -127 are clamped to -127, whose power is 0: its exponent field
  // is 0. A NaN stays NaN.
  Value clamped = emitLarger(b, b.f32(-127), x);
  // The lower bits of x + 1.5*2^23 + 127 are the rounded x as a biased
  // exponent.
  Value magic = b.f32(12582912.0 + 127);
  Value shifted = b.add(clamped, magic);
  Value rest = b.sub(clamped, b.sub(shifted, magic));
  // 1 + x*p(x), the minimax polynomial of 2^x on [-1/2, 1/2]: the relative
  // error is 1.6e-7 in f32.
  Value power = b.fma(b.f32(0.00132647424), rest, b.f32(0.0096715223));
  for (double coefficient : {0.0555073395, 0.240222424, 0.693147004, 1.0})
    power = b.fma(power, rest, b.f32(coefficient));
  Type i32 = b.builder.getI32Type();
  Value exponent = b.shl(b.cast<arith::BitcastOp>(i32, shifted), b.i32(23));
  return b.mul(power,
               b.cast<arith::BitcastOp>(b.builder.getF32Type(), exponent));
}

Value mlir::posenc::emitLog(ElementwiseBuilder &b, Value x) {
  Type i32 = b.builder.getI32Type(), f32 = b.builder.getF32Type();
  // Splits x = m * 2^e with m in [sqrt(1/2), sqrt(2)).
  Value bits = b.cast<arith::BitcastOp>(i32, x);
  Value above = b.subi(bits, b.i32(0x3f3504f3));
  Value e = b.cast<arith::SIToFPOp>(f32, b.shrs(above, b.i32(23)));
  Value m = b.cast<arith::BitcastOp>(
      f32, b.addi(b.andi(above, b.i32(0x007fffff)), b.i32(0x3f3504f3)));
  // ln m = 2 artanh s, with s = (m - 1) / (m + 1).
  Value s = b.div(b.sub(m, b.f32(1)), b.add(m, b.f32(1)));
  Value square = b.mul(s, s);
  Value series = b.f32(2.0 / 9);
  for (double divisor : {7, 5, 3})
    series = b.fma(series, square, b.f32(2 / divisor));
  Value small = b.mul(b.mul(series, square), s);
  Value logM = b.add(b.add(s, s), small);
  return b.fma(e, b.f32(0.693145752), b.fma(e, b.f32(1.42860677e-6), logM));
}

//===----------------------------------------------------------------------===//
// Builders
//===----------------------------------------------------------------------===//

SoftmaxBuilder::SoftmaxBuilder(OpBuilder &builder, Location loc, Type type,
                               double unit, double start)
    : ElementwiseBuilder(builder, loc, type),
      element(llvm::cast<FloatType>(getElementTypeOrSelf(type))), unit(unit),
      start(start) {}

Value SoftmaxBuilder::max(Value x, Value y) { return emitLarger(*this, x, y); }

bool SoftmaxBuilder::hasFiniteStart() const { return std::isfinite(start); }

Base2Softmax::Base2Softmax(OpBuilder &builder, Location loc, Type type)
    : SoftmaxBuilder(builder, loc, type, llvm::numbers::ln2, -FLT_MAX) {
  assert(element.isF32() && "exponentials are those of f32");
}

MathSoftmax::MathSoftmax(OpBuilder &builder, Location loc, Type type)
    : SoftmaxBuilder(builder, loc, type, /*unit=*/1, -kInfinity) {}

//===----------------------------------------------------------------------===//
// Steps and merges
//===----------------------------------------------------------------------===//

SoftmaxState mlir::posenc::emitEmptyState(SoftmaxBuilder &b) {
  return {b.number(b.start), b.number(0)};
}

SoftmaxState mlir::posenc::emitSinkState(SoftmaxBuilder &b, Value sink) {
  Value logit = b.mul(sink, b.number(llvm::numbers::log2e));
  Value highest = b.number(-b.start);
  Value isAbove = b.compare(arith::CmpFPredicate::OGT, logit, highest);
  logit = b.select(isAbove, highest, logit);
  Value max = b.max(logit, b.number(b.start));
  return {max, b.exp(b.sub(logit, max))};
}

SoftmaxBase mlir::posenc::emitBase(SoftmaxBuilder &b, Value max) {
  if (b.hasFiniteStart())
    return {max, {}};
  Value isEmpty =
      b.compare(arith::CmpFPredicate::OEQ, max, b.number(-kInfinity));
  return {b.select(isEmpty, b.number(0), max), isEmpty};
}

Value mlir::posenc::emitExp(SoftmaxBuilder &b, Value x, Value base) {
  return b.exp(b.sub(x, base));
}

Value mlir::posenc::emitLazyMax(SoftmaxBuilder &b, Value before, Value max) {
  Value limit = b.number(8 * llvm::numbers::ln2 / b.unit);
  Value exceeds =
      b.compare(arith::CmpFPredicate::OGT, b.sub(max, before), limit);
  return b.select(exceeds, max, before);
}

SoftmaxStep mlir::posenc::emitStep(SoftmaxBuilder &b, Value before, Value max) {
  SoftmaxBase base = emitBase(b, max);
  return {base, emitExp(b, before, base.value)};
}

SoftmaxMerge mlir::posenc::emitMerge(SoftmaxBuilder &b, ValueRange maxes) {
  SoftmaxMerge merge;
  merge.max = maxes.front();
  for (Value max : maxes.drop_front())
    merge.max = b.max(max, merge.max);
  SoftmaxBase base = emitBase(b, merge.max);
  for (Value max : maxes)
    merge.factors.push_back(emitExp(b, max, base.value));
  return merge;
}

Value mlir::posenc::emitMergedSum(SoftmaxBuilder &b, ValueRange sums,
                                  ValueRange factors) {
  Value merged;
  for (auto [sum, factor] : llvm::zip_equal(sums, factors))
    merged = merged ? b.fma(sum, factor, merged) : b.mul(sum, factor);
  return merged;
}

//===----------------------------------------------------------------------===//
// End
//===----------------------------------------------------------------------===//

Value mlir::posenc::emitQuotient(SoftmaxBuilder &b, Value acc, Value sum) {
  Value isEmpty = b.compare(arith::CmpFPredicate::OEQ, sum, b.number(0));
  return b.select(isEmpty, b.number(0), b.div(acc, sum));
}

SinkMerge mlir::posenc::emitSinkMerge(SoftmaxBuilder &b,
                                      const SoftmaxState &keys, Value sink) {
  SoftmaxState other = emitSinkState(b, sink);
  SoftmaxMerge merge = emitMerge(b, {keys.max, other.max});
  Value sum = emitMergedSum(b, {keys.sum, other.sum}, merge.factors);
  return {{merge.max, sum},
          emitQuotient(b, b.mul(keys.sum, merge.factors[0]), sum)};
}

Value mlir::posenc::emitLogSum(SoftmaxBuilder &b, const SoftmaxState &state,
                               Value sink) {
  auto isEqual = [&](Value x, Value y) {
    return b.compare(arith::CmpFPredicate::OEQ, x, y);
  };
  Value isEmpty = isEqual(state.sum, b.number(0));
  Value log = b.log(state.sum);
  Value logSum = b.isNatural() ? b.add(state.max, log)
                               : b.fma(state.max, b.number(b.unit), log);
  Value isAlone = isEqual(state.sum, b.number(1)), empty = state.max;
  if (!b.isNatural()) {
    // emitLog reads a NaN as a number; adding sum - sum restores it.
    logSum = b.add(logSum, b.sub(state.sum, state.sum));
    if (!sink)
      return b.select(isEmpty, b.number(-kInfinity), logSum);
    // The product of a sink with log2(e) and ln(2) is not the sink, so the sink
    // is recognized by its product.
    isAlone = b.andi(isEqual(state.max, emitSinkState(b, sink).max), isAlone);
    empty = sink;
  }
  // Adding ln(1) = 0 would not keep a sink of -0.
  return b.select(b.ori(isEmpty, isAlone), empty, logSum);
}

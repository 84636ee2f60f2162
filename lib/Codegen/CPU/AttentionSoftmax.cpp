//===- AttentionSoftmax.cpp - the online softmax --------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionBF16Dots.h"
#include "AttentionBF16Tiles.h"
#include "AttentionCode.h"

#include "posenc/Numerics/ElementwiseBuilder.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include <cfloat>
#include <limits>
#include <tuple>

using namespace mlir;
using namespace mlir::posenc;

Value mlir::posenc::emitExp2(ImplicitLocOpBuilder &builder, Value x) {
  ElementwiseBuilder b(builder, builder.getLoc(), x);
  // Values below -127 are clamped to -127, whose power is 0: its exponent field
  // is 0. A NaN stays NaN.
  Value clamped = createMax(builder, b.f32(-127), x);
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
  Type i32 = builder.getI32Type();
  Value exponent = b.shl(b.cast<arith::BitcastOp>(i32, shifted), b.i32(23));
  return b.mul(power, b.cast<arith::BitcastOp>(builder.getF32Type(), exponent));
}

Value mlir::posenc::emitLog(ImplicitLocOpBuilder &builder, Value x) {
  ElementwiseBuilder b(builder, builder.getLoc(), x);
  Type i32 = builder.getI32Type(), f32 = builder.getF32Type();
  // Splits x = m * 2^e with m in [sqrt(1/2), sqrt(2)).
  Value bits = b.cast<arith::BitcastOp>(i32, x);
  Value above = arith::SubIOp::create(builder, bits, b.i32(0x3f3504f3));
  Value e = b.cast<arith::SIToFPOp>(f32, b.shrs(above, b.i32(23)));
  Value m = b.cast<arith::BitcastOp>(
      f32, b.addi(b.andi(above, b.i32(0x007fffff)), b.i32(0x3f3504f3)));
  // ln m = 2 artanh s, with s = (m - 1) / (m + 1).
  Value s = b.binary<arith::DivFOp>(b.sub(m, b.f32(1)), b.add(m, b.f32(1)));
  Value square = b.mul(s, s);
  Value series = b.f32(2.0 / 9);
  for (double divisor : {7, 5, 3})
    series = b.fma(series, square, b.f32(2 / divisor));
  Value small = b.mul(b.mul(series, square), s);
  Value logM = b.add(b.add(s, s), small);
  return b.fma(e, b.f32(0.693145752), b.fma(e, b.f32(1.42860677e-6), logM));
}

SmallVector<Value> mlir::posenc::emitSoftmax(ImplicitLocOpBuilder &builder,
                                             const AttentionCode &code,
                                             const AttentionBlock &block,
                                             ValueRange newRowMax) {
  VectorType type = code.getVectorType();
  Value none = createSplat(builder, type, 0);
  SmallVector<Value> factors;
  // Processes one vector at a time: constants and the values of two vectors do
  // not fit in the registers.
  for (auto [i, maximum] : llvm::enumerate(newRowMax)) {
    Value lane = createIndex(builder, i * code.tiles.lanes);
    SmallVector<Value> at{block.queryTile, lane};
    Value before = loadVector(builder, type, code.rowMax, at);
    if (code.tiles.hasBF16Tiles)
      maximum = delayMax(builder, before, maximum);
    storeVector(builder, maximum, code.rowMax, at);
    Value factor =
        emitExp2(builder, arith::SubFOp::create(builder, before, maximum));
    ValueRange sum = createLoop(
        builder, block.firstRow, block.endRow, code.getDotWidth(), none,
        [&, maximum = maximum](Value row, ValueRange sums) {
          SmallVector<Value> weights;
          for (int64_t i = 0; i < code.getDotWidth(); ++i) {
            Value score = loadVector(builder, type, code.scores,
                                     {addIndex(builder, row, i), lane});
            weights.push_back(emitExp2(
                builder, arith::SubFOp::create(builder, score, maximum)));
          }
          // Works in place: words overwrite scores that have already been read.
          Value stored = code.hasBF16Dots ? packWeights(builder, weights)
                                          : weights.front();
          Value position = builder.createOrFold<arith::DivUIOp>(
              row, createIndex(builder, code.getDotWidth()));
          storeVector(builder, stored, code.scores, {position, lane});
          Value sum = sums.front();
          for (Value weight : weights)
            sum = arith::AddFOp::create(builder, sum, weight);
          return SmallVector<Value>{sum};
        });
    Value total = loadVector(builder, type, code.rowSum, at);
    storeVector(builder,
                math::FmaOp::create(builder, total, factor, sum.front()),
                code.rowSum, at);
    factors.push_back(factor);
  }
  return factors;
}

std::pair<Value, Value>
mlir::posenc::emitSinkState(ImplicitLocOpBuilder &builder, Value sinks) {
  ElementwiseBuilder b(builder, builder.getLoc(), sinks);
  Value logit = b.mul(sinks, b.f32(llvm::numbers::log2e));
  Value highest = b.f32(FLT_MAX);
  Value isAbove =
      arith::CmpFOp::create(builder, arith::CmpFPredicate::OGT, logit, highest);
  logit = b.select(isAbove, highest, logit);
  Value maximum = createMax(builder, logit, b.f32(-FLT_MAX));
  return {maximum, emitExp2(builder, b.sub(logit, maximum))};
}

AttentionResult mlir::posenc::emitResult(ImplicitLocOpBuilder &builder,
                                         Value maximum, Value total,
                                         Value sinks) {
  ElementwiseBuilder b(builder, builder.getLoc(), total);
  Value isNothing = arith::CmpFOp::create(builder, arith::CmpFPredicate::OEQ,
                                          total, b.f32(0));
  Value reciprocal = b.binary<arith::DivFOp>(b.f32(1), total);
  Value logSum =
      b.fma(maximum, b.f32(llvm::numbers::ln2), emitLog(builder, total));
  // emitLog treats NaN as a number; adding total - total restores NaN.
  logSum = b.add(logSum, b.sub(total, total));
  Value emptyLogSum = b.f32(-std::numeric_limits<double>::infinity());
  Value hasNoKeys = isNothing;
  if (sinks) {
    // Multiplying the sink by log2(e) and by ln(2) does not restore it. If no
    // key has changed the state, the log-sum-exp is the sink itself.
    auto [first, sinkSum] = emitSinkState(builder, sinks);
    auto isEqual = [&](Value x, Value y) -> Value {
      return arith::CmpFOp::create(builder, arith::CmpFPredicate::OEQ, x, y);
    };
    Value isUnchanged =
        b.andi(isEqual(maximum, first), isEqual(total, b.f32(1)));
    hasNoKeys = b.ori(isNothing, isUnchanged);
    emptyLogSum = sinks;
  }
  return {b.select(isNothing, b.f32(0), reciprocal),
          b.select(hasNoKeys, emptyLogSum, logSum)};
}

void mlir::posenc::emitStart(ImplicitLocOpBuilder &builder,
                             const AttentionCode &code,
                             const AttentionTask &task) {
  AttentionOp op = code.op;
  const AttentionTiles &tiles = code.tiles;
  VectorType type = code.getVectorType();
  Value zero = createSplat(builder, type, 0);
  // The running max starts at the lowest finite f32, as differences of
  // infinities are NaN.
  Value lowest = createSplat(builder, type, -FLT_MAX);
  auto forLanes = [&](function_ref<void(Value)> body) {
    for (int64_t i = 0; i < tiles.vectors; ++i)
      body(createIndex(builder, i * tiles.lanes));
  };
  Value begin = createIndex(builder, 0);
  createLoop(
      builder, begin, createIndex(builder, tiles.heads), 1, [&](Value head) {
        Value maximum = lowest, total = zero;
        if (Value sinks = op.getSinks()) {
          Value sink = memref::LoadOp::create(
              builder, sinks,
              ValueRange{addIndex(builder, task.queryHead, head)});
          std::tie(maximum, total) =
              emitSinkState(builder, broadcast(builder, type, sink));
        }
        Value first = mulIndex(builder, head, tiles.getQueryTilesPerHead());
        Value end = addIndex(builder, first, task.numQueryTiles);
        createLoop(builder, first, end, 1, [&](Value queryTile) {
          forLanes([&](Value lane) {
            storeVector(builder, maximum, code.rowMax, {queryTile, lane});
            storeVector(builder, total, code.rowSum, {queryTile, lane});
          });
          // Includes the padding columns.
          int64_t columns = code.getNumColumns();
          createLoop(
              builder, begin, createIndex(builder, columns), 1, [&](Value d) {
                forLanes([&](Value lane) {
                  storeVector(builder, zero, code.acc, {queryTile, d, lane});
                });
              });
        });
      });
}

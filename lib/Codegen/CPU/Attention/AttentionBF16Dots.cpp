//===- AttentionBF16Dots.cpp - attention with bf16 dot products -----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionBF16Dots.h"

#include "posenc/Numerics/BF16.h"
#include "posenc/Numerics/ElementwiseBuilder.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::posenc;

/// Whether kernels can multiply pairs of bf16.
static bool hasBF16Pairs(AttentionOp op, const VectorTarget &target) {
  constexpr unsigned bytes = 64;
  if (!target.hasBF16Dots || target.vectorBytes != bytes)
    return false;
  for (Value tensor : {op.getQuery(), op.getKey(), op.getValue()})
    if (!getElementTypeOrSelf(tensor.getType()).isBF16())
      return false;
  return cast<ShapedType>(op.getKey().getType()).getShape().back() % 2 == 0;
}

bool mlir::posenc::usesBF16Dots(AttentionOp op, const VectorTarget &target) {
  // Log-sum-exp outputs serve to merge results, so they are those of weights
  // that are not rounded to bf16.
  return hasBF16Pairs(op, target) && !isAlwaysDecode(op, target) &&
         (!op.getLogSumInit() || usesAMXSteps(op, target));
}

/// Whether AMX can compute the products of a kernel.
static bool canUseAMX(AttentionOp op, const VectorTarget &target) {
  constexpr int64_t columns = 16;
  int64_t valueDim =
      cast<ShapedType>(op.getValue().getType()).getShape().back();
  return target.hasAMXBF16 && hasBF16Pairs(op, target) &&
         valueDim % columns == 0;
}

bool mlir::posenc::usesAMXSteps(AttentionOp op, const VectorTarget &target) {
  return canUseAMX(op, target) && !isAlwaysDecode(op, target);
}

bool mlir::posenc::usesStackedAMXSteps(AttentionOp op,
                                       const VectorTarget &target,
                                       DecodeRange range) {
  // With fewer rows, the products of the other decode kernel take less time
  // than reading the keys, and its weights are not rounded. A limit by the rows
  // of a call would change the bits of a query with the number of the others.
  constexpr int64_t minHeads = 4, minTokens = 2;
  auto getHeads = [](Value tensor, unsigned dim) {
    return cast<ShapedType>(tensor.getType()).getDimSize(dim);
  };
  int64_t groupSize = getHeads(op.getQuery(), op.getQueryHeadDim()) /
                      getHeads(op.getKey(), op.getKeyHeadDim());
  return canUseAMX(op, target) && getRelativeValues(op).empty() &&
         (groupSize >= minHeads || range.min >= minTokens);
}

//===----------------------------------------------------------------------===//
// Pairs of bf16
//===----------------------------------------------------------------------===//

static Value bitCast(OpBuilder &builder, Location loc, Value vector,
                     Type element) {
  auto type = cast<VectorType>(vector.getType());
  int64_t length = type.getNumElements() * type.getElementTypeBitWidth() /
                   element.getIntOrFloatBitWidth();
  return vector::BitCastOp::create(builder, loc,
                                   VectorType::get({length}, element), vector);
}

/// Returns the bits of bf16 elements in the lower halves of 32-bit words.
static Value toLowHalves(OpBuilder &builder, Location loc, Value narrow) {
  Value bits = bitCast(builder, loc, narrow, builder.getI16Type());
  ElementwiseBuilder b(builder, loc, bits);
  return b.cast<arith::ExtUIOp>(builder.getI32Type(), bits);
}

SmallVector<Value> mlir::posenc::packPairs(ImplicitLocOpBuilder &builder,
                                           ArrayRef<Value> vectors) {
  Location loc = builder.getLoc();
  SmallVector<Value> words;
  for (size_t i = 0; i + 1 < vectors.size(); i += 2) {
    SmallVector<Value> halves;
    for (Value vector : vectors.slice(i, 2)) {
      auto type =
          cast<VectorType>(vector.getType()).clone(builder.getBF16Type());
      halves.push_back(toLowHalves(
          builder, loc, arith::TruncFOp::create(builder, type, vector)));
    }
    ElementwiseBuilder b(builder, loc, halves.front());
    Value word = b.ori(halves[0], b.shl(halves[1], b.i32(16)));
    words.push_back(b.cast<arith::BitcastOp>(builder.getF32Type(), word));
  }
  return words;
}

bool mlir::posenc::keepsRemainders(AttentionOp op) {
  return op.getLogSumInit() && (op.getQueryNorm() || op.getKeyNorm() ||
                                op.getQueryRotation() || op.getKeyRotation());
}

SplitRow mlir::posenc::splitRow(OpBuilder &builder, Location loc, Value wide) {
  auto narrow = cast<VectorType>(wide.getType()).clone(builder.getBF16Type());
  SplitRow row;
  row.rounded = arith::TruncFOp::create(builder, loc, narrow, wide);
  Value near = arith::ExtFOp::create(builder, loc, wide.getType(), row.rounded);
  ElementwiseBuilder b(builder, loc, wide);
  Value rest = b.sub(wide, near);
  Value isFinite =
      b.compare(arith::CmpFPredicate::OEQ, b.sub(rest, rest), b.f32(0));
  auto round = [&](Value x) -> Value {
    return arith::TruncFOp::create(builder, loc, narrow,
                                   b.select(isFinite, x, b.f32(0)));
  };
  row.finite = round(near);
  row.remainder = round(rest);
  return row;
}

Value mlir::posenc::packWeights(ImplicitLocOpBuilder &builder,
                                MutableArrayRef<Value> weights) {
  SmallVector<Value> bits;
  for (Value &weight : weights) {
    ElementwiseBuilder b(builder, builder.getLoc(), weight);
    Value word = b.cast<arith::BitcastOp>(builder.getI32Type(), weight);
    // Adding half a unit rounds ties up. Weights are never negative, and the
    // carry must not turn a NaN's bits into the sign.
    word = b.binary<arith::MinUIOp>(word, b.i32(0x7fff7fff));
    bits.push_back(b.andi(b.addi(word, b.i32(0x8000)), b.i32(0xffff0000)));
    weight = b.cast<arith::BitcastOp>(builder.getF32Type(), bits.back());
  }
  ElementwiseBuilder b(builder, builder.getLoc(), bits.front());
  return b.cast<arith::BitcastOp>(builder.getF32Type(),
                                  b.ori(b.shru(bits[0], b.i32(16)), bits[1]));
}

Value mlir::posenc::addUnsafePairs(ImplicitLocOpBuilder &builder, Value words,
                                   Value sum) {
  Location loc = builder.getLoc();
  BF16Halves x = splitBF16(builder, loc,
                           bitCast(builder, loc, words, builder.getBF16Type()));
  ElementwiseBuilder b(builder, loc, sum);
  return b.fma(x.odd, b.f32(0), b.fma(x.even, b.f32(0), sum));
}

//===----------------------------------------------------------------------===//
// Keys and values
//===----------------------------------------------------------------------===//

static Value loadBF16(OpBuilder &builder, Location loc, Value tensor,
                      ValueRange row, Value lane, int64_t length) {
  SmallVector<Value> at(row);
  at.push_back(lane);
  auto type = VectorType::get({length}, builder.getBF16Type());
  return vector::LoadOp::create(builder, loc, type, tensor, at);
}

void mlir::posenc::emitKeyPairs(ImplicitLocOpBuilder &builder,
                                const AttentionCode &code,
                                const AttentionRows &rows, ValueRange at,
                                Value row) {
  AttentionOp op = code.op;
  Value zero = createIndex(builder, 0);
  if (!rows.isPlain())
    rows.emitRow(builder, op.getKey(), at, code.dim, code.rows, zero, zero);
  int64_t words = code.dim / 2, allWords = code.getNumWords();
  bool isSplit = code.tiles.hasAMXSteps() && keepsRemainders(op);
  if (int64_t rest = words % code.tiles.lanes;
      code.tiles.hasAMXSteps() && rest > 0)
    for (int64_t part = 0; part < (isSplit ? 3 : 1); ++part)
      storeVector(builder, createSplat(builder, code.getVectorType(), 0),
                  code.keys,
                  {row, createIndex(builder, part * allWords + words - rest)});
  forEachVector(
      builder, builder.getLoc(), code.dim, 2 * code.tiles.lanes,
      [&](OpBuilder &b, Location loc, Value lane, int64_t length) {
        Value two = arith::ConstantIndexOp::create(b, loc, 2);
        Value word = b.createOrFold<arith::DivUIOp>(loc, lane, two);
        auto store = [&](Value pairs, int64_t part) {
          Value offset =
              arith::ConstantIndexOp::create(b, loc, part * allWords);
          vector::StoreOp::create(
              b, loc, bitCast(b, loc, pairs, b.getF32Type()), code.keys,
              ValueRange{row,
                         b.createOrFold<arith::AddIOp>(loc, word, offset)});
        };
        auto type = VectorType::get({length}, b.getF32Type());
        Value wide, pairs;
        if (rows.isPlain()) {
          pairs = loadBF16(b, loc, op.getKey(), at, lane, length);
          if (isSplit)
            wide = arith::ExtFOp::create(b, loc, type, pairs);
        } else {
          wide = vector::LoadOp::create(b, loc, type, code.rows,
                                        ValueRange{zero, lane});
        }
        if (!isSplit) {
          if (!pairs)
            pairs = arith::TruncFOp::create(b, loc, type.clone(b.getBF16Type()),
                                            wide);
          return store(pairs, 0);
        }
        SplitRow split = splitRow(b, loc, wide);
        store(split.rounded, 0);
        store(split.finite, 1);
        store(split.remainder, 2);
      });
}

void mlir::posenc::emitValuePairs(ImplicitLocOpBuilder &builder,
                                  const AttentionCode &code,
                                  const AttentionTask &task, Value first,
                                  Value count) {
  AttentionOp op = code.op;
  Value zero = createIndex(builder, 0), two = createIndex(builder, 2);
  int64_t dim = code.valueDim, lanes = code.tiles.lanes;
  Value last = addIndex(builder, count, -1);
  createLoop(builder, zero, count, 2, [&](Value row) {
    Value next = addIndex(builder, row, 1);
    Value isTwo =
        arith::CmpIOp::create(builder, arith::CmpIPredicate::slt, next, count);
    SmallVector<SmallVector<Value>> at;
    for (Value one : {row, minIndex(builder, next, last)})
      at.push_back(
          getKeyIndices(builder, op, task, addIndex(builder, first, one)));
    Value pair = builder.createOrFold<arith::DivUIOp>(row, two);
    if (int64_t rest = dim % lanes)
      storeVector(builder, createSplat(builder, code.getVectorType(), 0),
                  code.values, {pair, createIndex(builder, dim - rest)});
    forEachVector(
        builder, builder.getLoc(), dim, lanes,
        [&](OpBuilder &nested, Location loc, Value lane, int64_t length) {
          SmallVector<Value> bits;
          for (ArrayRef<Value> one : at) {
            Value x = loadBF16(nested, loc, op.getValue(), one, lane, length);
            bits.push_back(toLowHalves(nested, loc, x));
          }
          ElementwiseBuilder b(nested, loc, bits.front());
          Value high = b.shl(bits[1], b.i32(16));
          Value isPair = vector::BroadcastOp::create(
              nested, loc, b.like(nested.getI1Type()), isTwo);
          Value words = b.ori(bits[0], b.select(isPair, high, b.i32(0)));
          vector::StoreOp::create(
              nested, loc, b.cast<arith::BitcastOp>(nested.getF32Type(), words),
              code.values, ValueRange{pair, lane});
        });
  });
}

//===- AttentionDecodeInt8.cpp - decode on an i8 cache --------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An i8 cache has half the bytes of a bf16 cache. With several query heads for
// each key head, decode on it is bound by products, not by memory. pmaddwd adds
// the products of two pairs of i16 to i32 in each lane, as fast as one product
// of f32. Queries of bf16 are therefore quantized to i16, relative to the
// largest channel of their row: the error is at most 2^-16 of that channel,
// where bf16 dot products round each channel by up to 2^-9. Sums are exact: 256
// products are less than 2^31.
//
// The buffered row of a query holds its i16, two in a word, followed by the
// factor that converts integer sums to scores.
//
// The weights of a whole tile are quantized to i16, too, after they were
// multiplied by the values' scales, relative to the largest weight of each
// query. A word holds the weights of two neighbouring keys, and a lane adds the
// products of one channel of both. The factors of a block's queries follow its
// words.
//
//===----------------------------------------------------------------------===//

#include "AttentionDecode.h"

#include "posenc/Numerics/ElementwiseBuilder.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

#include <cmath>

using namespace mlir;
using namespace mlir::posenc;

static constexpr double kLargest = 32767;
/// The number of i16 in 128 bits, the unit within which unpack instructions
/// interleave.
static constexpr int64_t kInterleaved = 8;

bool Decode::canUseIntegers(AttentionOp op) {
  // Results depend on this number, so it is the same for all targets.
  constexpr int64_t pairs = 32;
  Type query = getElementTypeOrSelf(op.getQuery().getType());
  int64_t dim = cast<ShapedType>(op.getKey().getType()).getShape().back();
  return getElementTypeOrSelf(op.getKey().getType()).isInteger(8) &&
         query.isBF16() && dim % pairs == 0 && !op.getKeyRotation() &&
         !op.getKeyNorm();
}

bool Decode::canUseIntegerWeights(AttentionOp op, const AttentionTiles &tiles) {
  constexpr int64_t minQueries = 4, columns = 64, maxKeys = 256;
  Type query = getElementTypeOrSelf(op.getQuery().getType());
  int64_t dim = cast<ShapedType>(op.getValue().getType()).getShape().back();
  int64_t sums = tiles.getWeightSums();
  return getElementTypeOrSelf(op.getValue().getType()).isInteger(8) &&
         query.getIntOrFloatBitWidth() == 16 && dim % columns == 0 &&
         kSumLanes / sums >= minQueries && tiles.keys % (2 * sums) == 0 &&
         tiles.keys <= maxKeys;
}

namespace {
/// Quantizes f32 to i16, in each lane relative to a largest magnitude.
class Quantization {
public:
  Quantization(ImplicitLocOpBuilder &b, Value largest)
      : v(b, b.getLoc(), largest) {
    auto compare = [&](arith::CmpFPredicate predicate, double limit) -> Value {
      return arith::CmpFOp::create(b, predicate, largest, v.f32(limit));
    };
    // All integers are 0 if the largest magnitude is too small to divide by.
    factor =
        v.select(compare(arith::CmpFPredicate::OGT, 0x1p-100),
                 v.binary<arith::DivFOp>(v.f32(kLargest), largest), v.f32(0));
    // If a number is infinite or NaN, the sums become NaN.
    scale = v.select(compare(arith::CmpFPredicate::OLT, HUGE_VAL), largest,
                     v.f32(std::nan("")));
  }

  /// Returns a float whose lower 16 bits are the quantized integer.
  Value quantize(Value x) { return v.fma(x, factor, v.f32(0x1.8p23)); }
  /// Returns the value of the integer 1, times `by`.
  Value getScale(double by) { return v.mul(scale, v.f32(by / kLargest)); }

private:
  ElementwiseBuilder v;
  Value factor, scale;
};
} // namespace

/// Returns the larger of two non-negative numbers, and NaN if one is NaN.
static Value getLarger(ImplicitLocOpBuilder &b, Value x, Value y) {
  ElementwiseBuilder v(b, b.getLoc(), x);
  Type i32 = b.getI32Type();
  auto getBits = [&](Value number) {
    return v.cast<arith::BitcastOp>(i32, number);
  };
  return v.cast<arith::BitcastOp>(
      b.getF32Type(), arith::MaxSIOp::create(b, getBits(x), getBits(y)));
}

/// Returns the lower halves of the lanes of `x`, then those of `y`, as words.
static Value getWords(ImplicitLocOpBuilder &b, Value x, Value y,
                      ArrayRef<int64_t> order) {
  auto type = cast<VectorType>(x.getType());
  auto halves = VectorType::get({2 * type.getNumElements()}, b.getI16Type());
  auto split = [&](Value vector) {
    return vector::BitCastOp::create(b, halves, vector);
  };
  auto lower = llvm::map_to_vector(order, [](int64_t i) { return 2 * i; });
  Value pairs = vector::ShuffleOp::create(b, split(x), split(y), lower);
  return vector::BitCastOp::create(b, type, pairs);
}

void Decode::emitIntegerQuery(Value row, double scale) {
  Value zero = createIndex(b, 0), dim = createIndex(b, code.dim);
  auto load = [&](Value d) { return loadVector(b, type, code.rows, {row, d}); };
  ValueRange sizes =
      createLoop(b, zero, dim, lanes, createSplat(b, type, 0),
                 [&](Value d, ValueRange carried) {
                   Value size = math::AbsFOp::create(b, load(d));
                   return SmallVector<Value>{getLarger(b, size, carried[0])};
                 });
  Value largest = sizes[0];
  for (int64_t relative = 1; relative < lanes; relative *= 2) {
    SmallVector<int64_t> others;
    for (int64_t i = 0; i < lanes; ++i)
      others.push_back(i ^ relative);
    largest = getLarger(b, largest,
                        vector::ShuffleOp::create(b, largest, largest, others));
  }
  Quantization quantization(b, largest);
  auto inOrder = llvm::to_vector(llvm::seq<int64_t>(0, 2 * lanes));
  // Works in place: words overwrite floats that have already been read.
  createLoop(b, zero, dim, 2 * lanes, [&](Value d) {
    Value words =
        getWords(b, quantization.quantize(load(d)),
                 quantization.quantize(load(addIndex(b, d, lanes))), inOrder);
    Value word = b.createOrFold<arith::DivUIOp>(d, createIndex(b, 2));
    storeVector(b, words, code.rows, {row, word});
  });
  memref::StoreOp::create(
      b, vector::ExtractOp::create(b, quantization.getScale(scale), int64_t{0}),
      code.rows, ValueRange{row, createIndex(b, code.dim / 2)});
}

Value Decode::loadIntegerFactors(Value block) {
  SmallVector<Value> factors, laneFactors;
  for (int64_t q = 0; q < queries; ++q)
    factors.push_back(memref::LoadOp::create(
        b, code.rows,
        ValueRange{getRowOfQuery(block, q), createIndex(b, code.dim / 2)}));
  for (int64_t lane = 0; lane < lanes; ++lane)
    laneFactors.push_back(factors[lane % queries]);
  return vector::FromElementsOp::create(b, type, laneFactors);
}

/// Returns `sum` plus the products of two neighbouring i16 in each lane.
static Value addPairs(ImplicitLocOpBuilder &b, Value x, Value y, Value sum,
                      unsigned vectorBytes) {
  // Only x86 has vectors of more than 16 bytes here. The backend fuses the
  // product and the sum into one instruction where the CPU has it.
  StringRef name = vectorBytes == 64   ? "llvm.x86.avx512.pmaddw.d.512"
                   : vectorBytes == 32 ? "llvm.x86.avx2.pmadd.wd"
                                       : "";
  if (!name.empty())
    return arith::AddIOp::create(
        b, sum,
        LLVM::CallIntrinsicOp::create(b, sum.getType(), b.getStringAttr(name),
                                      ValueRange{x, y})
            .getResult(0));
  int64_t lanes = cast<VectorType>(sum.getType()).getNumElements();
  for (int64_t first : {0, 1}) {
    SmallVector<int64_t> mask;
    for (int64_t i = 0; i < lanes; ++i)
      mask.push_back(2 * i + first);
    auto widen = [&](Value pairs) -> Value {
      return arith::ExtSIOp::create(
          b, sum.getType(), vector::ShuffleOp::create(b, pairs, pairs, mask));
    };
    sum = arith::AddIOp::create(b, sum,
                                arith::MulIOp::create(b, widen(x), widen(y)));
  }
  return sum;
}

SmallVector<Value> Decode::multiplyIntegers(Value block,
                                            ArrayRef<SmallVector<Value>> rows,
                                            Value first, int64_t count,
                                            ValueRange sums) {
  SmallVector<Value> next(sums);
  auto pairs = VectorType::get({2 * lanes}, b.getI16Type());
  auto bytes = VectorType::get({2 * lanes}, b.getI8Type());
  for (int64_t j = 0; j < count; j += 2 * lanes) {
    Value d = addIndex(b, first, j);
    SmallVector<Value> loaded;
    for (ArrayRef<Value> row : rows) {
      SmallVector<Value> at(row);
      at.push_back(d);
      loaded.push_back(arith::ExtSIOp::create(
          b, pairs, loadVector(b, bytes, op.getKey(), at)));
    }
    Value word = b.createOrFold<arith::DivUIOp>(d, createIndex(b, 2));
    for (int64_t q = 0; q < queries; ++q) {
      Value query = vector::BitCastOp::create(
          b, pairs,
          loadVector(b, type, code.rows, {getRowOfQuery(block, q), word}));
      for (auto [i, key] : llvm::enumerate(loaded)) {
        Value &sum = next[i * queries + q];
        sum = addPairs(b, key, query, sum, code.target.vectorBytes);
      }
    }
  }
  return next;
}

void Decode::quantizeWeights(Value block) {
  Value zero = createIndex(b, 0), first = getWeight(zero, block);
  Value size = createIndex(b, code.tiles.keys * queries);
  auto load = [&](Value i) {
    return loadVector(b, type, code.decodeWeights, addIndex(b, first, i));
  };
  ValueRange sizes =
      createLoop(b, zero, size, lanes, createSplat(b, type, 0),
                 [&](Value i, ValueRange carried) {
                   Value weight = math::AbsFOp::create(b, load(i));
                   return SmallVector<Value>{getLarger(b, weight, carried[0])};
                 });
  Quantization quantization(b, acrossKeys(sizes[0], [&](Value x, Value y) {
                              return getLarger(b, x, y);
                            }));
  SmallVector<int64_t> besides;
  for (int64_t pair = 0; pair < keys; ++pair)
    for (int64_t q = 0; q < queries; ++q)
      for (int64_t key : {2 * pair, 2 * pair + 1})
        besides.push_back(key * queries + q);
  // Works in place: words overwrite weights that have already been read.
  createLoop(b, zero, size, 2 * lanes, [&](Value i) {
    Value words =
        getWords(b, quantization.quantize(load(i)),
                 quantization.quantize(load(addIndex(b, i, lanes))), besides);
    Value word = b.createOrFold<arith::DivUIOp>(i, createIndex(b, 2));
    storeVector(b, words, code.decodeWeights, addIndex(b, first, word));
  });
  storeVector(b, quantization.getScale(1), code.decodeWeights,
              getIntegerFactors(block));
}

Value Decode::getIntegerFactors(Value block) {
  return addIndex(b, getWeight(createIndex(b, 0), block),
                  code.tiles.keys * queries / 2);
}

SmallVector<Value> Decode::addIntegerRows(Value firstKey, Value row, Value d,
                                          int64_t firstQuery, Value block,
                                          ValueRange sums, int64_t vectors) {
  SmallVector<Value> next(sums);
  int64_t count = sums.size() / vectors;
  auto pairs = VectorType::get({2 * lanes}, b.getI16Type());
  auto bytes = VectorType::get({2 * lanes}, b.getI8Type());
  Value number = b.createOrFold<arith::DivUIOp>(row, createIndex(b, 2));
  Value first = addIndex(b, getWeight(createIndex(b, 0), block),
                         mulIndex(b, number, queries));
  SmallVector<Value> weights;
  for (int64_t q = 0; q < count; ++q)
    weights.push_back(vector::BitCastOp::create(
        b, pairs,
        broadcast(b, type,
                  memref::LoadOp::create(b, code.decodeWeights,
                                         addIndex(b, first, firstQuery + q)))));
  for (int64_t v = 0; v < vectors; v += 2) {
    SmallVector<Value> values;
    for (int64_t i : {0, 1}) {
      SmallVector<Value> at(getRow(firstKey, addIndex(b, row, i),
                                   getKeyHead(block), /*isNext=*/false));
      at.push_back(addIndex(b, d, v * lanes));
      values.push_back(arith::ExtSIOp::create(
          b, pairs, loadVector(b, bytes, op.getValue(), at)));
    }
    for (int64_t half : {0, 1}) {
      SmallVector<int64_t> mask;
      for (int64_t i = 0; i < lanes; ++i)
        for (int64_t key : {0, 1})
          mask.push_back(2 * lanes * key + getColumn(i, half));
      Value both = vector::ShuffleOp::create(b, values[0], values[1], mask);
      for (int64_t q = 0; q < count; ++q) {
        Value &sum = next[(v + half) * count + q];
        sum = addPairs(b, both, weights[q], sum, code.target.vectorBytes);
      }
    }
  }
  return next;
}

int64_t Decode::getColumn(int64_t lane, int64_t half) {
  constexpr int64_t pairs = kInterleaved / 2;
  return lane / pairs * kInterleaved + half * pairs + lane % pairs;
}

void Decode::addIntegerSums(Value d, int64_t firstQuery, Value block,
                            ValueRange sums, int64_t vectors) {
  int64_t count = sums.size() / vectors;
  for (int64_t q = 0; q < count; ++q) {
    Value factor =
        broadcast(b, type,
                  memref::LoadOp::create(
                      b, code.decodeWeights,
                      addIndex(b, getIntegerFactors(block), firstQuery + q)));
    for (int64_t v = 0; v < vectors; v += 2)
      for (int64_t part : {0, 1}) {
        // The shuffle mask: for each column, the lane that holds it.
        SmallVector<int64_t> mask(lanes);
        for (int64_t half : {0, 1})
          for (int64_t i = 0; i < lanes; ++i)
            if (int64_t column = getColumn(i, half); column / lanes == part)
              mask[column % lanes] = half * lanes + i;
        Value sum = vector::ShuffleOp::create(b, sums[v * count + q],
                                              sums[(v + 1) * count + q], mask);
        SmallVector<Value> at{getRowOfQuery(block, firstQuery + q),
                              addIndex(b, d, (v + part) * lanes)};
        Value before = loadVector(b, type, code.decodeAcc, at);
        storeVector(b,
                    math::FmaOp::create(b,
                                        arith::SIToFPOp::create(b, type, sum),
                                        factor, before),
                    code.decodeAcc, at);
      }
  }
}

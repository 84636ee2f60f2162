//===- AttentionInts.cpp - decode on keys of i8 -----------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A cache of i8 has half the bytes of one of bf16. With several query heads for
// each key head, decode on it is bound by products, not by memory. pmaddwd adds
// the products of two pairs of i16 to i32 in each lane, as fast as one product
// of f32. Queries of 16 bits are therefore quantized to i16, relative to the
// largest channel of their row: the error is at most 2^-16 of that channel,
// where bf16 dot products round each channel by up to 2^-9. Sums are exact: 256
// products are less than 2^31.
//
// The scratch row of a query holds its i16, two in a word, followed by the
// factor that converts integer sums to scores.
//
//===----------------------------------------------------------------------===//

#include "AttentionDecode.h"

#include "ElementwiseBuilder.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

#include <cmath>

using namespace mlir;
using namespace mlir::posenc;

static constexpr double kLargest = 32767;

bool Decode::canUseIntegers(AttentionOp op) {
  // Independent of the target, like everything that decides the bits.
  constexpr int64_t pairs = 32;
  Type query = getElementTypeOrSelf(op.getQuery().getType());
  int64_t dim = cast<ShapedType>(op.getKey().getType()).getShape().back();
  return getElementTypeOrSelf(op.getKey().getType()).isInteger(8) &&
         query.getIntOrFloatBitWidth() == 16 && dim % pairs == 0 &&
         !op.getKeyRotation() && !op.getKeyNorm();
}

void Decode::emitIntegerQuery(Value row, double scale) {
  Value zero = createIndex(b, 0), dim = createIndex(b, code.dim);
  auto load = [&](Value d) { return loadVector(b, type, code.rows, {row, d}); };
  ValueRange sizes =
      createLoop(b, zero, dim, lanes, createSplat(b, type, 0),
                 [&](Value d, ValueRange carried) {
                   Value size = math::AbsFOp::create(b, load(d));
                   // A NaN stays.
                   return SmallVector<Value>{
                       arith::MaximumFOp::create(b, size, carried[0])};
                 });
  Value largest = sizes[0];
  for (int64_t distance = 1; distance < lanes; distance *= 2) {
    SmallVector<int64_t> others;
    for (int64_t i = 0; i < lanes; ++i)
      others.push_back(i ^ distance);
    largest = arith::MaximumFOp::create(
        b, largest, vector::ShuffleOp::create(b, largest, largest, others));
  }
  ElementwiseBuilder v(b, b.getLoc(), largest);
  auto compare = [&](arith::CmpFPredicate predicate, double limit) -> Value {
    return arith::CmpFOp::create(b, predicate, largest, v.f32(limit));
  };
  // Rows without a number to divide by are 0. Times the largest number, sums of
  // them are 0 or, if that is infinite or NaN, NaN.
  Value isUsual = v.andi(compare(arith::CmpFPredicate::OGT, 0x1p-100),
                         compare(arith::CmpFPredicate::OLT, HUGE_VAL));
  Value factor = v.binary<arith::DivFOp>(v.f32(kLargest), largest);
  Type i32 = b.getI32Type(), i16 = b.getI16Type();
  SmallVector<int64_t> inOrder;
  for (int64_t i = 0; i < 2 * lanes; ++i)
    inOrder.push_back(i);
  // Words are written behind where floats have been read.
  createLoop(b, zero, dim, 2 * lanes, [&](Value d) {
    SmallVector<Value> halves;
    for (int64_t i : {0, 1}) {
      Value x = v.mul(load(addIndex(b, d, i * lanes)), factor);
      x = v.select(isUsual, math::RoundEvenOp::create(b, x), v.f32(0));
      halves.push_back(
          v.cast<arith::TruncIOp>(i16, v.cast<arith::FPToSIOp>(i32, x)));
    }
    Value pairs = vector::ShuffleOp::create(b, halves[0], halves[1], inOrder);
    Value word = b.createOrFold<arith::DivUIOp>(d, createIndex(b, 2));
    storeVector(b, vector::BitCastOp::create(b, type, pairs), code.rows,
                {row, word});
  });
  Value first = vector::ExtractOp::create(b, largest, ArrayRef<int64_t>{0});
  ElementwiseBuilder s(b, b.getLoc(), first);
  memref::StoreOp::create(b, s.mul(first, s.f32(scale / kLargest)), code.rows,
                          ValueRange{row, createIndex(b, code.dim / 2)});
}

Value Decode::loadIntegerFactors(Value block) {
  SmallVector<Value> factors, ofLanes;
  for (int64_t q = 0; q < queries; ++q)
    factors.push_back(memref::LoadOp::create(
        b, code.rows,
        ValueRange{getRowOfQuery(block, q), createIndex(b, code.dim / 2)}));
  for (int64_t lane = 0; lane < lanes; ++lane)
    ofLanes.push_back(factors[lane % queries]);
  return vector::FromElementsOp::create(b, type, ofLanes);
}

/// `sum` with the products of two neighbours in each lane.
static Value addPairs(ImplicitLocOpBuilder &b, Value x, Value y, Value sum,
                      unsigned vectorBytes) {
  // Only x86 has vectors of more than 16 bytes. The backend makes one
  // instruction of both operations where there is one.
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

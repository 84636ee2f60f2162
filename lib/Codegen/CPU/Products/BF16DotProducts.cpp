//===- BF16DotProducts.cpp - tile products by VDPBF16PS -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The instruction vdpbf16ps of AVX512-BF16 adds, in each f32 lane, the products
// of two pairs of bf16, as fast as one product of f32. It adds the product of
// the second elements first, then that of the first ones. It rounds each sum to
// nearest even whatever MXCSR says; products of bf16 are exact. It treats
// subnormal inputs and results as 0.
//
//===----------------------------------------------------------------------===//

#include "TileProductUnits.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"

using namespace mlir;
using namespace mlir::posenc;

/// The f32 of a vector.
static constexpr int64_t kDotLanes = 16;

/// Returns `sum` plus the products of two vectors of words.
static Value addBF16Dots(ImplicitLocOpBuilder &builder, Value a, Value b,
                         Value sum) {
  auto toPairs = [&](Value words) -> Value {
    return vector::BitCastOp::create(
        builder, VectorType::get({2 * kDotLanes}, builder.getBF16Type()),
        words);
  };
  Value left = toPairs(a), right = toPairs(b);
  return x86vector::DotBF16Op::create(builder, sum.getType(), sum, left, right);
}

namespace {
struct BF16DotUnit {
  static bool computes(TileProductOp op, const ProductTarget &target);
  static void lower(RewriterBase &rewriter, TileProductOp op);
};
} // namespace

bool BF16DotUnit::computes(TileProductOp op, const ProductTarget &target) {
  return target.hasBF16Dots && op.getElements() == ProductElements::BF16Pairs &&
         !op.getSkipsZeros() && fitsInVectors(op, kDotLanes);
}

void BF16DotUnit::lower(RewriterBase &rewriter, TileProductOp op) {
  if (op.hasVectorSums())
    return lowerInRegisters(rewriter, op, addBF16Dots);
  bool transposed = op.getTransposed();
  int64_t rows = op.getNumRows(), columns = op.getNumColumns();
  lowerInTile(
      rewriter, op, columns,
      [&](ImplicitLocOpBuilder &builder, Value column, ValueRange row,
          ValueRange sums) {
        auto slice = [&](Value vector, int64_t first) -> Value {
          return vector::ExtractStridedSliceOp::create(builder, vector, first,
                                                       kDotLanes, 1);
        };
        Type words = VectorType::get({kDotLanes},
                                     getElementTypeOrSelf(column.getType()));
        Value result = sums.front();
        for (int64_t first = 0; first < columns; first += kDotLanes) {
          Value right = slice(row.front(), first);
          for (int64_t i = 0; i < rows; ++i) {
            SmallVector<int64_t> at{i, 0};
            if (transposed)
              std::swap(at[0], at[1]);
            Value factor = vector::BroadcastOp::create(
                builder, words, vector::ExtractOp::create(builder, column, at));
            Value sum = slice(
                vector::ExtractOp::create(builder, sums.front(), i), first);
            result = vector::InsertStridedSliceOp::create(
                builder, addBF16Dots(builder, factor, right, sum), result,
                ArrayRef<int64_t>{i, first}, ArrayRef<int64_t>{1});
          }
        }
        return SmallVector<Value>{result};
      });
}

ProductUnit mlir::posenc::getBF16DotUnit() {
  return {BF16DotUnit::computes, BF16DotUnit::lower};
}

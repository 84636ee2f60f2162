//===- Int8DotProducts.cpp - tile products by VPDPBUSD --------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The instruction vpdpbusd of AVX512-VNNI adds, in each lane of 32 bits, the
// products of four unsigned and four signed bytes, without saturation.
//
//===----------------------------------------------------------------------===//

#include "TileProductUnits.h"

#include "posenc/Numerics/ByteDots.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::posenc;

/// The words of a vector.
static constexpr int64_t kDotLanes = 16;

ByteDot mlir::posenc::getByteDot(TileProductOp op, Value a, Value b,
                                 Value sum) {
  if (op.getElements() == ProductElements::U8S8Quads)
    std::swap(a, b);
  return {a, b, sum};
}

namespace {
struct Int8DotUnit {
  static bool computes(TileProductOp op, const ProductTarget &target);
  static void lower(RewriterBase &rewriter, TileProductOp op);
};
} // namespace

bool Int8DotUnit::computes(TileProductOp op, const ProductTarget &target) {
  return target.hasInt8Dots && op.hasQuads() && fitsInVectors(op, kDotLanes);
}

void Int8DotUnit::lower(RewriterBase &rewriter, TileProductOp op) {
  if (op.hasVectorSums())
    return lowerInRegisters(
        rewriter, op,
        [&](ImplicitLocOpBuilder &builder, Value a, Value b, Value sum) {
          return emitVnniDot(builder, builder.getLoc(),
                             getByteDot(op, a, b, sum));
        });
  lowerInTile(rewriter, op, op.getNumColumns(),
              [&](ImplicitLocOpBuilder &builder, Value column, ValueRange row,
                  ValueRange sums) {
                return addRows(builder, op, column, row, sums,
                               [&](Value factor, Value vector, Value sum) {
                                 return emitVnniDot(
                                     builder, builder.getLoc(),
                                     getByteDot(op, factor, vector, sum));
                               });
              });
}

ProductUnit mlir::posenc::getInt8DotUnit() {
  return {Int8DotUnit::computes, Int8DotUnit::lower};
}

//===- FMAProducts.cpp - tile products by fused multiply-adds -------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileProductUnits.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::posenc;

Value mlir::posenc::addFMA(ImplicitLocOpBuilder &builder, Value a, Value b,
                           Value sum, bool skipsZeros) {
  Value added = math::FmaOp::create(builder, a, b, sum);
  if (!skipsZeros)
    return added;
  Value zero =
      arith::ConstantOp::create(builder, builder.getZeroAttr(b.getType()));
  Value isOut =
      arith::CmpFOp::create(builder, arith::CmpFPredicate::OEQ, b, zero);
  return arith::SelectOp::create(builder, isOut, sum, added);
}

namespace {
struct FMAUnit {
  static bool computes(TileProductOp op, const ProductTarget &);
  static void lower(RewriterBase &rewriter, TileProductOp op);
};
} // namespace

bool FMAUnit::computes(TileProductOp op, const ProductTarget &) {
  return op.getElements() == ProductElements::Floats && fitsInVectors(op);
}

void FMAUnit::lower(RewriterBase &rewriter, TileProductOp op) {
  bool skipsZeros = op.getSkipsZeros();
  if (op.hasVectorSums())
    return lowerInRegisters(rewriter, op,
                            [&](ImplicitLocOpBuilder &builder, Value factor,
                                Value vector, Value sum) {
                              return addFMA(builder, factor, vector, sum,
                                            skipsZeros);
                            });
  lowerInTile(rewriter, op, getLanes(op),
              [&](ImplicitLocOpBuilder &builder, Value column, ValueRange row,
                  ValueRange sums) {
                return addRows(builder, op, column, row, sums,
                               [&](Value factor, Value vector, Value sum) {
                                 return addFMA(builder, factor, vector, sum,
                                               skipsZeros);
                               });
              });
}

ProductUnit mlir::posenc::getFMAUnit() {
  return {FMAUnit::computes, FMAUnit::lower};
}

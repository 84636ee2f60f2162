//===- PortableProducts.cpp - tile products on every CPU ------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileProductUnits.h"

#include "posenc/Numerics/ElementwiseBuilder.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace mlir::posenc;

/// Returns the first and the second numbers of words in f32.
static std::pair<Value, Value> splitPair(ImplicitLocOpBuilder &builder,
                                         ProductElements elements,
                                         Value words) {
  ElementwiseBuilder b(builder, builder.getLoc(), words);
  Type f32 = builder.getF32Type();
  if (getElementTypeOrSelf(words.getType()) == f32)
    words = b.cast<arith::BitcastOp>(builder.getI32Type(), words);
  if (elements == ProductElements::BF16Pairs) {
    Value low = b.shl(words, b.i32(16));
    Value high = b.andi(words, b.i32(0xffff0000));
    return {b.cast<arith::BitcastOp>(f32, low),
            b.cast<arith::BitcastOp>(f32, high)};
  }
  auto toF32 = [&](Value low) {
    Value bits = b.cast<arith::TruncIOp>(builder.getI16Type(), low);
    return b.cast<arith::ExtFOp>(
        f32, b.cast<arith::BitcastOp>(builder.getF16Type(), bits));
  };
  Value first = toF32(words);
  return {first, toF32(b.shru(words, b.i32(16)))};
}

/// Returns `sum` plus the products of two elements of panels.
static Value addElements(ImplicitLocOpBuilder &builder, TileProductOp op,
                         Value a, Value b, Value sum) {
  bool skipsZeros = op.getSkipsZeros();
  if (op.hasQuads())
    return emitByteDot(builder, builder.getLoc(), getByteDot(op, a, b, sum));
  if (!op.hasWords())
    return addFMA(builder, a, b, sum, skipsZeros);
  auto [firstA, secondA] = splitPair(builder, op.getElements(), a);
  auto [firstB, secondB] = splitPair(builder, op.getElements(), b);
  sum = addFMA(builder, secondA, secondB, sum, skipsZeros);
  return addFMA(builder, firstA, firstB, sum, skipsZeros);
}

/// Emits a linalg.generic, whose outermost loop is the depth.
static void lowerToGeneric(RewriterBase &rewriter, TileProductOp op) {
  rewriter.setInsertionPoint(op);
  AffineExpr k, m, n;
  bindDims(op.getContext(), k, m, n);
  SmallVector<AffineExpr, 4> a{m, k};
  if (op.getTransposed())
    std::swap(a[0], a[1]);
  SmallVector<SmallVector<AffineExpr, 4>> maps{a, {k, n}, {m, n}};
  using utils::IteratorType;
  auto generic = linalg::GenericOp::create(
      rewriter, op.getLoc(), op->getResultTypes(),
      ValueRange{op.getA(), op.getB()}, op.getSums(),
      AffineMap::inferFromExprList(maps, op.getContext()),
      ArrayRef{IteratorType::reduction, IteratorType::parallel,
               IteratorType::parallel},
      [&](OpBuilder &nested, Location loc, ValueRange args) {
        ImplicitLocOpBuilder builder(loc, nested);
        SmallVector<Value> factors(args.take_front(2));
        for (Value &factor : factors)
          if (!op.hasWords() && factor.getType() != args[2].getType())
            factor = arith::ExtFOp::create(builder, args[2].getType(), factor);
        linalg::YieldOp::create(
            nested, loc,
            addElements(builder, op, factors[0], factors[1], args[2]));
      });
  rewriter.replaceOp(op, generic.getResults());
}

namespace {
struct PortableUnit {
  static bool computes(TileProductOp, const ProductTarget &);
  static void lower(RewriterBase &rewriter, TileProductOp op);
};
} // namespace

bool PortableUnit::computes(TileProductOp, const ProductTarget &) {
  return true;
}

void PortableUnit::lower(RewriterBase &rewriter, TileProductOp op) {
  if (!op.hasVectorSums())
    return lowerToGeneric(rewriter, op);
  lowerInRegisters(
      rewriter, op,
      [&](ImplicitLocOpBuilder &builder, Value factor, Value vector,
          Value sum) { return addElements(builder, op, factor, vector, sum); });
}

ProductUnit mlir::posenc::getPortableUnit() {
  return {PortableUnit::computes, PortableUnit::lower};
}

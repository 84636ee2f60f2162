//===- TileProduct.cpp - register tiles of AMX as linalg ------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tiles of AMX are loaded from memory, so until bufferization a register tile
// is a linalg.generic over words of two bf16. The low half of a word becomes
// the f32 of its first element by a shift, the high half that of its second
// element by a mask.
//
//===----------------------------------------------------------------------===//

#include "ProductTiling.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::posenc;

/// The bits of half a word, and the mask of its upper half.
static constexpr int64_t kHalfBits = 16, kUpperHalf = -65536;

/// Returns the maps of rows x words, words x columns and rows x columns.
static SmallVector<AffineMap> getProductMaps(MLIRContext *context) {
  AffineExpr m, n, k;
  bindDims(context, m, n, k);
  SmallVector<SmallVector<AffineExpr, 4>> maps{{m, k}, {k, n}, {m, n}};
  return AffineMap::inferFromExprList(maps, context);
}

Value mlir::posenc::createTileProduct(OpBuilder &builder, Location loc,
                                      Value tile, Value left, Value panel) {
  using utils::IteratorType;
  auto product = linalg::GenericOp::create(
      builder, loc, tile.getType(), ValueRange{left, panel}, tile,
      getProductMaps(builder.getContext()),
      ArrayRef{IteratorType::parallel, IteratorType::parallel,
               IteratorType::reduction},
      [&](OpBuilder &nested, Location l, ValueRange args) {
        Type f32 = nested.getF32Type();
        Value width = arith::ConstantIntOp::create(nested, l, kHalfBits, 32);
        Value upper = arith::ConstantIntOp::create(nested, l, kUpperHalf, 32);
        SmallVector<Value> even, odd;
        for (Value word : args.take_front(2)) {
          Value low = arith::ShLIOp::create(nested, l, word, width);
          even.push_back(arith::BitcastOp::create(nested, l, f32, low));
          Value high = arith::AndIOp::create(nested, l, word, upper);
          odd.push_back(arith::BitcastOp::create(nested, l, f32, high));
        }
        Value sum = args[2];
        for (ArrayRef<Value> factors : {even, odd})
          sum = arith::AddFOp::create(
              nested, l, sum,
              arith::MulFOp::create(nested, l, factors[0], factors[1]));
        linalg::YieldOp::create(nested, l, sum);
      });
  return product.getResult(0);
}

/// Whether `value` has the bits of one half of `word`, by an operation with the
/// constant `operand`.
template <typename HalfOp>
static bool isHalf(Value value, Value word, int64_t operand) {
  auto bits = value.getDefiningOp<arith::BitcastOp>();
  auto half = bits ? bits.getIn().getDefiningOp<HalfOp>() : HalfOp();
  APInt constant;
  return half && half.getLhs() == word &&
         matchPattern(half.getRhs(), m_ConstantInt(&constant)) &&
         constant.getSExtValue() == operand;
}

/// Whether `value` is the product of such halves of both arguments of `body`.
template <typename HalfOp>
static bool multipliesHalves(Value value, Block &body, int64_t operand) {
  auto product = value.getDefiningOp<arith::MulFOp>();
  return product &&
         isHalf<HalfOp>(product.getLhs(), body.getArgument(0), operand) &&
         isHalf<HalfOp>(product.getRhs(), body.getArgument(1), operand);
}

bool mlir::posenc::isTileProduct(linalg::LinalgOp op) {
  if (!isa<linalg::GenericOp>(op) || op->getNumOperands() != 3 ||
      op.getNumReductionLoops() != 1 ||
      op.getIndexingMapsArray() != getProductMaps(op->getContext()))
    return false;
  Block &body = op->getRegion(0).front();
  auto last =
      body.getTerminator()->getOperand(0).getDefiningOp<arith::AddFOp>();
  auto first =
      last ? last.getLhs().getDefiningOp<arith::AddFOp>() : arith::AddFOp();
  return first && first.getLhs() == body.getArgument(2) &&
         multipliesHalves<arith::ShLIOp>(first.getRhs(), body, kHalfBits) &&
         multipliesHalves<arith::AndIOp>(last.getRhs(), body, kUpperHalf);
}

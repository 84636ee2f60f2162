//===- ZipVectors.cpp - even and odd elements without shuffles ------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ZipVectors.h"

#include "posenc/Numerics/BF16.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Iterators.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::posenc;

//===----------------------------------------------------------------------===//
// Equal operations on even and odd elements
//===----------------------------------------------------------------------===//

/// Returns the row of which two vectors are the even and the odd elements (the
/// odd and the even ones if `areSwapped`), or null.
static Value findRow(Value even, Value odd, bool areSwapped) {
  auto halves = even.getDefiningOp<vector::DeinterleaveOp>();
  if (!halves || odd.getDefiningOp() != halves)
    return nullptr;
  if (areSwapped)
    std::swap(even, odd);
  bool isRow = even == halves.getRes1() && odd == halves.getRes2();
  return isRow ? halves.getSource() : Value();
}

/// Whether two vectors are computed by the same operations, `even` from the odd
/// and `odd` from the even elements of a row.
static bool areSwapped(Value even, Value odd) {
  if (findRow(even, odd, /*areSwapped=*/true))
    return true;
  Operation *evenOp = even.getDefiningOp(), *oddOp = odd.getDefiningOp();
  return evenOp && oddOp && evenOp->getNumOperands() == 1 &&
         oddOp->getNumOperands() == 1 &&
         OpTrait::hasElementwiseMappableTraits(evenOp) &&
         areSwapped(evenOp->getOperand(0), oddOp->getOperand(0));
}

/// Whether the interleaved elements of two vectors can be computed without a
/// vector.interleave.
static bool canZip(Value even, Value odd) {
  if (findRow(even, odd, /*areSwapped=*/false) ||
      findRow(even, odd, /*areSwapped=*/true))
    return true;
  Operation *evenOp = even.getDefiningOp(), *oddOp = odd.getDefiningOp();
  if (!evenOp || !oddOp || evenOp->getName() != oddOp->getName() ||
      evenOp->getAttrs() != oddOp->getAttrs())
    return false;
  if (auto constant = dyn_cast<arith::ConstantOp>(evenOp))
    return isa<SplatElementsAttr>(constant.getValue());
  return OpTrait::hasElementwiseMappableTraits(evenOp) &&
         evenOp->getNumResults() == 1 && evenOp->getNumOperands() > 0 &&
         llvm::all_of(
             llvm::zip_equal(evenOp->getOperands(), oddOp->getOperands()),
             [](auto operands) {
               auto [evenOperand, oddOperand] = operands;
               return canZip(evenOperand, oddOperand);
             });
}

/// Computes the interleaved elements of two vectors for which `canZip` holds.
static Value zip(OpBuilder &builder, Value even, Value odd) {
  if (Value row = findRow(even, odd, /*areSwapped=*/false))
    return row;
  Location loc = even.getLoc();
  auto type = cast<VectorType>(even.getType());
  int64_t count = 2 * type.getNumElements();
  // Compute the row in its order, so that CSE finds it for both orders.
  if (areSwapped(even, odd)) {
    Value row = zip(builder, odd, even);
    SmallVector<int64_t> neighbours;
    for (int64_t lane = 0; lane < count; ++lane)
      neighbours.push_back(lane ^ 1);
    return vector::ShuffleOp::create(builder, loc, row, row, neighbours);
  }
  VectorType zipped = VectorType::get({count}, type.getElementType());
  Operation *op = even.getDefiningOp();
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return arith::ConstantOp::create(
        builder, loc,
        cast<SplatElementsAttr>(constant.getValue()).resizeSplat(zipped));
  SmallVector<Value> operands;
  for (auto [evenOperand, oddOperand] :
       llvm::zip_equal(op->getOperands(), odd.getDefiningOp()->getOperands()))
    operands.push_back(zip(builder, evenOperand, oddOperand));
  return builder
      .create(loc, op->getName().getIdentifier(), operands, TypeRange(zipped),
              op->getAttrs())
      ->getResult(0);
}

//===----------------------------------------------------------------------===//
// Halves of words
//===----------------------------------------------------------------------===//

/// Whether every NaN of a vector has zeros in its lower 16 bits. This holds for
/// extended bf16, for tables that a kernel computes, and for results of
/// arithmetic on these.
static bool hasShortNaNs(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (auto widened = dyn_cast<arith::ExtFOp>(op))
    return getElementTypeOrSelf(widened.getIn()).isBF16();
  if (auto load = dyn_cast<vector::LoadOp>(op))
    return load.getBase().getDefiningOp<memref::AllocaOp>() != nullptr;
  return isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::NegFOp,
             math::FmaOp>(op) &&
         llvm::all_of(op->getOperands(), hasShortNaNs);
}

/// Returns the two f32 vectors that are rounded to bf16 and interleaved, or
/// nullopt.
static std::optional<BF16Halves> findRounded(vector::InterleaveOp op) {
  auto even = op.getLhs().getDefiningOp<arith::TruncFOp>();
  auto odd = op.getRhs().getDefiningOp<arith::TruncFOp>();
  auto isRounded = [](arith::TruncFOp rounded) {
    return rounded && getElementTypeOrSelf(rounded.getType()).isBF16() &&
           getElementTypeOrSelf(rounded.getIn()).isF32() &&
           hasShortNaNs(rounded.getIn());
  };
  if (!isRounded(even) || !isRounded(odd))
    return std::nullopt;
  return BF16Halves{even.getIn(), odd.getIn()};
}

/// Replaces the even and odd elements of an extended bf16 row by shifts and
/// masks of its 32-bit words.
static void splitWords(RewriterBase &rewriter, vector::DeinterleaveOp op) {
  auto isWidened = [](Operation *user) {
    auto widened = dyn_cast<arith::ExtFOp>(user);
    return widened && getElementTypeOrSelf(widened.getType()).isF32();
  };
  if (!op.getSourceVectorType().getElementType().isBF16() ||
      !llvm::all_of(op->getUsers(), isWidened))
    return;
  rewriter.setInsertionPoint(op);
  BF16Halves halves = splitBF16(rewriter, op.getLoc(), op.getSource());
  for (auto [result, half] :
       {std::pair(op.getRes1(), halves.even), {op.getRes2(), halves.odd}})
    for (Operation *user : llvm::make_early_inc_range(result.getUsers()))
      rewriter.replaceOp(user, half);
  rewriter.eraseOp(op);
}

void mlir::posenc::zipVectors(RewriterBase &rewriter, Operation *root) {
  root->walk([&](vector::InterleaveOp op) {
    if (op.getSourceVectorType().getRank() != 1)
      return;
    rewriter.setInsertionPoint(op);
    if (std::optional<BF16Halves> halves = findRounded(op))
      rewriter.replaceOp(op, joinBF16(rewriter, op.getLoc(), *halves));
    else if (canZip(op.getLhs(), op.getRhs()))
      rewriter.replaceOp(op, zip(rewriter, op.getLhs(), op.getRhs()));
  });
  // Dead operations still use the halves.
  root->walk<WalkOrder::PostOrder, ReverseIterator>([&](Operation *op) {
    if (isOpTriviallyDead(op))
      rewriter.eraseOp(op);
  });
  SmallVector<vector::DeinterleaveOp> halves;
  root->walk([&](vector::DeinterleaveOp op) {
    if (op.getSourceVectorType().getRank() == 1)
      halves.push_back(op);
  });
  for (vector::DeinterleaveOp op : halves)
    splitWords(rewriter, op);
}

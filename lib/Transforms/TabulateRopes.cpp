//===- TabulateRopes.cpp - ropes that need tables -------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The angles of a rope are the products of one position and one frequency, so
// no rope has factors that depend on the position, or the angles of two ropes
// with different frequencies. Tables of cos and sin have both.
//
//===----------------------------------------------------------------------===//

#include "RopeTables.h"

#include "posenc/IR/Remarks.h"
#include "posenc/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCTABULATEROPESPASS
#include "posenc/Transforms/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

#define DEBUG_TYPE "posenc-tabulate-ropes"

/// Emits the tables of the angle `outer + inner`, in place of those of the
/// outer rope, with the signs of both ropes: the rotation by them is a forward
/// one.
static ValueRange addAngles(OpBuilder &builder, RopeOp outer, RopeOp inner) {
  Location loc = outer.getLoc();
  auto [innerCos, innerSin] = createRopeTables(builder, inner);
  auto [outerCos, outerSin] = createRopeTables(builder, outer);
  auto type = cast<RankedTensorType>(outerCos.getType());
  AffineMap map = builder.getMultiDimIdentityMap(type.getRank());
  auto body = [&](OpBuilder &b, Location loc, ValueRange args) {
    auto multiply = [&](Value x, Value y) -> Value {
      return arith::MulFOp::create(b, loc, x, y);
    };
    auto negateIf = [&](bool negates, Value x) -> Value {
      return negates ? arith::NegFOp::create(b, loc, x).getResult() : x;
    };
    Value s1 = negateIf(inner.getInverse(), args[1]);
    Value s2 = negateIf(outer.getInverse(), args[3]);
    Value cos = arith::SubFOp::create(b, loc, multiply(args[2], args[0]),
                                      multiply(s2, s1));
    Value sin = arith::AddFOp::create(b, loc, multiply(s2, args[0]),
                                      multiply(args[2], s1));
    linalg::YieldOp::create(b, loc, ValueRange{cos, sin});
  };
  SmallVector<utils::IteratorType> loops(type.getRank(),
                                         utils::IteratorType::parallel);
  return linalg::GenericOp::create(builder, loc, TypeRange{type, type},
                                   ValueRange{innerCos, innerSin},
                                   ValueRange{outerCos, outerSin},
                                   SmallVector<AffineMap>(4, map), loops, body)
      .getResults();
}

/// Whether the tables of both ropes have the same shape and the same meaning.
static bool rotateAlike(RopeOp a, RopeOp b) {
  auto getShape = [](RopeOp op) {
    auto type = cast<RankedTensorType>(op.getPositions().getType());
    return type.getShape().drop_front(op.getAxesAttr() ? 1 : 0);
  };
  return a.getPairing() == b.getPairing() && a.getDims() == b.getDims() &&
         a.getOffset() == b.getOffset() &&
         a.getFrequencies().getDim() == b.getFrequencies().getDim() &&
         isa<RankedTensorType>(a.getPositions().getType()) &&
         isa<RankedTensorType>(b.getPositions().getType()) &&
         getShape(a) == getShape(b);
}

/// Returns the number of rows that share a position, of all tensors together. A
/// dynamic size counts as 1.
static int64_t countRowsPerPosition(RopeOp op) {
  int64_t rows = 0;
  for (Value input : op.getInputs()) {
    ArrayRef<int64_t> shape = cast<ShapedType>(input.getType()).getShape();
    int64_t ofTensor = 1;
    for (auto [dim, size] : llvm::enumerate(shape.drop_back()))
      if (!ShapedType::isDynamic(size) &&
          !llvm::is_contained(op.getDims(), static_cast<int64_t>(dim)))
        ofTensor *= size;
    rows += ofTensor;
  }
  return rows;
}

namespace {
/// Rewrites a rope of a rope that canonicalization does not compose to one
/// rotation by the sum of the angles.
struct ComposeAngles final : OpRewritePattern<RopeOp> {
  ComposeAngles(MLIRContext *context, int64_t minRows)
      : OpRewritePattern(context, PatternBenefit(2)), minRows(minRows) {}

  LogicalResult matchAndRewrite(RopeOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPureTensorSemantics())
      return rewriter.notifyMatchFailure(op, "not on tensors");
    auto inner = op.getInputs().front().getDefiningOp<RopeOp>();
    if (!inner || inner == op || inner.getResults() != op.getInputs() ||
        !rotateAlike(op, inner))
      return rewriter.notifyMatchFailure(op, "operand is no such rope");
    if (!llvm::all_of(inner->getUsers(),
                      [&](Operation *user) { return user == op; }))
      return rewriter.notifyMatchFailure(op, "inner rope has other users");
    // In a loop, the outer rope may run more often.
    if (inner->getBlock() != op->getBlock())
      return rewriter.notifyMatchFailure(op, "inner rope is in another block");
    if (!op.getScaleAttr() && !inner.getScaleAttr() &&
        countRowsPerPosition(op) < minRows) {
      reportMissed(
          op, DEBUG_TYPE,
          "too few rows share the tables that would compose two ropes");
      return rewriter.notifyMatchFailure(op, "few rows for each position");
    }
    reportChoice(op, DEBUG_TYPE, "composed with the rope that it rotates");
    ValueRange tables = addAngles(rewriter, op, inner);
    SmallVector<Value> inits(op.getInits());
    for (Value &init : inits)
      if (init.getDefiningOp() == inner)
        init = inner.getInits()[cast<OpResult>(init).getResultNumber()];
    rewriter.replaceOpWithNewOp<RotateOp>(
        op, op.getResultTypes(), inner.getInputs(), tables[0], tables[1], inits,
        op.getPairingAttr(), op.getDimsAttr(), op.getOffsetAttr(),
        /*inverse=*/nullptr, /*full_tables=*/nullptr);
    return success();
  }

private:
  int64_t minRows;
};
} // namespace

/// Rewrites a rope with a scale to a rotation by tables.
static LogicalResult tabulateScale(RopeOp op, PatternRewriter &rewriter) {
  if (!op.hasPureTensorSemantics() || !op.getScaleAttr())
    return rewriter.notifyMatchFailure(op, "no tensors with a scale");
  reportChoice(op, DEBUG_TYPE, "has tables, as its factors need them");
  replaceByRotation(rewriter, op);
  return success();
}

namespace {
struct TabulateRopes final
    : mlir::posenc::impl::PosencTabulateRopesPassBase<TabulateRopes> {
  using Base::Base;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    // Composes ropes with scales as well, before they are tables.
    patterns.add<ComposeAngles>(&getContext(), minRows);
    patterns.add(tabulateScale);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace

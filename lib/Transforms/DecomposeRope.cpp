//===- DecomposeRope.cpp - rope to sincos and rotate ----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/IR/Posenc.h"
#include "posenc/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCDECOMPOSEROPEPASS
#include "posenc/Transforms/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;
using ::posenc::BigFloat;

/// Returns the leading sizes of a rope's tables, one per dimension of positions
/// without axes.
static SmallVector<OpFoldResult> getTableSizes(RopeOp op, OpBuilder &builder) {
  Location loc = op.getLoc();
  // A scalar position counts along a dimension of the tensors.
  if (op.getScalarPositionOperand())
    return {tensor::getMixedSize(builder, loc, op.getInputs().front(),
                                 op.getDims().front())};
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(builder, loc, op.getPositions());
  if (op.getAxesAttr())
    sizes.erase(sizes.begin());
  return sizes;
}

/// Multiplies both tables by `1/att^2`, in place. The tables contain the
/// attention factor `att`, but an inverse rope divides by it.
static ValueRange scaleTables(OpBuilder &builder, Location loc,
                              ValueRange tables, const BigFloat &att) {
  auto type = cast<RankedTensorType>(tables.front().getType());
  double scale = (BigFloat(1.0) / (att * att)).toDouble();
  AffineMap map = builder.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> loops(type.getRank(),
                                         utils::IteratorType::parallel);
  auto body = [&](OpBuilder &b, Location loc, ValueRange args) {
    Value factor = arith::ConstantOp::create(
        b, loc, b.getFloatAttr(type.getElementType(), scale));
    SmallVector<Value> scaled;
    for (Value element : args)
      scaled.push_back(arith::MulFOp::create(b, loc, element, factor));
    linalg::YieldOp::create(b, loc, scaled);
  };
  return linalg::GenericOp::create(builder, loc, TypeRange{type, type},
                                   /*inputs=*/ValueRange(), tables,
                                   ArrayRef<AffineMap>{map, map}, loops, body)
      .getResults();
}

namespace {

/// Rewrites rope(x, p) to rotate(x, sincos(p)).
struct DecomposeRope : OpRewritePattern<RopeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(RopeOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPureTensorSemantics())
      return rewriter.notifyMatchFailure(op, "not on tensors");
    Location loc = op.getLoc();
    FrequenciesAttr frequencies = op.getFrequencies();
    SmallVector<OpFoldResult> sizes = getTableSizes(op, rewriter);
    sizes.push_back(rewriter.getIndexAttr(frequencies.getNumPairs()));
    bool wide = getElementTypeOrSelf(op.getInputs().front()).isF64();
    Type element = wide ? rewriter.getF64Type() : rewriter.getF32Type();

    SmallVector<Value> inits;
    for (int i = 0; i < 2; ++i)
      inits.push_back(tensor::EmptyOp::create(rewriter, loc, sizes, element));
    ValueRange tables =
        SincosOp::create(rewriter, loc, ValueRange(inits).getTypes(),
                         op.getPositions(), op.getTurns(), inits,
                         op.getFrequenciesAttr(), op.getAxesAttr())
            .getResults();
    if (op.getInverse() && !frequencies.hasUnitAttentionFactor())
      tables = scaleTables(rewriter, loc, tables,
                           frequencies.computeAttentionFactor());
    rewriter.replaceOpWithNewOp<RotateOp>(
        op, op.getResultTypes(), op.getInputs(), tables[0], tables[1],
        op.getInits(), op.getPairingAttr(), op.getDimsAttr(),
        op.getOffsetAttr(), op.getInverseAttr());
    return success();
  }
};

struct PosencDecomposeRopePass
    : mlir::posenc::impl::PosencDecomposeRopePassBase<PosencDecomposeRopePass> {
  using Base::Base;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<DecomposeRope>(&getContext());
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};

} // namespace

//===- SinusoidalToLinalg.cpp - sinusoidal to linalg ----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SincosGeneric.h"

#include "posenc/Conversion/Passes.h"
#include "posenc/Conversion/PosencToLinalg.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_CONVERTPOSENCSINUSOIDALTOLINALGPASS
#include "posenc/Conversion/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

namespace {

struct ConvertSinusoidal : OpRewritePattern<SinusoidalOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(SinusoidalOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPureTensorSemantics())
      return rewriter.notifyMatchFailure(op, "not on tensors");
    Location loc = op.getLoc();
    Value table = op.getInits().front();
    if (isEmptyTensor(table)) {
      rewriter.replaceOp(op, table);
      return success();
    }
    auto type = cast<RankedTensorType>(table.getType());
    int64_t numPairs = op.getFrequencies().getNumPairs();
    SmallVector<OpFoldResult> sizes =
        tensor::getMixedSizes(rewriter, loc, table);
    sizes.back() = rewriter.getIndexAttr(numPairs);

    SmallVector<Value> inits;
    for (int i = 0; i < 2; ++i)
      inits.push_back(
          tensor::EmptyOp::create(rewriter, loc, sizes, type.getElementType()));
    linalg::GenericOp sincos = createSincosGeneric(
        rewriter, loc, op.getFrequencies(), /*axes=*/nullptr, op.getPositions(),
        inits[0], inits[1]);

    bool interleaved = op.getOrder() == TableOrder::Interleaved;
    bool cosFirst = op.getOrder() == TableOrder::CosSin;
    auto insert = [&](Value elements, bool first) {
      SmallVector<OpFoldResult> offsets(type.getRank(),
                                        rewriter.getIndexAttr(0));
      SmallVector<OpFoldResult> strides(type.getRank(),
                                        rewriter.getIndexAttr(1));
      if (!first)
        offsets.back() = rewriter.getIndexAttr(interleaved ? 1 : numPairs);
      if (interleaved)
        strides.back() = rewriter.getIndexAttr(2);
      table = tensor::InsertSliceOp::create(rewriter, loc, elements, table,
                                            offsets, sizes, strides);
    };
    insert(sincos.getResult(cosFirst ? 0 : 1), /*first=*/true);
    insert(sincos.getResult(cosFirst ? 1 : 0), /*first=*/false);
    rewriter.replaceOp(op, table);
    return success();
  }
};

struct ConvertPosencSinusoidalToLinalgPass
    : mlir::posenc::impl::ConvertPosencSinusoidalToLinalgPassBase<
          ConvertPosencSinusoidalToLinalgPass> {
  using Base::Base;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populatePosencSinusoidalToLinalgPatterns(patterns);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};

} // namespace

void mlir::posenc::populatePosencSinusoidalToLinalgPatterns(
    RewritePatternSet &patterns) {
  patterns.add<ConvertSinusoidal>(patterns.getContext());
}

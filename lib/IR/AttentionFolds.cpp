//===- AttentionFolds.cpp - folding casts into attention operands ---------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tensor dialect has the same pattern for all destination-style operations,
// but it crashes on regions without blocks. This pattern has a higher benefit.
//
//===----------------------------------------------------------------------===//

#include "posenc/IR/Posenc.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::posenc;

namespace {

/// Replaces operands by the source of a cast that makes their type less static.
template <typename OpTy> struct FoldCasts : OpRewritePattern<OpTy> {
  explicit FoldCasts(MLIRContext *context)
      : OpRewritePattern<OpTy>(context, /*benefit=*/2) {}

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    if (!tensor::hasFoldableTensorCastOperand(op))
      return rewriter.notifyMatchFailure(op, "no cast to fold");
    SmallVector<Type> types(op->getResultTypes());
    SmallVector<Value> operands =
        tensor::getUpdatedOperandsAfterCastOpFolding(op, types);
    Operation *folded =
        mlir::posenc::detail::cloneWith(rewriter, op, types, operands);
    SmallVector<Value> results;
    for (auto [was, is] :
         llvm::zip_equal(op->getResults(), folded->getResults()))
      results.push_back(was.getType() == is.getType()
                            ? Value(is)
                            : tensor::CastOp::create(rewriter, op.getLoc(),
                                                     was.getType(), is));
    rewriter.replaceOp(op, results);
    return success();
  }
};

} // namespace

void AttentionOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                              MLIRContext *context) {
  patterns.add<FoldCasts<AttentionOp>>(context);
}

void OnlineAttentionOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                                    MLIRContext *context) {
  patterns.add<FoldCasts<OnlineAttentionOp>>(context);
}

//===- HeadsToTokens.cpp - many query heads of one token ------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A single token of a sequence has no mask of positions, so the query heads
// that share a key head may stand for tokens of one head. The prefill kernel
// then has whole register tiles of queries, and reads the keys once for all of
// them.
//
//===----------------------------------------------------------------------===//

#include "posenc/IR/Posenc.h"
#include "posenc/IR/Remarks.h"
#include "posenc/Transforms/Passes.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCHEADSTOTOKENSPASS
#include "posenc/Transforms/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

#define DEBUG_TYPE "posenc-heads-to-tokens"

/// Batch, both dimensions of tokens and heads, and channels.
static const SmallVector<ReassociationIndices> kGroups = {{0}, {1, 2}, {3}};

/// Fewer query heads of a key head do not fill a register tile, and are bound
/// by reads of the keys, which the decode kernel does best.
static constexpr int64_t kMinGroup = 33;

/// Returns the reason why heads cannot become tokens, or null.
static const char *getReason(AttentionOp op) {
  if (!op.hasPureTensorSemantics())
    return "not on tensors";
  auto query = cast<RankedTensorType>(op.getQuery().getType());
  auto key = cast<RankedTensorType>(op.getKey().getType());
  if (!op.getCuSeqlens().empty() || query.getRank() != 4 ||
      query.getDimSize(op.getQueryTokenDim()) != 1)
    return "not one token for each sequence";
  int64_t heads = query.getDimSize(op.getQueryHeadDim());
  int64_t keyHeads = key.getDimSize(op.getKeyHeadDim());
  if (ShapedType::isDynamic(heads) || ShapedType::isDynamic(keyHeads) ||
      heads / keyHeads < kMinGroup)
    return "few query heads share a key head";
  if (!op.getScore().empty() || !op.getWhere().empty() || op.getMask() ||
      op.getSinks())
    return "scores depend on the query head";
  if (op.getQueryRotation() || op.getQueryNorm() || op.getWindowLeft() ||
      op.getWindowRight() || op.getTrailingQueries())
    return "the query's position or norm counts";
  if (op.getInits().size() != 1)
    return "the log-sum-exp is a result";
  return nullptr;
}

/// Splits the only token and all heads into key heads and the query heads of
/// each, or joins these again.
static Value reshape(OpBuilder &builder, Location loc, Value tensor,
                     int64_t first, int64_t second) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<int64_t> shape(type.getShape());
  auto joined = RankedTensorType::get({shape[0], shape[1] * shape[2], shape[3]},
                                      type.getElementType());
  shape[1] = first;
  shape[2] = second;
  Value rows =
      tensor::CollapseShapeOp::create(builder, loc, joined, tensor, kGroups);
  return tensor::ExpandShapeOp::create(
      builder, loc, RankedTensorType::get(shape, type.getElementType()), rows,
      kGroups);
}

static void convert(IRRewriter &rewriter, AttentionOp op) {
  auto query = cast<RankedTensorType>(op.getQuery().getType());
  auto key = cast<RankedTensorType>(op.getKey().getType());
  int64_t keyHeads = key.getDimSize(op.getKeyHeadDim());
  int64_t group = query.getDimSize(op.getQueryHeadDim()) / keyHeads;
  reportChoice(
      op, DEBUG_TYPE,
      llvm::formatv("{0} query heads of a key head are tokens", group));
  Location loc = op.getLoc();
  rewriter.setInsertionPoint(op);
  auto split = [&](Value tensor) {
    return reshape(rewriter, loc, tensor, keyHeads, group);
  };
  auto output = cast<RankedTensorType>(op.getResult(0).getType());
  auto narrow = cast<AttentionOp>(rewriter.clone(*op));
  rewriter.setInsertionPoint(narrow);
  Value init = split(op.getInits().front());
  narrow.getQueryMutable().assign(split(op.getQuery()));
  narrow.getInitsMutable().assign(init);
  narrow->getResult(0).setType(init.getType());
  narrow.setQueryLayout(HeadLayout::HeadMajor);
  narrow.setCausal(false);
  rewriter.setInsertionPointAfter(narrow);
  rewriter.replaceOp(op, reshape(rewriter, loc, narrow->getResult(0),
                                 output.getDimSize(1), output.getDimSize(2)));
}

namespace {
struct PosencHeadsToTokensPass
    : mlir::posenc::impl::PosencHeadsToTokensPassBase<PosencHeadsToTokensPass> {
  using Base::Base;

  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    SmallVector<AttentionOp> operations;
    getOperation()->walk([&](AttentionOp op) { operations.push_back(op); });
    for (AttentionOp op : operations) {
      if (const char *reason = getReason(op))
        reportMissed(op, DEBUG_TYPE, reason);
      else
        convert(rewriter, op);
    }
  }
};
} // namespace

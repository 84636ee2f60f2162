//===- DecomposeRope.cpp - rope to sincos and rotate ----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RopeTables.h"

#include "posenc/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCDECOMPOSEROPEPASS
#include "posenc/Transforms/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

/// Rewrites rope(x, p) to rotate(x, sincos(p)).
static LogicalResult decomposeRope(RopeOp op, PatternRewriter &rewriter) {
  if (!op.hasPureTensorSemantics())
    return rewriter.notifyMatchFailure(op, "not on tensors");
  replaceByRotation(rewriter, op);
  return success();
}

namespace {
struct PosencDecomposeRopePass
    : mlir::posenc::impl::PosencDecomposeRopePassBase<PosencDecomposeRopePass> {
  using Base::Base;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add(decomposeRope);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};
} // namespace

//===- DecomposeMoves.cpp - pack, pad, concat to copies -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCDECOMPOSEMOVESPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

/// Rewrites one operation as copies; fails if its tile sizes are dynamic.
static LogicalResult decompose(RewriterBase &rewriter, Operation *op) {
  rewriter.setInsertionPoint(op);
  if (auto pack = dyn_cast<linalg::PackOp>(op))
    return linalg::lowerPack(rewriter, pack);
  if (auto unpack = dyn_cast<linalg::UnPackOp>(op))
    return linalg::lowerUnPack(rewriter, unpack);
  if (auto pad = dyn_cast<tensor::PadOp>(op))
    return linalg::rewriteInDestinationPassingStyle(rewriter, pad);
  auto concat = cast<tensor::ConcatOp>(op);
  FailureOr<SmallVector<Value>> parts = concat.decomposeOperation(rewriter);
  if (succeeded(parts))
    rewriter.replaceOp(concat, *parts);
  return parts;
}

namespace {
struct DecomposeMoves final
    : mlir::posenc::impl::PosencDecomposeMovesPassBase<DecomposeMoves> {
  using Base::Base;

  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    if (failed(decomposeAll<linalg::PackOp, linalg::UnPackOp>(rewriter)) ||
        // Decomposed packs contain pads, so pads come second.
        failed(decomposeAll<tensor::PadOp, tensor::ConcatOp>(rewriter)))
      return signalPassFailure();
  }

private:
  template <typename... OpTypes>
  LogicalResult decomposeAll(RewriterBase &rewriter) {
    SmallVector<Operation *> operations;
    getOperation()->walk([&](Operation *op) {
      if (isa<OpTypes...>(op))
        operations.push_back(op);
    });
    for (Operation *op : operations) {
      if (isOpTriviallyDead(op))
        rewriter.eraseOp(op);
      else if (failed(decompose(rewriter, op)))
        return op->emitOpError(
            "cannot be decomposed: expected static tile sizes");
    }
    return success();
  }
};
} // namespace

//===- DecomposeSoftmax.cpp - linalg.softmax to linalg.generic ------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// linalg.softmax has an upstream decomposition, which computes in its element
// type. For f16 and bf16, this pass computes in f32, so the sum is in f32 and
// results are rounded once.
//
//===----------------------------------------------------------------------===//

#include "posenc/IR/CreateGeneric.h"
#include "posenc/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/TypeUtilities.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCDECOMPOSESOFTMAXPASS
#include "posenc/Transforms/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

/// Converts each element of `tensor` by `OpTy` and writes it to `init`.
template <typename OpTy>
static Value convert(OpBuilder &builder, Location loc, Value tensor,
                     Value init) {
  Type element = getElementTypeOrSelf(init.getType());
  return createParallelGeneric(
      builder, loc, tensor, init, {},
      [&](OpBuilder &b, Location loc, ValueRange args) -> Value {
        return OpTy::create(b, loc, element, args[0]);
      });
}

/// Replaces the softmax by one in f32 with conversions around it; returns it.
static linalg::SoftmaxOp widen(RewriterBase &rewriter, linalg::SoftmaxOp op) {
  Location loc = op.getLoc();
  Type f32 = rewriter.getF32Type();
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(rewriter, loc, op.getInput());
  auto createEmpty = [&]() -> Value {
    return tensor::EmptyOp::create(rewriter, loc, sizes, f32);
  };
  Value wide =
      convert<arith::ExtFOp>(rewriter, loc, op.getInput(), createEmpty());
  auto softmax =
      linalg::SoftmaxOp::create(rewriter, loc, TypeRange(wide.getType()), wide,
                                createEmpty(), op.getDimension());
  rewriter.replaceOp(op, convert<arith::TruncFOp>(rewriter, loc,
                                                  softmax->getResult(0),
                                                  op.getOutput()));
  return softmax;
}

/// Replaces the softmax by linalg.generic operations.
static LogicalResult decompose(RewriterBase &rewriter, linalg::SoftmaxOp op) {
  if (!op.hasPureTensorSemantics())
    return op.emitOpError("expected tensors; decompose it before "
                          "bufferization");
  auto element = dyn_cast<FloatType>(getElementTypeOrSelf(op.getInput()));
  if (!element)
    return op.emitOpError("expected elements of a float type, got ")
           << getElementTypeOrSelf(op.getInput());
  rewriter.setInsertionPoint(op);
  if (element.getWidth() < 32)
    op = widen(rewriter, op);
  rewriter.setInsertionPoint(op);
  // Upstream's decomposition expects one type, but folded casts may have made
  // the input's more static than the output's.
  if (op.getInput().getType() != op.getOutput().getType()) {
    Value input = tensor::CastOp::create(
        rewriter, op.getLoc(), op.getOutput().getType(), op.getInput());
    rewriter.modifyOpInPlace(op, [&] { op.getInputMutable().assign(input); });
  }
  FailureOr<SmallVector<Value>> results = op.decomposeOperation(rewriter);
  if (failed(results))
    return op.emitOpError("cannot be decomposed");
  rewriter.replaceOp(op, *results);
  return success();
}

namespace {
struct DecomposeSoftmax final
    : mlir::posenc::impl::PosencDecomposeSoftmaxPassBase<DecomposeSoftmax> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<linalg::SoftmaxOp> operations;
    getOperation()->walk(
        [&](linalg::SoftmaxOp op) { operations.push_back(op); });
    IRRewriter rewriter(&getContext());
    for (linalg::SoftmaxOp op : operations)
      if (failed(decompose(rewriter, op)))
        return signalPassFailure();
  }
};
} // namespace

//===- ExpandBF16.cpp - bf16 conversions as integer arithmetic ------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Without AVX512-BF16 the backend lowers the rounding to bf16 to a call of
// __truncsfbf2, which libgcc of Debian 12 lacks, and cannot select the bf16 dot
// product. The upstream pass arith-expand gives all NaNs the same bits, and
// fails on dynamic tensors; this pass keeps the sign of a NaN, as the
// instruction does.
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/Passes.h"
#include "posenc/Numerics/BF16.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCEXPANDBF16PASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

/// Rounds to nearest, ties to even; a NaN becomes quiet and keeps its sign.
static LogicalResult expandBF16Truncation(arith::TruncFOp op,
                                          PatternRewriter &rewriter) {
  if (!getElementTypeOrSelf(op.getType()).isBF16() ||
      !getElementTypeOrSelf(op.getIn().getType()).isF32() ||
      isa<TensorType>(op.getType()))
    return rewriter.notifyMatchFailure(op, "not from f32 to bf16");
  ElementwiseBuilder b(rewriter, op.getLoc(), op.getIn());
  Value bits = b.cast<arith::BitcastOp>(rewriter.getI32Type(), op.getIn());
  Value isNaN = arith::CmpFOp::create(
      rewriter, op.getLoc(), arith::CmpFPredicate::UNO, op.getIn(), op.getIn());
  Value half = b.cast<arith::TruncIOp>(rewriter.getI16Type(),
                                       roundToBF16(b, bits, isNaN));
  rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, op.getType(), half);
  return success();
}

/// Shifts the bits of a bf16 to the upper half of an f32.
static LogicalResult expandBF16Extension(arith::ExtFOp op,
                                         PatternRewriter &rewriter) {
  if (!getElementTypeOrSelf(op.getIn().getType()).isBF16() ||
      !getElementTypeOrSelf(op.getType()).isF32() ||
      isa<TensorType>(op.getType()))
    return rewriter.notifyMatchFailure(op, "not from bf16 to f32");
  ElementwiseBuilder b(rewriter, op.getLoc(), op.getIn());
  Value bits = b.cast<arith::BitcastOp>(rewriter.getI16Type(), op.getIn());
  Value wide = b.cast<arith::ExtUIOp>(rewriter.getI32Type(), bits);
  rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, op.getType(),
                                                b.shl(wide, b.i32(16)));
  return success();
}

/// Expands the bf16 dot product. As the instruction does, it treats subnormal
/// inputs and results as 0.
static LogicalResult expandDot(x86vector::DotBF16Op op,
                               PatternRewriter &rewriter) {
  Location loc = op.getLoc();
  ElementwiseBuilder b(rewriter, loc, op.getSrc());
  auto flush = [&](Value x) { return flushSubnormals(b, x); };
  BF16Halves x = splitBF16(rewriter, loc, op.getA());
  BF16Halves y = splitBF16(rewriter, loc, op.getB());
  Value sum = flush(op.getSrc());
  for (auto [one, other] : {std::pair(x.odd, y.odd), {x.even, y.even}})
    sum = flush(b.fma(flush(one), flush(other), sum));
  rewriter.replaceOp(op, sum);
  return success();
}

namespace {
struct ExpandBF16 final
    : mlir::posenc::impl::PosencExpandBF16PassBase<ExpandBF16> {
  using Base::Base;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add(expandDot).add(expandBF16Extension).add(expandBF16Truncation);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};
} // namespace

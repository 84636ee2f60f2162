//===- WidenSums.cpp - f32 accumulators for f16 and bf16 sums -------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A sum that is rounded to 16 bits after each step is wrong in its second digit
// after some hundred terms. This pass accumulates in f32 and rounds the result
// once, as math libraries do.
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/Passes.h"
#include "posenc/Codegen/Tiling.h"
#include "posenc/IR/CreateGeneric.h"
#include "posenc/Numerics/MathExpansion.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCWIDENSUMSPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

/// Whether the operation is a reduction with one f16 or bf16 result. Matrix
/// products are left out: posenc-tile-contractions accumulates in f32 itself.
static bool isNarrowReduction(linalg::LinalgOp op) {
  return op.hasPureTensorSemantics() && op->getNumResults() == 1 &&
         op.getNumReductionLoops() > 0 && !isTiledContraction(op) &&
         isNarrowFloat(getElementTypeOrSelf(op->getResult(0).getType()));
}

/// Returns the arith.addf that adds a term to the result, or null if the
/// operation reduces in another way.
static arith::AddFOp getSum(linalg::GenericOp op) {
  Block &body = op.getRegion().front();
  BlockArgument result = body.getArguments().back();
  auto sum = body.getTerminator()->getOperand(0).getDefiningOp<arith::AddFOp>();
  bool isSum = sum && sum->hasOneUse() && result.hasOneUse() &&
               *result.user_begin() == sum;
  return isSum ? sum : nullptr;
}

/// Returns a new tensor with the elements of `tensor`, converted by `OpTy`.
template <typename OpTy>
static Value convert(OpBuilder &builder, Location loc, Value tensor,
                     Type element) {
  Value empty = tensor::EmptyOp::create(
      builder, loc, tensor::getMixedSizes(builder, loc, tensor), element);
  return createParallelGeneric(
      builder, loc, tensor, empty, {},
      [&](OpBuilder &b, Location l, ValueRange args) -> Value {
        return OpTy::create(b, l, element, args[0]);
      });
}

/// Returns the initial value of the sum in f32.
static Value widenInit(OpBuilder &builder, Location loc, Value init) {
  Type f32 = builder.getF32Type();
  auto fill = init.getDefiningOp<linalg::FillOp>();
  Value scalar = fill ? fill.getInputs().front() : Value();
  if (!fill || !isNarrowFloat(scalar.getType()))
    return convert<arith::ExtFOp>(builder, loc, init, f32);
  Value empty = tensor::EmptyOp::create(
      builder, loc, tensor::getMixedSizes(builder, loc, init), f32);
  Value wide = arith::ExtFOp::create(builder, loc, f32, scalar);
  return linalg::FillOp::create(builder, loc, wide, empty).getResult(0);
}

/// Returns the term in f32. A product of two 16-bit values is computed in f32,
/// so it is not rounded before it is added.
static Value widenTerm(OpBuilder &builder, Location loc, Value term) {
  Type f32 = builder.getF32Type();
  auto extend = [&](Value value) -> Value {
    return arith::ExtFOp::create(builder, loc, f32, value);
  };
  auto product = term.getDefiningOp<arith::MulFOp>();
  if (!product || !product->hasOneUse())
    return extend(term);
  return arith::MulFOp::create(builder, loc, extend(product.getLhs()),
                               extend(product.getRhs()));
}

static void widen(RewriterBase &rewriter, linalg::GenericOp op,
                  arith::AddFOp sum) {
  Location loc = op.getLoc();
  Type element = getElementTypeOrSelf(op->getResult(0).getType());
  rewriter.setInsertionPoint(op);
  Value init = widenInit(rewriter, loc, op.getDpsInits().front());
  auto wide = linalg::GenericOp::create(
      rewriter, loc, init.getType(), op.getInputs(), init,
      op.getIndexingMapsArray(), op.getIteratorTypesArray());
  Block &body = op.getRegion().front();
  BlockArgument result = body.getArguments().back();
  Value term = sum.getLhs() == result ? sum.getRhs() : sum.getLhs();
  rewriter.setInsertionPoint(sum);
  Value wideTerm = widenTerm(rewriter, sum.getLoc(), term);
  BlockArgument wideResult = body.addArgument(rewriter.getF32Type(), loc);
  rewriter.replaceOpWithNewOp<arith::AddFOp>(sum, wideResult, wideTerm);
  body.eraseArgument(result.getArgNumber());
  if (Operation *product = term.getDefiningOp();
      product && product->use_empty())
    rewriter.eraseOp(product);
  rewriter.inlineRegionBefore(op.getRegion(), wide.getRegion(),
                              wide.getRegion().begin());
  rewriter.setInsertionPoint(op);
  rewriter.replaceOp(
      op, convert<arith::TruncFOp>(rewriter, loc, wide->getResult(0), element));
}

namespace {
struct WidenSums final
    : mlir::posenc::impl::PosencWidenSumsPassBase<WidenSums> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<linalg::LinalgOp> operations;
    getOperation()->walk([&](linalg::LinalgOp op) {
      if (isNarrowReduction(op))
        operations.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (linalg::LinalgOp op : operations) {
      auto generic = dyn_cast<linalg::GenericOp>(op.getOperation());
      if (!generic) {
        rewriter.setInsertionPoint(op);
        FailureOr<linalg::GenericOp> named =
            linalg::generalizeNamedOp(rewriter, op);
        if (failed(named))
          continue;
        generic = *named;
      }
      if (arith::AddFOp sum = getSum(generic))
        widen(rewriter, generic, sum);
    }
  }
};
} // namespace

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
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_CONVERTPOSENCSINUSOIDALTOLINALGPASS
#include "posenc/Conversion/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

static LogicalResult convertSinusoidal(SinusoidalOp op,
                                       PatternRewriter &rewriter) {
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
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(rewriter, loc, table);
  sizes.back() = rewriter.getIndexAttr(numPairs);

  SmallVector<Value> inits;
  for (int i = 0; i < 2; ++i)
    inits.push_back(
        tensor::EmptyOp::create(rewriter, loc, sizes, type.getElementType()));
  linalg::GenericOp sincos = createSincosGeneric(
      rewriter, loc, op.getFrequencies(), op.getAxesAttr(), op.getPositions(),
      /*turns=*/{}, inits[0], inits[1], op.getPaddingPosition());
  Value first = sincos.getResult(1), second = sincos.getResult(0);
  if (op.getOrder() == TableOrder::CosSin)
    std::swap(first, second);

  SmallVector<OpFoldResult> ones(type.getRank(), rewriter.getIndexAttr(1));
  auto insert = [&](Value elements, int64_t lane, int64_t stride) {
    SmallVector<OpFoldResult> offsets(type.getRank(), rewriter.getIndexAttr(0));
    SmallVector<OpFoldResult> strides(ones);
    offsets.back() = rewriter.getIndexAttr(lane);
    strides.back() = rewriter.getIndexAttr(stride);
    table = tensor::InsertSliceOp::create(rewriter, loc, elements, table,
                                          offsets, sizes, strides);
  };
  if (op.getOrder() == TableOrder::Interleaved) {
    insert(first, 0, 2);
    insert(second, 1, 2);
  } else {
    for (const SinusoidalOp::Part &part : op.getParts()) {
      int64_t pairs = part.frequencies.getNumPairs();
      SmallVector<OpFoldResult> offsets(type.getRank(),
                                        rewriter.getIndexAttr(0));
      offsets.back() = rewriter.getIndexAttr(part.firstLane / 2);
      sizes.back() = rewriter.getIndexAttr(pairs);
      auto getPart = [&](Value elements) -> Value {
        if (pairs == numPairs)
          return elements;
        return tensor::ExtractSliceOp::create(rewriter, loc, elements, offsets,
                                              sizes, ones);
      };
      insert(getPart(first), part.firstLane, 1);
      insert(getPart(second), part.firstLane + pairs, 1);
    }
  }
  if (op.getZeroPad()) {
    sizes.back() = rewriter.getIndexAttr(1);
    Value zero = arith::ConstantOp::create(
        rewriter, loc, rewriter.getZeroAttr(type.getElementType()));
    Value empty =
        tensor::EmptyOp::create(rewriter, loc, sizes, type.getElementType());
    Value column =
        linalg::FillOp::create(rewriter, loc, zero, empty).getResult(0);
    insert(column, op.getFrequencies().getDim(), 1);
  }
  rewriter.replaceOp(op, table);
  return success();
}

namespace {
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
  patterns.add(convertSinusoidal);
}

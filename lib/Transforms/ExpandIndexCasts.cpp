//===- ExpandIndexCasts.cpp - narrow casts of indices -----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Upstream's canonicalizer folds a cast of an index to an integer type and back
// to the index itself, although a type of less than 64 bits does not hold all
// indices: an i8 wraps at 128. Casts by way of i64 are folded rightly.
//
//===----------------------------------------------------------------------===//

#include "posenc/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCEXPANDINDEXCASTSPASS
#include "posenc/Transforms/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

/// The type with elements of i64.
static Type getWide(Type type) {
  Type i64 = IntegerType::get(type.getContext(), 64);
  if (auto shaped = dyn_cast<ShapedType>(type))
    return shaped.clone(i64);
  return i64;
}

namespace {

template <typename CastTy> struct ExpandCast : OpRewritePattern<CastTy> {
  using OpRewritePattern<CastTy>::OpRewritePattern;

  LogicalResult matchAndRewrite(CastTy op,
                                PatternRewriter &rewriter) const override {
    Type type = op.getType(), element = getElementTypeOrSelf(type);
    if (!element.isInteger() || element.getIntOrFloatBitWidth() >= 64 ||
        isa<MemRefType>(type))
      return rewriter.notifyMatchFailure(op, "not to an integer below 64 bits");
    Value wide =
        CastTy::create(rewriter, op.getLoc(), getWide(type), op.getIn());
    rewriter.replaceOpWithNewOp<arith::TruncIOp>(op, type, wide);
    return success();
  }
};

struct ExpandIndexCasts final
    : mlir::posenc::impl::PosencExpandIndexCastsPassBase<ExpandIndexCasts> {
  using Base::Base;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns
        .add<ExpandCast<arith::IndexCastOp>, ExpandCast<arith::IndexCastUIOp>>(
            &getContext());
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};

} // namespace

//===- ExpandIndexCasts.cpp - narrow index casts by way of i64 ------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Upstream's canonicalizer folds a cast from index to an integer type and back
// to the original index, even if the integer type has fewer than 64 bits and
// the cast changes the value: an i8 wraps at 128. Casts by way of i64 (index to
// i64, then trunci) are folded correctly.
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

/// Returns the type with the element type i64.
static Type getWide(Type type) {
  Type i64 = IntegerType::get(type.getContext(), 64);
  if (auto shaped = dyn_cast<ShapedType>(type))
    return shaped.clone(i64);
  return i64;
}

template <typename CastTy>
static LogicalResult expandCast(CastTy op, PatternRewriter &rewriter) {
  Type type = op.getType(), element = getElementTypeOrSelf(type);
  if (!element.isInteger() || element.getIntOrFloatBitWidth() >= 64 ||
      isa<MemRefType>(type))
    return rewriter.notifyMatchFailure(
        op, "expected a result of integers narrower than 64 bits");
  Value wide = CastTy::create(rewriter, op.getLoc(), getWide(type), op.getIn());
  rewriter.replaceOpWithNewOp<arith::TruncIOp>(op, type, wide);
  return success();
}

namespace {
struct ExpandIndexCasts final
    : mlir::posenc::impl::PosencExpandIndexCastsPassBase<ExpandIndexCasts> {
  using Base::Base;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add(expandCast<arith::IndexCastOp>)
        .add(expandCast<arith::IndexCastUIOp>);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};
} // namespace

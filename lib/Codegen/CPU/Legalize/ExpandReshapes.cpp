//===- ExpandReshapes.cpp - memref.expand_shape to reinterpret_cast -------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCEXPANDRESHAPESPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;

/// Whether a dimension is split into several dynamic dimensions.
static bool hasSeveralDynamicSizes(memref::ExpandShapeOp op) {
  MemRefType type = op.getResultType();
  return llvm::any_of(op.getReassociationIndices(),
                      [&](const ReassociationIndices &group) {
                        return llvm::count_if(group, [&](int64_t dim) {
                                 return type.isDynamicDim(dim);
                               }) > 1;
                      });
}

static OpFoldResult multiply(OpBuilder &builder, Location loc, OpFoldResult a,
                             OpFoldResult b) {
  std::optional<int64_t> left = getConstantIntValue(a);
  std::optional<int64_t> right = getConstantIntValue(b);
  if (left && right)
    return builder.getIndexAttr(*left * *right);
  return arith::MulIOp::create(builder, loc,
                               getValueOrCreateConstantIndexOp(builder, loc, a),
                               getValueOrCreateConstantIndexOp(builder, loc, b))
      .getResult();
}

/// Replaces the operation by one with explicit sizes and strides.
static void expand(RewriterBase &rewriter, memref::ExpandShapeOp op) {
  Location loc = op.getLoc();
  rewriter.setInsertionPoint(op);
  auto metadata =
      memref::ExtractStridedMetadataOp::create(rewriter, loc, op.getSrc());
  SmallVector<OpFoldResult> sizes = op.getMixedOutputShape();
  SmallVector<OpFoldResult> strides(sizes.size());
  SmallVector<OpFoldResult> sourceStrides =
      metadata.getConstifiedMixedStrides();
  for (auto [stride, group] :
       llvm::zip_equal(sourceStrides, op.getReassociationIndices()))
    for (int64_t dim : llvm::reverse(group)) {
      strides[dim] = stride;
      stride = multiply(rewriter, loc, stride, sizes[dim]);
    }
  // The operands must agree with the static sizes of the type.
  MemRefType type = op.getResultType();
  auto [typeStrides, typeOffset] = type.getStridesAndOffset();
  auto makeStatic = [&](OpFoldResult &value, int64_t known) {
    if (!ShapedType::isDynamic(known))
      value = rewriter.getIndexAttr(known);
    else if (isa<Attribute>(value))
      value = getValueOrCreateConstantIndexOp(rewriter, loc, value);
  };
  for (auto [stride, known] : llvm::zip_equal(strides, typeStrides))
    makeStatic(stride, known);
  OpFoldResult offset = metadata.getConstifiedMixedOffset();
  makeStatic(offset, typeOffset);
  rewriter.replaceOpWithNewOp<memref::ReinterpretCastOp>(
      op, type, metadata.getBaseBuffer(), offset, sizes, strides);
}

namespace {
struct ExpandReshapes final
    : mlir::posenc::impl::PosencExpandReshapesPassBase<ExpandReshapes> {
  using Base::Base;

  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    getOperation()->walk([&](memref::ExpandShapeOp op) {
      if (hasSeveralDynamicSizes(op))
        expand(rewriter, op);
    });
  }
};
} // namespace

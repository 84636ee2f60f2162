//===- DecomposeConvertPairing.cpp - permutations of pairs ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/IR/Posenc.h"
#include "posenc/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCDECOMPOSECONVERTPAIRINGPASS
#include "posenc/Transforms/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

/// Returns the lanes with their pairs in the other pairing: as a matrix of two
/// halves or of pairs, they are transposed.
static Value transposeLanes(OpBuilder &builder, Location loc, Value lanes,
                            Pairing from) {
  auto type = cast<RankedTensorType>(lanes.getType());
  int64_t rank = type.getRank(), numPairs = type.getShape().back() / 2;
  SmallVector<int64_t> shape(type.getShape().drop_back());
  bool isHalf = from == Pairing::Half;
  shape.append({isHalf ? 2 : numPairs, isHalf ? numPairs : 2});
  SmallVector<ReassociationIndices> groups;
  for (int64_t i = 0; i < rank; ++i)
    groups.push_back({i});
  groups.back().push_back(rank);
  Value matrix = tensor::ExpandShapeOp::create(builder, loc, type.clone(shape),
                                               lanes, groups);
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(rank + 1));
  std::swap(order[rank - 1], order[rank]);
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, matrix);
  std::swap(sizes[rank - 1], sizes[rank]);
  Value init = tensor::EmptyOp::create(
      builder, loc, sizes, type.getElementType(), type.getEncoding());
  Value transposed =
      linalg::TransposeOp::create(builder, loc, matrix, init, order)
          ->getResult(0);
  return tensor::CollapseShapeOp::create(builder, loc, type, transposed,
                                         groups);
}

static LogicalResult decomposeConvertPairing(ConvertPairingOp op,
                                             PatternRewriter &rewriter) {
  Location loc = op.getLoc();
  Value input = op.getInput();
  auto type = cast<RankedTensorType>(input.getType());
  if (input == op.getResult())
    return rewriter.notifyMatchFailure(op, "its own operand");
  if (op.getFrom() == op.getTo()) {
    rewriter.replaceOp(op, input);
    return success();
  }
  int64_t dim = op.getDim();
  if (dim == type.getShape().back()) {
    rewriter.replaceOp(op, transposeLanes(rewriter, loc, input, op.getFrom()));
    return success();
  }
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(rewriter, loc, input);
  sizes.back() = rewriter.getIndexAttr(dim);
  SmallVector<OpFoldResult> offsets(sizes.size(), rewriter.getIndexAttr(0));
  offsets.back() = rewriter.getIndexAttr(op.getOffset());
  SmallVector<OpFoldResult> strides(sizes.size(), rewriter.getIndexAttr(1));
  Value window = tensor::ExtractSliceOp::create(rewriter, loc, input, offsets,
                                                sizes, strides);
  window = transposeLanes(rewriter, loc, window, op.getFrom());
  rewriter.replaceOpWithNewOp<tensor::InsertSliceOp>(op, window, input, offsets,
                                                     sizes, strides);
  return success();
}

namespace {
struct DecomposeConvertPairingPass final
    : mlir::posenc::impl::PosencDecomposeConvertPairingPassBase<
          DecomposeConvertPairingPass> {
  using Base::Base;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add(decomposeConvertPairing);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};
} // namespace

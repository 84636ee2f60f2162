//===- FoldConversions.cpp - dequantization folded into attention ---------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Attention can convert keys and values of other element types when it loads
// them. This pattern folds a linalg.generic that converts them to the
// accumulator type and multiplies them by scales into the attention op, so the
// converted tensors are never written to memory.
//
//===----------------------------------------------------------------------===//

#include "posenc/IR/Posenc.h"
#include "posenc/IR/Remarks.h"
#include "posenc/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCFOLDCONVERSIONSPASS
#include "posenc/Transforms/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

#define DEBUG_TYPE "posenc-fold-conversions"

namespace {
/// A conversion `stored * scale`. The scale is a tensor of f32 (`scales`), a
/// constant (`factor`), or absent.
struct Conversion {
  Value stored;
  /// Dimension i of `scales` is dimension `scaleDims[i]` of the rows.
  Value scales;
  SmallVector<unsigned> scaleDims;
  std::optional<APFloat> factor;
};
} // namespace

/// Returns the block argument if `value` is its conversion to a float type that
/// attention can do itself, or null.
static BlockArgument getConverted(Value value) {
  Operation *op = value.getDefiningOp();
  if (!isa_and_nonnull<arith::ExtFOp, arith::SIToFPOp>(op))
    return {};
  auto argument = dyn_cast<BlockArgument>(op->getOperand(0));
  if (!argument)
    return {};
  Type type = argument.getType();
  // i8 is the only integer type of caches.
  if (isa<arith::SIToFPOp>(op) && !type.isInteger(8))
    return {};
  if (isa<arith::ExtFOp>(op) && !isa<Float16Type, BFloat16Type, Float32Type,
                                     Float8E4M3FNType, Float8E5M2Type>(type))
    return {};
  return argument;
}

/// Returns the conversion that computes `rows`, or fails if there is none.
static FailureOr<Conversion> findConversion(PatternRewriter &rewriter,
                                            AttentionOp reader, Value rows) {
  auto generic = rows.getDefiningOp<linalg::GenericOp>();
  auto fail = [&](const char *reason) {
    return rewriter.notifyMatchFailure(reader, reason);
  };
  if (!generic || !generic.hasPureTensorSemantics() ||
      generic.getNumDpsInits() != 1 ||
      generic.getNumParallelLoops() != generic.getNumLoops() ||
      getElementTypeOrSelf(rows) != reader.getSumType() ||
      !generic.getMatchingIndexingMap(generic.getDpsInitOperand(0))
           .isIdentity())
    return fail("rows are not converted");
  Block &body = *generic.getBlock();
  Value yielded = body.getTerminator()->getOperand(0);
  Conversion result;
  Value scale;
  BlockArgument stored = getConverted(yielded);
  if (auto product = yielded.getDefiningOp<arith::MulFOp>(); !stored && product)
    for (auto [a, b] : {std::pair(product.getLhs(), product.getRhs()),
                        std::pair(product.getRhs(), product.getLhs())})
      if (!stored && (stored = getConverted(a)))
        scale = b;
  if (!stored || stored.getOwner() != &body ||
      stored.getArgNumber() >= generic.getNumDpsInputs())
    return fail("attention does not have this conversion");
  // Other operations are dropped by the fold, and could have had undefined
  // behaviour.
  if (body.getOperations().size() != (scale ? 3u : 2u))
    return fail("the body has other operations");
  OpOperand *input = generic.getDpsInputOperand(stored.getArgNumber());
  if (!generic.getMatchingIndexingMap(input).isIdentity())
    return fail("rows are not indexed by the identity");
  result.stored = input->get();
  if (!scale)
    return result;
  if (!scale.getType().isF32())
    return fail("scales are not f32");
  APFloat constant(0.0f);
  if (matchPattern(scale, m_ConstantFloat(&constant))) {
    result.factor = constant;
    return result;
  }
  auto argument = dyn_cast<BlockArgument>(scale);
  if (!argument || argument.getOwner() != &body ||
      argument.getArgNumber() >= generic.getNumDpsInputs())
    return fail("scales are not an input");
  OpOperand *scales = generic.getDpsInputOperand(argument.getArgNumber());
  AffineMap map = generic.getMatchingIndexingMap(scales);
  if (!map.isProjectedPermutation())
    return fail("scales are not indexed by dimensions");
  for (AffineExpr expr : map.getResults())
    result.scaleDims.push_back(cast<AffineDimExpr>(expr).getPosition());
  result.scales = scales->get();
  return result;
}

/// Returns the dimensions of keys that correspond to the dimensions of scales:
/// batch (unless keys are ragged), heads, tokens.
static SmallVector<unsigned> getScaleOrder(AttentionOp op) {
  SmallVector<unsigned> order{op.getKeyHeadDim(), op.getKeyTokenDim()};
  if (!op.hasRaggedKeys())
    order.insert(order.begin(), 0);
  return order;
}

/// Whether the scales' dimensions are a subsequence of `order`, the dimensions
/// that attention supports.
static bool areScalesSupported(const Conversion &conversion,
                               ArrayRef<unsigned> order) {
  unsigned next = 0;
  for (unsigned dim : conversion.scaleDims) {
    while (next < order.size() && order[next] != dim)
      ++next;
    if (next++ == order.size())
      return false;
  }
  return true;
}

/// Reshapes the scales for attention, with a size of 1 for each dimension of
/// `order` that they lack.
static Value createScales(PatternRewriter &rewriter, Location loc,
                          const Conversion &conversion,
                          ArrayRef<unsigned> order) {
  if (!conversion.scales) {
    auto type = RankedTensorType::get(SmallVector<int64_t>(order.size(), 1),
                                      rewriter.getF32Type());
    APFloat factor = conversion.factor.value_or(APFloat(1.0f));
    return arith::ConstantOp::create(rewriter, loc,
                                     DenseElementsAttr::get(type, factor));
  }
  auto type = cast<RankedTensorType>(conversion.scales.getType());
  if (type.getRank() == static_cast<int64_t>(order.size()))
    return conversion.scales;
  // Each dimension of the scales is expanded with the missing dimensions before
  // it, and the last one also with those after it.
  SmallVector<int64_t> shape;
  SmallVector<OpFoldResult> sizes;
  SmallVector<ReassociationIndices> groups(type.getRank());
  int64_t scaleDim = 0;
  for (auto [position, dim] : llvm::enumerate(order)) {
    bool hasDim =
        scaleDim < type.getRank() && conversion.scaleDims[scaleDim] == dim;
    shape.push_back(hasDim ? type.getDimSize(scaleDim) : 1);
    sizes.push_back(hasDim ? tensor::getMixedSize(rewriter, loc,
                                                  conversion.scales, scaleDim)
                           : OpFoldResult(rewriter.getIndexAttr(1)));
    if (type.getRank() > 0)
      groups[std::min(scaleDim, type.getRank() - 1)].push_back(position);
    scaleDim += hasDim;
  }
  return tensor::ExpandShapeOp::create(rewriter, loc, type.clone(shape),
                                       conversion.scales, groups, sizes);
}

static LogicalResult foldConversionIntoAttention(AttentionOp op,
                                                 PatternRewriter &rewriter) {
  // The scales of a paged cache are indexed by page instead of batch, in the
  // same order.
  if (!op.hasPureTensorSemantics() || op.getKeyScales())
    return rewriter.notifyMatchFailure(op, "expected tensors without scales");
  if (op.normsAllKeyHeads())
    return rewriter.notifyMatchFailure(
        op, "a norm over all heads needs converted keys");
  FailureOr<Conversion> key = findConversion(rewriter, op, op.getKey());
  FailureOr<Conversion> value = findConversion(rewriter, op, op.getValue());
  if (failed(key) || failed(value))
    return failure();
  Type stored = getElementTypeOrSelf(key->stored);
  if (stored != getElementTypeOrSelf(value->stored))
    return rewriter.notifyMatchFailure(op, "types of keys and values differ");
  SmallVector<unsigned> order = getScaleOrder(op);
  if (!areScalesSupported(*key, order) || !areScalesSupported(*value, order))
    return rewriter.notifyMatchFailure(op, "scales are not one per row");
  bool isQuantized = isa<IntegerType, Float8E4M3FNType, Float8E5M2Type>(stored);
  auto isScaled = [](const Conversion &conversion) {
    return conversion.scales || conversion.factor;
  };
  if (isQuantized ? !op.getSumType().isF32()
                  : isScaled(*key) || isScaled(*value))
    return rewriter.notifyMatchFailure(
        op, "attention does not scale this combination of types");
  reportChoice(op, DEBUG_TYPE,
               llvm::formatv("loads keys and values of {0}{1}", stored,
                             isQuantized ? " and their scales" : ""));
  rewriter.setInsertionPoint(op);
  Value keyScales, valueScales;
  if (isQuantized) {
    keyScales = createScales(rewriter, op.getLoc(), *key, order);
    valueScales = createScales(rewriter, op.getLoc(), *value, order);
  }
  rewriter.modifyOpInPlace(op, [&] {
    op.getKeyMutable().assign(key->stored);
    op.getValueMutable().assign(value->stored);
    if (isQuantized) {
      op.getKeyScalesMutable().assign(keyScales);
      op.getValueScalesMutable().assign(valueScales);
    }
  });
  return success();
}

namespace {
struct FoldConversions final
    : mlir::posenc::impl::PosencFoldConversionsPassBase<FoldConversions> {
  using Base::Base;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add(foldConversionIntoAttention);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace

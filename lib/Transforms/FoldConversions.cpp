//===- FoldConversions.cpp - dequantization in attention --------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Attention converts keys and values of other element types where it loads
// them. This pattern folds a linalg.generic that converts them to the type of
// the sums and multiplies them by scales into the attention op, so the
// converted tensors are never in memory.
//
//===----------------------------------------------------------------------===//

#include "posenc/IR/Posenc.h"
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

namespace {
/// `stored * scale`, as an operation of linalg computes it.
struct Conversion {
  Value stored;
  /// A tensor of f32, with the rows' dimension for each of its dimensions in
  /// order; or a constant; or neither.
  Value scales;
  SmallVector<unsigned> scaleDims;
  std::optional<APFloat> factor;
};
} // namespace

/// The block argument that a value converts to floats, or null.
static BlockArgument getConverted(Value value) {
  Operation *op = value.getDefiningOp();
  if (!isa_and_nonnull<arith::ExtFOp, arith::SIToFPOp>(op))
    return {};
  auto argument = dyn_cast<BlockArgument>(op->getOperand(0));
  if (!argument)
    return {};
  Type type = argument.getType();
  // Scales belong to i8 elements.
  if (isa<arith::SIToFPOp>(op) && !type.isInteger(8))
    return {};
  if (isa<arith::ExtFOp>(op) && !isa<Float16Type, BFloat16Type, Float32Type,
                                     Float8E4M3FNType, Float8E5M2Type>(type))
    return {};
  return argument;
}

/// The conversion that computes `rows`.
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
    return fail("rows are not converted as attention does it");
  // No other operations, which could have undefined behaviour.
  if (body.getOperations().size() != (scale ? 3u : 2u))
    return fail("rows are computed in more steps");
  OpOperand *input = generic.getDpsInputOperand(stored.getArgNumber());
  if (!generic.getMatchingIndexingMap(input).isIdentity())
    return fail("rows are moved");
  result.stored = input->get();
  if (!scale)
    return result;
  if (!scale.getType().isF32())
    return fail("scales are not of f32");
  APFloat constant(0.0f);
  if (matchPattern(scale, m_ConstantFloat(&constant))) {
    result.factor = constant;
    return result;
  }
  auto argument = dyn_cast<BlockArgument>(scale);
  if (!argument || argument.getOwner() != &body ||
      argument.getArgNumber() >= generic.getNumDpsInputs())
    return fail("scales are computed");
  OpOperand *scales = generic.getDpsInputOperand(argument.getArgNumber());
  AffineMap map = generic.getMatchingIndexingMap(scales);
  if (!map.isProjectedPermutation())
    return fail("scales are not indexed by dimensions");
  for (AffineExpr expr : map.getResults())
    result.scaleDims.push_back(cast<AffineDimExpr>(expr).getPosition());
  result.scales = scales->get();
  return result;
}

/// Dimensions of keys that scales may have, in their order: sequences,
/// unless keys are ragged, heads and tokens.
static SmallVector<unsigned> getScaleOrder(AttentionOp op) {
  SmallVector<unsigned> order{op.getKeyHeadDim(), op.getKeyTokenDim()};
  if (!op.hasRaggedKeys())
    order.insert(order.begin(), 0);
  return order;
}

/// Whether scales are those of whole rows, in the order that attention takes.
static bool fits(const Conversion &conversion, ArrayRef<unsigned> order) {
  unsigned next = 0;
  for (unsigned dim : conversion.scaleDims) {
    while (next < order.size() && order[next] != dim)
      ++next;
    if (next++ == order.size())
      return false;
  }
  return true;
}

/// Reshapes the scales for attention: a size of 1 for each dimension that they
/// lack.
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
  int64_t mine = 0;
  for (auto [position, dim] : llvm::enumerate(order)) {
    bool isMine = mine < type.getRank() && conversion.scaleDims[mine] == dim;
    shape.push_back(isMine ? type.getDimSize(mine) : 1);
    sizes.push_back(
        isMine ? tensor::getMixedSize(rewriter, loc, conversion.scales, mine)
               : OpFoldResult(rewriter.getIndexAttr(1)));
    if (type.getRank() > 0)
      groups[std::min(mine, type.getRank() - 1)].push_back(position);
    mine += isMine;
  }
  return tensor::ExpandShapeOp::create(rewriter, loc, type.clone(shape),
                                       conversion.scales, groups, sizes);
}

namespace {

struct FoldIntoAttention final : OpRewritePattern<AttentionOp> {
  using Base::Base;

  LogicalResult matchAndRewrite(AttentionOp op,
                                PatternRewriter &rewriter) const override {
    // Scales of pages have another first dimension, but the same order.
    if (!op.hasPureTensorSemantics() || op.getKeyScales())
      return rewriter.notifyMatchFailure(op, "not on tensors of floats");
    if (op.normsAllKeyHeads())
      return rewriter.notifyMatchFailure(
          op, "a norm over all heads needs keys that are converted");
    FailureOr<Conversion> key = findConversion(rewriter, op, op.getKey());
    FailureOr<Conversion> value = findConversion(rewriter, op, op.getValue());
    if (failed(key) || failed(value))
      return failure();
    Type stored = getElementTypeOrSelf(key->stored);
    if (stored != getElementTypeOrSelf(value->stored))
      return rewriter.notifyMatchFailure(op, "keys and values differ");
    SmallVector<unsigned> order = getScaleOrder(op);
    if (!fits(*key, order) || !fits(*value, order))
      return rewriter.notifyMatchFailure(op, "scales are not those of rows");
    bool isQuantized =
        isa<IntegerType, Float8E4M3FNType, Float8E5M2Type>(stored);
    auto isScaled = [](const Conversion &conversion) {
      return conversion.scales || conversion.factor;
    };
    if (isQuantized ? !op.getSumType().isF32()
                    : isScaled(*key) || isScaled(*value))
      return rewriter.notifyMatchFailure(op, "attention has no such scales");
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
};

struct FoldConversions final
    : mlir::posenc::impl::PosencFoldConversionsPassBase<FoldConversions> {
  using Base::Base;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FoldIntoAttention>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace

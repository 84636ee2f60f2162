//===- FoldRotations.cpp - ropes folded into attention and kv_append ------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Attention and kv_append can rotate rows when they load them. If such an op is
// the only reader of a rope's result, the rope becomes its rotation attribute,
// so the rotated tensor is never written to memory.
//
//===----------------------------------------------------------------------===//

#include "posenc/IR/Posenc.h"
#include "posenc/IR/Remarks.h"
#include "posenc/Transforms/Passes.h"
#include "posenc/Transforms/VectorizableAttention.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCFOLDROTATIONSPASS
#include "posenc/Transforms/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

#define DEBUG_TYPE "posenc-fold-rotations"

namespace {
/// A rope in the form in which attention and kv_append take it.
struct Rotation {
  Value rows; ///< Rows before the rotation.
  RotationAttr attr;
  /// (batch, tokens), or (tokens) for rows without a batch; preceded by the
  /// dimension of axes if the rotation has axes.
  Value positions;
  ValueRange turns; ///< As those of the rope.
};
} // namespace

/// Returns positions with a dimension for the batch of `rows`, before that of
/// tokens. All sequences have the same positions.
static Value addBatch(RewriterBase &rewriter, Location loc, Value positions,
                      Value rows, int64_t batchDim) {
  auto type = cast<RankedTensorType>(positions.getType());
  int64_t batch = cast<ShapedType>(rows.getType()).getDimSize(0);
  SmallVector<int64_t> shape(type.getShape());
  shape.insert(shape.begin() + batchDim, batch);
  if (batch == 1) {
    SmallVector<ReassociationIndices> groups;
    if (batchDim == 1)
      groups.push_back({0});
    groups.push_back({batchDim, batchDim + 1});
    return tensor::ExpandShapeOp::create(rewriter, loc, type.clone(shape),
                                         positions, groups);
  }
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(rewriter, loc, positions);
  sizes.insert(sizes.begin() + batchDim,
               tensor::getMixedSize(rewriter, loc, rows, 0));
  Value init =
      tensor::EmptyOp::create(rewriter, loc, sizes, type.getElementType());
  return linalg::BroadcastOp::create(rewriter, loc, positions, init, batchDim)
      ->getResult(0);
}

/// Returns the rotation that computes `rows`. Their first dimension is the
/// batch, unless they are of rank 3 or it is `tokenDim`. Fails if `rows` are
/// not the result of a forward rope, if they have other readers, or if the
/// positions have another form than in `Rotation`.
static FailureOr<Rotation> findRotation(PatternRewriter &rewriter,
                                        Operation *reader, Value rows,
                                        unsigned tokenDim) {
  auto rope = rows.getDefiningOp<RopeOp>();
  if (!rope || !rope.hasPureTensorSemantics() || !rows.hasOneUse())
    return rewriter.notifyMatchFailure(
        reader, "rows are not a rope's result with a single reader");
  if (rope.getInverse() || rope.getScale())
    return rewriter.notifyMatchFailure(reader, "inverse or scaled rope");
  auto type = dyn_cast<RankedTensorType>(rope.getPositions().getType());
  if (!type)
    return rewriter.notifyMatchFailure(reader, "scalar positions");
  if (type.getElementType().isIndex())
    return rewriter.notifyMatchFailure(reader, "positions are of type index");
  Value positions = rope.getPositions();
  bool hasBatch =
      tokenDim > 0 && cast<ShapedType>(rows.getType()).getRank() == 4;
  auto result = cast<OpResult>(rows);
  Value unrotated = rope.getInputs()[result.getResultNumber()];
  ArrayRef<int64_t> dims = rope.getDims();
  if (hasBatch && dims == ArrayRef<int64_t>{tokenDim}) {
    // The positions are those of all sequences.
    rewriter.setInsertionPoint(reader);
    positions = addBatch(rewriter, rope.getLoc(), positions, unrotated,
                         /*batchDim=*/rope.getAxesAttr() ? 1 : 0);
  } else if (dims != (hasBatch ? ArrayRef<int64_t>{0, tokenDim}
                               : ArrayRef<int64_t>{tokenDim})) {
    return rewriter.notifyMatchFailure(
        reader, "positions are not indexed by batch and token");
  }
  return Rotation{unrotated,
                  RotationAttr::get(rope.getContext(), rope.getPairing(),
                                    rope.getFrequencies(), rope.getOffset(),
                                    rope.getAxesAttr()),
                  positions, rope.getTurns()};
}

/// Moves a rope of queries or keys into attention. f16 and bf16 rows are left
/// alone, as a rope rounds its result and attention does not.
static LogicalResult foldRotationIntoAttention(AttentionOp op,
                                               PatternRewriter &rewriter) {
  if (!op.hasPureTensorSemantics())
    return rewriter.notifyMatchFailure(op, "not on tensors");
  if (getElementTypeOrSelf(op.getQuery()) != op.getSumType())
    return rewriter.notifyMatchFailure(op, "a rope would round its rows");
  // Both rotations of attention have the same turns.
  bool isRotated = op.getQueryRotationAttr() || op.getKeyRotationAttr();
  auto fold = [&](OpOperand &rows, MutableOperandRange positions,
                  unsigned tokenDim,
                  function_ref<void(RotationAttr)> setRotation) {
    auto rope = rows.get().getDefiningOp<RopeOp>();
    if (rope && isRotated && rope.getTurns() != op.getTurns())
      return false;
    FailureOr<Rotation> rotation =
        findRotation(rewriter, op, rows.get(), tokenDim);
    if (failed(rotation))
      return false;
    rewriter.modifyOpInPlace(op, [&] {
      rows.set(rotation->rows);
      positions.assign(rotation->positions);
      op.getTurnsMutable().assign(rotation->turns);
      setRotation(rotation->attr);
    });
    return true;
  };
  bool areQueriesRaw = !op.getQueryRotationAttr() && !op.getQueryNorm();
  if (areQueriesRaw && fold(op.getQueryMutable(), op.getQueryPositionsMutable(),
                            op.getQueryTokenDim(), [&](RotationAttr attr) {
                              op.setQueryRotationAttr(attr);
                            })) {
    reportChoice(op, DEBUG_TYPE, "rotates its queries");
    return success();
  }
  // Attention without a fused kernel would rotate the keys again for each
  // tile of queries.
  bool areKeysRaw = !op.getKeyRotationAttr() && !op.getKeyNorm() &&
                    !op.getBlockTable() && !op.hasMixedTypes() &&
                    !getVectorUnsupportedReason(op);
  if (areKeysRaw &&
      fold(op.getKeyMutable(), op.getKeyPositionsMutable(), op.getKeyTokenDim(),
           [&](RotationAttr attr) { op.setKeyRotationAttr(attr); })) {
    reportChoice(op, DEBUG_TYPE, "rotates its keys");
    return success();
  }
  return rewriter.notifyMatchFailure(op, "no rope to fold");
}

/// Moves a rope of new keys into kv_append. The keys are rounded once, to the
/// cache's type, so this is done only if the rope adds no other rounding.
static LogicalResult foldRotationIntoKvAppend(KvAppendOp op,
                                              PatternRewriter &rewriter) {
  if (!op.hasPureTensorSemantics() || op.getRotationAttr() || op.getNorm())
    return rewriter.notifyMatchFailure(
        op, "expected tensors, without a norm or rotation of keys");
  // An f32 rope adds no rounding to that of the cache.
  Type element = getElementTypeOrSelf(op.getKey());
  if (!element.isF32() && !element.isF64() &&
      element != getElementTypeOrSelf(op.getInits().front()))
    return rewriter.notifyMatchFailure(op, "a rope would round its rows");
  FailureOr<Rotation> rotation =
      findRotation(rewriter, op, op.getKey(), op.getTokenDim());
  if (failed(rotation))
    return failure();
  reportChoice(op, DEBUG_TYPE, "rotates its keys");
  rewriter.modifyOpInPlace(op, [&] {
    op.getKeyMutable().assign(rotation->rows);
    op.getPositionsMutable().assign(rotation->positions);
    op.getTurnsMutable().assign(rotation->turns);
    op.setRotationAttr(rotation->attr);
  });
  return success();
}

namespace {
struct FoldRotations final
    : mlir::posenc::impl::PosencFoldRotationsPassBase<FoldRotations> {
  using Base::Base;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add(foldRotationIntoAttention).add(foldRotationIntoKvAppend);
    // Canonicalization drops the tensors of a rope that have no readers left.
    RopeOp::getCanonicalizationPatterns(patterns, &getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace

//===- FuseRopes.cpp - fusion of ropes with equal positions ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two rewrites. A posenc.rotate by the tables of a posenc.sincos becomes a
// posenc.rope. Ropes, or rotations by one sincos, that differ only in their
// tensors are merged into one operation. Rounding must not change: the tables
// of a rope are f32, or f64 for f64 tensors, so a sincos of another type is
// left alone.
//
//===----------------------------------------------------------------------===//

#include "posenc/IR/Posenc.h"
#include "posenc/IR/Remarks.h"
#include "posenc/Transforms/Passes.h"

#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCFUSEROPESPASS
#include "posenc/Transforms/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

#define DEBUG_TYPE "posenc-fuse-ropes"

/// Maximum number of tensors of a merged rope (rope_c1).
static constexpr size_t kMaxTensors = 16;

/// Rewrites rotate(x, sincos(p)) to rope(x, p).
static LogicalResult fuseSincosIntoRotate(RotateOp op,
                                          PatternRewriter &rewriter) {
  if (!op.hasPureTensorSemantics())
    return rewriter.notifyMatchFailure(op, "not on tensors");
  auto sincos = op.getCos().getDefiningOp<SincosOp>();
  if (op.getFullTables())
    return rewriter.notifyMatchFailure(op, "tables have all lanes");
  if (!sincos || op.getCos() != sincos.getResult(0) ||
      op.getSin() != sincos.getResult(1))
    return rewriter.notifyMatchFailure(op, "tables are not of one sincos");
  bool wide = getElementTypeOrSelf(op.getInputs().front()).isF64();
  Type table = getElementTypeOrSelf(op.getCos());
  if (wide ? !table.isF64() : !table.isF32())
    return rewriter.notifyMatchFailure(
        op, "the tables of a rope have another type");
  // An inverse rotate multiplies by the tables' attention factor, an inverse
  // rope divides by it.
  FrequenciesAttr frequencies = sincos.getFrequencies();
  if (op.getInverse() && !frequencies.hasUnitAttentionFactor()) {
    reportMissed(op, DEBUG_TYPE,
                 "an inverse rotation by tables does not divide by the "
                 "attention factor, which is not 1");
    return rewriter.notifyMatchFailure(op, "attention factor is not 1");
  }

  reportChoice(op, DEBUG_TYPE, "fused with its sincos");
  rewriter.replaceOpWithNewOp<RopeOp>(
      op, op.getResultTypes(), op.getInputs(), sincos.getPositions(),
      sincos.getTurns(), op.getInits(), op.getPairingAttr(), frequencies,
      sincos.getAxesAttr(), /*scale=*/nullptr, op.getDimsAttr(),
      op.getOffsetAttr(), op.getInverseAttr());
  return success();
}

namespace {
/// Merges two operations of one block that agree in everything but their
/// tensors into one operation on the tensors of both.
template <typename OpTy> struct MergeTensors : OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPureTensorSemantics())
      return rewriter.notifyMatchFailure(op, "not on tensors");
    OpTy earlier, insertionPoint;
    for (Operation *user : getAngles(op).getUsers()) {
      auto candidate = dyn_cast<OpTy>(user);
      if (!candidate || candidate->getBlock() != op->getBlock() ||
          !candidate->isBeforeInBlock(op) || !areAlike(candidate, op))
        continue;
      // Takes the nearest candidate, so that the result does not depend on the
      // order of uses.
      if (earlier && candidate->isBeforeInBlock(earlier))
        continue;
      if (OpTy point = findInsertionPoint(candidate, op)) {
        earlier = candidate;
        insertionPoint = point;
      }
    }
    if (!earlier)
      return rewriter.notifyMatchFailure(op, "nothing to merge with");

    reportChoice(op, DEBUG_TYPE,
                 Twine("merged with an earlier rotation by the same ") +
                     (isa<RopeOp>(op) ? "positions" : "tables"));
    SmallVector<Value> inputs(earlier.getInputs()), inits(earlier.getInits());
    llvm::append_range(inputs, op.getInputs());
    llvm::append_range(inits, op.getInits());
    rewriter.setInsertionPoint(insertionPoint);
    Location loc = rewriter.getFusedLoc({earlier.getLoc(), op.getLoc()});
    ResultRange results = create(rewriter, loc, op, inputs, inits).getResults();
    size_t numEarlier = earlier.getNumResults();
    rewriter.replaceOp(earlier, results.take_front(numEarlier));
    rewriter.replaceOp(op, results.drop_front(numEarlier));
    return success();
  }

private:
  /// Whether both operations can be merged, regardless of their position in the
  /// block.
  static bool areAlike(OpTy a, OpTy b) {
    if (!a.hasPureTensorSemantics() || !agree(a, b) ||
        a.getPairing() != b.getPairing() || a.getDims() != b.getDims() ||
        a.getOffset() != b.getOffset() || a.getInverse() != b.getInverse() ||
        getElementTypeOrSelf(a.getInputs().front()) !=
            getElementTypeOrSelf(b.getInputs().front()) ||
        a.getInputs().size() + b.getInputs().size() > kMaxTensors)
      return false;
    // The tensors of one rope must have equal sizes in `dims`. With a scalar
    // position, these sizes do not follow from the positions.
    bool scalar = a.getScalarPositionOperand().has_value();
    auto tensorsOf = [](OpTy op) {
      SmallVector<Value> tensors(op.getInputs());
      llvm::append_range(tensors, op.getInits());
      return tensors;
    };
    for (Value x : tensorsOf(a))
      for (Value y : tensorsOf(b))
        if (!haveLikeSizes(x, y, a.getDims(), /*mustBeKnown=*/scalar))
          return false;
    return true;
  }

  static bool haveLikeSizes(Value x, Value y, ArrayRef<int64_t> dims,
                            bool mustBeKnown) {
    auto xType = cast<ShapedType>(x.getType());
    auto yType = cast<ShapedType>(y.getType());
    return llvm::all_of(dims, [&](int64_t dim) {
      if (xType.isDynamicDim(dim) || yType.isDynamicDim(dim))
        return !mustBeKnown;
      return xType.getDimSize(dim) == yType.getDimSize(dim);
    });
  }

  /// Returns the operation, `first` or `second`, before which the merged
  /// operation can be inserted, or null if neither is possible.
  static OpTy findInsertionPoint(OpTy first, OpTy second) {
    Block *block = first->getBlock();
    bool usedBetween = llvm::any_of(first->getUsers(), [&](Operation *user) {
      // A user outside this block comes after all of the block.
      Operation *ancestor = block->findAncestorOpInBlock(*user);
      return ancestor &&
             (ancestor == second || ancestor->isBeforeInBlock(second));
    });
    if (!usedBetween)
      return second;
    bool definedBefore =
        llvm::all_of(second->getOperands(), [&](Value operand) {
          Operation *definition = operand.getDefiningOp();
          return !definition || definition->getBlock() != block ||
                 definition->isBeforeInBlock(first);
        });
    return definedBefore ? first : nullptr;
  }

  /// Returns the operand that both must share: positions or cos.
  static Value getAngles(RopeOp op) { return op.getPositions(); }
  static Value getAngles(RotateOp op) { return op.getCos(); }
  static bool agree(RopeOp a, RopeOp b) {
    return a.getPositions() == b.getPositions() &&
           a.getFrequencies() == b.getFrequencies() &&
           a.getTurns() == b.getTurns() && a.getAxesAttr() == b.getAxesAttr() &&
           a.getScaleAttr() == b.getScaleAttr();
  }
  static bool agree(RotateOp a, RotateOp b) {
    return a.getCos() == b.getCos() && a.getSin() == b.getSin() &&
           a.getFullTables() == b.getFullTables() &&
           a.getCos().getDefiningOp<SincosOp>();
  }

  static RopeOp create(OpBuilder &builder, Location loc, RopeOp like,
                       ValueRange inputs, ValueRange inits) {
    return RopeOp::create(
        builder, loc, inits.getTypes(), inputs, like.getPositions(),
        like.getTurns(), inits, like.getPairingAttr(),
        like.getFrequenciesAttr(), like.getAxesAttr(), like.getScaleAttr(),
        like.getDimsAttr(), like.getOffsetAttr(), like.getInverseAttr());
  }
  static RotateOp create(OpBuilder &builder, Location loc, RotateOp like,
                         ValueRange inputs, ValueRange inits) {
    return RotateOp::create(
        builder, loc, inits.getTypes(), inputs, like.getCos(), like.getSin(),
        inits, like.getPairingAttr(), like.getDimsAttr(), like.getOffsetAttr(),
        like.getInverseAttr(), like.getFullTablesAttr());
  }
};

struct PosencFuseRopesPass
    : mlir::posenc::impl::PosencFuseRopesPassBase<PosencFuseRopesPass> {
  using Base::Base;

  void runOnOperation() override {
    // Merges rotations first: a common table implies that the sizes of their
    // tensors agree, which a common scalar position does not.
    RewritePatternSet rotations(&getContext());
    rotations.add<MergeTensors<RotateOp>>(&getContext());
    RewritePatternSet ropes(&getContext());
    ropes.add(fuseSincosIntoRotate).add<MergeTensors<RopeOp>>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(rotations))) ||
        failed(applyPatternsGreedily(getOperation(), std::move(ropes))))
      signalPassFailure();
  }
};
} // namespace

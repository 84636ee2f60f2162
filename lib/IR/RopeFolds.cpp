//===- RopeFolds.cpp - algebra of posenc.rope -----------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/IR/Posenc.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::posenc;

/// Whether both ropes are equal except for tensors, positions and direction.
static bool haveSameRotation(RopeOp a, RopeOp b) {
  return a.getPairing() == b.getPairing() &&
         a.getFrequencies() == b.getFrequencies() &&
         a.getTurns() == b.getTurns() && a.getAxesAttr() == b.getAxesAttr() &&
         a.getDims() == b.getDims() && a.getOffset() == b.getOffset();
}

/// Returns the rope whose results, in order, are the inputs of `op`, or null.
static RopeOp getProducer(RopeOp op) {
  auto producer = op.getInputs().front().getDefiningOp<RopeOp>();
  if (!producer || producer == op || producer.getResults() != op.getInputs())
    return nullptr;
  return producer;
}

LogicalResult RopeOp::fold(FoldAdaptor adaptor,
                           SmallVectorImpl<OpFoldResult> &results) {
  // A rope on memrefs has no results to fold.
  if (getNumResults() != getInputs().size() ||
      TypeRange(getInputs()) != getResultTypes())
    return failure();
  auto replaceBy = [&](OperandRange values) -> LogicalResult {
    // In a graph region the op may be its own operand.
    if (llvm::any_of(values, [&](Value value) {
          return value.getDefiningOp() == getOperation();
        }))
      return failure();
    llvm::append_range(results, values);
    return success();
  };
  // rope(x, 0) = att*x. A scalar position still has the row index added.
  if (matchPattern(adaptor.getPositions(), m_Zero()) &&
      isa<ShapedType>(getPositions().getType()) &&
      getFrequencies().hasUnitAttentionFactor())
    return replaceBy(getInputs());
  // inverse(rope(x, p), p) = x = rope(inverse(x, p), p).
  RopeOp producer = getProducer(*this);
  if (producer && getInverse() != producer.getInverse() &&
      haveSameRotation(*this, producer) &&
      producer.getPositions() == getPositions() &&
      TypeRange(producer.getInputs()) == getResultTypes())
    return replaceBy(producer.getInputs());
  return failure();
}

namespace {

/// rope(rope(x, p), q) = rope(x, p+q), and p-q where the outer one is inverse.
struct ComposeRopes : OpRewritePattern<RopeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(RopeOp op,
                                PatternRewriter &rewriter) const override {
    RopeOp producer = getProducer(op);
    if (!producer || !haveSameRotation(op, producer))
      return rewriter.notifyMatchFailure(op, "not a rope of an equal rope");
    if (!op.getFrequencies().hasUnitAttentionFactor())
      return rewriter.notifyMatchFailure(op, "attention factor is not 1");
    // With other users, the inner rope remains, so composing saves nothing.
    if (!llvm::all_of(producer->getUsers(),
                      [&](Operation *user) { return user == op; }))
      return rewriter.notifyMatchFailure(op, "inner rope has other users");
    auto type = dyn_cast<ShapedType>(op.getPositions().getType());
    auto innerType = dyn_cast<ShapedType>(producer.getPositions().getType());
    // The row index, which is added to scalar positions, would be added twice.
    if (!type || !innerType)
      return rewriter.notifyMatchFailure(op, "scalar positions");
    Type wide = rewriter.getI64Type();
    if (type.clone(wide) != innerType.clone(wide))
      return rewriter.notifyMatchFailure(op, "positions differ in type");

    Value inner = toI64(rewriter, op.getLoc(), producer.getPositions());
    Value outer = toI64(rewriter, op.getLoc(), op.getPositions());
    bool subtract = op.getInverse() != producer.getInverse();
    Value positions =
        subtract ? arith::SubIOp::create(rewriter, op.getLoc(), inner, outer)
                       .getResult()
                 : arith::AddIOp::create(rewriter, op.getLoc(), inner, outer)
                       .getResult();
    // Keeps the direction of the inner rope: inverse(p), then inverse(q), is
    // inverse(p+q).
    rewriter.modifyOpInPlace(op, [&] {
      op.getInputsMutable().assign(producer.getInputs());
      op.getPositionsMutable().assign(positions);
      op.setInverse(producer.getInverse());
    });
    return success();
  }

private:
  static Value toI64(PatternRewriter &rewriter, Location loc, Value positions) {
    auto type = cast<ShapedType>(positions.getType());
    if (type.getElementType().isInteger(64))
      return positions;
    Type wide = type.clone(rewriter.getI64Type());
    if (type.getElementType().isIndex())
      return arith::IndexCastOp::create(rewriter, loc, wide, positions);
    return arith::ExtSIOp::create(rewriter, loc, wide, positions);
  }
};

/// Removes tensors whose rotation has no users.
struct DropUnusedTensors : OpRewritePattern<RopeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(RopeOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getNumResults() < 2 || op->use_empty() ||
        llvm::none_of(op.getResults(),
                      [](Value result) { return result.use_empty(); }))
      return rewriter.notifyMatchFailure(op, "every result is used");
    SmallVector<Value> inputs, inits, used;
    for (auto [input, init, result] :
         llvm::zip_equal(op.getInputs(), op.getInits(), op.getResults())) {
      if (result.use_empty())
        continue;
      inputs.push_back(input);
      inits.push_back(init);
      used.push_back(result);
    }
    auto narrow = RopeOp::create(
        rewriter, op.getLoc(), ValueRange(inits).getTypes(), inputs,
        op.getPositions(), op.getTurns(), inits, op.getPairingAttr(),
        op.getFrequenciesAttr(), op.getAxesAttr(), op.getDimsAttr(),
        op.getOffsetAttr(), op.getInverseAttr());
    for (auto [old, replacement] : llvm::zip_equal(used, narrow.getResults()))
      rewriter.replaceAllUsesWith(old, replacement);
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void RopeOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                         MLIRContext *context) {
  patterns.add<ComposeRopes, DropUnusedTensors>(context);
}

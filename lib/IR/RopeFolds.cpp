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

/// Whether both ropes are equal except for tensors, positions and direction,
/// and have no factors that depend on the position.
static bool haveSameRotation(RopeOp a, RopeOp b) {
  return !a.getScale() && !b.getScale() && a.getPairing() == b.getPairing() &&
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
  if (!getScale() &&
      (matchPattern(adaptor.getPositions(), m_Zero()) ||
       matchPattern(adaptor.getPositions(), m_AnyZeroFloat())) &&
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

static Value toI64(PatternRewriter &rewriter, Location loc, Value positions) {
  auto type = cast<ShapedType>(positions.getType());
  if (type.getElementType().isInteger(64))
    return positions;
  Type wide = type.clone(rewriter.getI64Type());
  if (type.getElementType().isIndex())
    return arith::IndexCastOp::create(rewriter, loc, wide, positions);
  return arith::ExtSIOp::create(rewriter, loc, wide, positions);
}

/// Emits the sum of the positions in i64, or their difference. Fails unless
/// both are tensors of one shape: the row index, which is added to scalar
/// positions, would be added twice.
static FailureOr<Value> combine(PatternRewriter &rewriter, Operation *op,
                                Value a, Value b, bool subtract) {
  auto aType = dyn_cast<RankedTensorType>(a.getType());
  auto bType = dyn_cast<RankedTensorType>(b.getType());
  if (!aType || !bType)
    return rewriter.notifyMatchFailure(op, "scalar positions");
  if (aType.getShape() != bType.getShape())
    return rewriter.notifyMatchFailure(op, "positions differ in shape");
  if (isa<FloatType>(aType.getElementType()) ||
      isa<FloatType>(bType.getElementType()))
    return rewriter.notifyMatchFailure(op, "sums of floats are rounded");
  Location loc = op->getLoc();
  a = toI64(rewriter, loc, a);
  b = toI64(rewriter, loc, b);
  if (subtract)
    return arith::SubIOp::create(rewriter, loc, a, b).getResult();
  return arith::AddIOp::create(rewriter, loc, a, b).getResult();
}

/// rope(rope(x, p), q) = rope(x, p+q), and p-q where one of both is inverse.
/// The attention factors of a rope and an inverse rope cancel.
static LogicalResult composeRopes(RopeOp op, PatternRewriter &rewriter) {
  RopeOp producer = getProducer(op);
  if (!producer || !haveSameRotation(op, producer))
    return rewriter.notifyMatchFailure(op, "not a rope of an equal rope");
  if (op.getFrequencies().roundsAngles())
    return rewriter.notifyMatchFailure(op, "angles are rounded");
  bool subtract = op.getInverse() != producer.getInverse();
  if (!subtract && !op.getFrequencies().hasUnitAttentionFactor())
    return rewriter.notifyMatchFailure(op, "attention factor is not 1");
  // With other users, the inner rope remains, so composing saves nothing.
  if (!llvm::all_of(producer->getUsers(),
                    [&](Operation *user) { return user == op; }))
    return rewriter.notifyMatchFailure(op, "inner rope has other users");
  FailureOr<Value> positions = combine(rewriter, op, producer.getPositions(),
                                       op.getPositions(), subtract);
  if (failed(positions))
    return failure();
  // Keeps the direction of the inner rope: inverse(p), then inverse(q), is
  // inverse(p+q).
  rewriter.modifyOpInPlace(op, [&] {
    op.getInputsMutable().assign(producer.getInputs());
    op.getPositionsMutable().assign(*positions);
    // The destinations are overwritten, so that those of the inner rope
    // serve.
    for (OpOperand &init : op.getInitsMutable())
      if (init.get().getDefiningOp() == producer) {
        unsigned number = cast<OpResult>(init.get()).getResultNumber();
        init.set(producer.getInits()[number]);
      }
    op.setInverse(producer.getInverse());
    if (subtract)
      op.setFrequenciesAttr(op.getFrequencies().withUnitAttentionFactor());
  });
  return success();
}

/// The rotation of a sinusoidal row is the row at another position: with s =
/// sin and c = cos of p*f, rope by k maps (s, c) to the row at p-k, and (c, s)
/// to the row at p+k.
static LogicalResult shiftSinusoidal(RopeOp op, PatternRewriter &rewriter) {
  if (op.getInputs().size() != 1 || !op.hasPureTensorSemantics() ||
      op.getScale())
    return rewriter.notifyMatchFailure(op, "not one tensor without a scale");
  auto table = op.getInputs().front().getDefiningOp<SinusoidalOp>();
  if (!table || !table->hasOneUse())
    return rewriter.notifyMatchFailure(op, "not a rope of a table");
  if (op.getFrequencies().roundsAngles())
    return rewriter.notifyMatchFailure(op, "angles are rounded");
  bool isZipped = table.getOrder() == TableOrder::Interleaved;
  if (table.getAxes() || table.getPaddingPosition() || op.getAxes() ||
      !op.getTurns().empty() || op.getOffset() != 0 ||
      op.getFrequencies() != table.getFrequencies() ||
      !op.getFrequencies().hasUnitAttentionFactor() ||
      isZipped != (op.getPairing() == Pairing::Interleaved))
    return rewriter.notifyMatchFailure(op, "not the rotation of a table row");
  if (!llvm::equal(op.getDims(), llvm::seq<int64_t>(table.getNumLoops())))
    return rewriter.notifyMatchFailure(op, "positions are transposed");
  bool isSinFirst = table.getOrder() != TableOrder::CosSin;
  FailureOr<Value> positions =
      combine(rewriter, op, table.getPositions(), op.getPositions(),
              /*subtract=*/isSinFirst != op.getInverse());
  if (failed(positions))
    return failure();
  rewriter.replaceOpWithNewOp<SinusoidalOp>(
      op, op.getResultTypes(), *positions, op.getInits(), table.getOrderAttr(),
      table.getFrequenciesAttr(), table.getAxesAttr(), table.getZeroPadAttr(),
      table.getPaddingPositionAttr());
  return success();
}

/// Removes tensors whose rotation has no users.
static LogicalResult dropUnusedTensors(RopeOp op, PatternRewriter &rewriter) {
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
      op.getFrequenciesAttr(), op.getAxesAttr(), op.getScaleAttr(),
      op.getDimsAttr(), op.getOffsetAttr(), op.getInverseAttr());
  for (auto [old, replacement] : llvm::zip_equal(used, narrow.getResults()))
    rewriter.replaceAllUsesWith(old, replacement);
  rewriter.eraseOp(op);
  return success();
}

void RopeOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                         MLIRContext *context) {
  patterns.add(composeRopes).add(shiftSinusoidal).add(dropUnusedTensors);
}

//===- ConvertPairingOp.cpp - posenc.convert_pairing ----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/IR/Posenc.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/RegionKindInterface.h"

using namespace mlir;
using namespace mlir::posenc;

LogicalResult ConvertPairingOp::verify() {
  int64_t dim = getDim(), offset = getOffset();
  if (dim <= 0 || dim % 2 != 0)
    return emitOpError() << "expected an even and positive dim, got " << dim
                         << " (convert_pairing_c2)";
  auto type = getInput().getType();
  if (type.getRank() < 1 || type.isDynamicDim(type.getRank() - 1) ||
      offset < 0 || dim > type.getShape().back() ||
      offset > type.getShape().back() - dim)
    return emitOpError() << "expected a static last dimension with the lanes "
                         << offset << " to " << offset << " + " << dim
                         << ", got " << type << " (convert_pairing_c1)";
  return success();
}

LogicalResult
ConvertPairingOp::reifyResultShapes(OpBuilder &builder,
                                    ReifiedRankedShapedTypeDims &shapes) {
  shapes.push_back(tensor::getMixedSizes(builder, getLoc(), getInput()));
  return success();
}

/// Whether both permute the same window.
static bool haveSameWindow(ConvertPairingOp a, ConvertPairingOp b) {
  return a.getDim() == b.getDim() && a.getOffset() == b.getOffset();
}

OpFoldResult ConvertPairingOp::fold(FoldAdaptor) {
  // In a graph region the operation may be its own operand.
  if (getFrom() == getTo() && getInput() != getResult())
    return getInput();
  auto producer = getInput().getDefiningOp<ConvertPairingOp>();
  if (producer && producer.getInput() != getResult() &&
      haveSameWindow(*this, producer) && producer.getFrom() == getTo() &&
      producer.getTo() == getFrom())
    return producer.getInput();
  return {};
}

/// Whether the conversion is to the pairs that the rope rotates.
static bool isConvertedFor(RopeOp op, ConvertPairingOp convert) {
  return convert.getTo() == op.getPairing() &&
         static_cast<int64_t>(convert.getDim()) ==
             op.getFrequencies().getDim() &&
         convert.getOffset() == op.getOffset();
}

/// rope<to>(convert(x)) = convert(rope<from>(x)).
static LogicalResult rotateFirst(RopeOp op, PatternRewriter &rewriter) {
  if (!op.hasPureTensorSemantics())
    return rewriter.notifyMatchFailure(op, "not on tensors");
  // Where operations may be their own operands, this would not end.
  if (mayBeGraphRegion(*op->getParentRegion()))
    return rewriter.notifyMatchFailure(op, "in a graph region");
  SmallVector<Value> inputs;
  ConvertPairingOp first;
  for (Value input : op.getInputs()) {
    auto convert = input.getDefiningOp<ConvertPairingOp>();
    if (!convert || !isConvertedFor(op, convert) ||
        (first && convert.getFrom() != first.getFrom()))
      return rewriter.notifyMatchFailure(op, "an input is not converted");
    if (!llvm::all_of(convert->getUsers(),
                      [&](Operation *user) { return user == op; }))
      return rewriter.notifyMatchFailure(op, "conversion has other users");
    first = convert;
    inputs.push_back(convert.getInput());
  }
  // Destinations are overwritten, so that those before the conversion serve.
  SmallVector<Value> inits(op.getInits());
  for (Value &init : inits)
    if (auto convert = init.getDefiningOp<ConvertPairingOp>())
      init = convert.getInput();
  auto rope = RopeOp::create(
      rewriter, op.getLoc(), op.getResultTypes(), inputs, op.getPositions(),
      op.getTurns(), inits, first.getFromAttr(), op.getFrequenciesAttr(),
      op.getAxesAttr(), op.getScaleAttr(), op.getDimsAttr(), op.getOffsetAttr(),
      op.getInverseAttr());
  SmallVector<Value> results;
  for (Value rotated : rope.getResults())
    results.push_back(ConvertPairingOp::create(
        rewriter, op.getLoc(), rotated.getType(), rotated, first.getFromAttr(),
        first.getToAttr(), first.getDimAttr(), first.getOffsetAttr()));
  rewriter.replaceOp(op, results);
  return success();
}

void ConvertPairingOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                                   MLIRContext *context) {
  patterns.add(rotateFirst);
}

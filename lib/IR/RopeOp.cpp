//===- RopeOp.cpp - posenc.rope -------------------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PositionalVerify.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::posenc;

int64_t RopeOp::getNumLoops() { return getDims().size(); }

SmallVector<int64_t> RopeOp::getDimSymbols(unsigned operandNumber) {
  Type type = getOperation()->getOperand(operandNumber).getType();
  unsigned numInputs = getInputs().size();
  if (operandNumber == numInputs)
    return getPositionSymbols(type, getAxesAttr());
  if (operandNumber < numInputs)
    return getRotatedSymbols(type, getDims(), operandNumber);
  unsigned firstInit = getInits().getBeginOperandIndex();
  if (operandNumber < firstInit)
    return {-1};
  return getRotatedSymbols(type, getDims(), operandNumber - firstInit);
}

std::optional<unsigned> RopeOp::getScalarPositionOperand() {
  if (isa<ShapedType>(getPositions().getType()))
    return std::nullopt;
  return getInputs().size();
}

/// The factors of positions are in the tables of a rope, which exist on tensors
/// only, and in f32.
static LogicalResult verifyScale(RopeOp op) {
  if (!op.getScale())
    return success();
  if (op.getAxesAttr())
    return op.emitOpError() << "expected no axes with a scale (rope_c9)";
  for (Value input : op.getInputs())
    if (!isa<RankedTensorType>(input.getType()) ||
        getElementTypeOrSelf(input).isF64())
      return op.emitOpError()
             << "expected tensors of f32, f16 or bf16 with a scale, got "
             << input.getType()
             << "; posenc-tabulate-ropes must run before bufferization "
                "(rope_c9)";
  return success();
}

LogicalResult RopeOp::verify() {
  // The generic form can have any number of operands in each group.
  if (getODSOperands(1).size() != 1)
    return emitOpError() << "expected one operand of positions, got "
                         << getODSOperands(1).size();
  Type positions = getPositions().getType();
  if (failed(verifyAxes(*this, positions, getAxesAttr(), getFrequencies(),
                        "rope_c6")))
    return failure();
  if (failed(verifyRotation(*this, getInputs(), getInits(), getDims(),
                            getNumPositionLoops(positions, getAxesAttr()),
                            getOffset(), getFrequencies().getDim(),
                            {"rope_c1", "rope_c2", "rope_c3", "rope_c4"})))
    return failure();
  if (failed(verifyTurns(*this, getTurns(), getFrequencies(), getPositions(),
                         "rope_c8")))
    return failure();
  if (failed(verifyScale(*this)))
    return failure();
  if (failed(detail::verifySymbols(*this, "rope_c5")))
    return failure();
  return detail::verifyDestinations(*this, "rope_c7");
}

//===- SincosOp.cpp - posenc.sincos ---------------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PositionalVerify.h"

using namespace mlir;
using namespace mlir::posenc;

int64_t SincosOp::getNumLoops() {
  return getNumPositionLoops(getPositions().getType(), getAxesAttr());
}

SmallVector<int64_t> SincosOp::getDimSymbols(unsigned operandNumber) {
  Type type = getOperation()->getOperand(operandNumber).getType();
  if (operandNumber == 0)
    return getPositionSymbols(type, getAxesAttr());
  if (operandNumber <= getTurns().size())
    return {-1};
  return getTableSymbols(type);
}

std::optional<unsigned> SincosOp::getScalarPositionOperand() {
  if (isa<ShapedType>(getPositions().getType()))
    return std::nullopt;
  return 0;
}

LogicalResult SincosOp::verify() {
  // The generic form can have any number of operands in each group.
  if (getODSOperands(0).size() != 1)
    return emitOpError() << "expected one operand of positions, got "
                         << getODSOperands(0).size();
  if (getInits().size() != 2 ||
      !haveCompatibleShapes(getInits()[0].getType(), getInits()[1].getType()))
    return emitOpError() << "expected two destinations of the same shape and "
                            "element type (sincos_c1)";
  auto type = cast<ShapedType>(getInits()[0].getType());
  int64_t numPairs = getFrequencies().getNumPairs();
  for (Value init : getInits()) {
    auto table = cast<ShapedType>(init.getType());
    if (table.getRank() < 1 || table.getShape().back() != numPairs)
      return emitOpError() << "expected destinations with a last dimension of "
                           << numPairs << ", got " << table << " (sincos_c2)";
  }
  if (failed(verifyAxes(*this, getPositions().getType(), getAxesAttr(),
                        getFrequencies(), "sincos_c4")))
    return failure();
  if (failed(verifyTurns(*this, getTurns(), getFrequencies(), getPositions(),
                         "sincos_c6")))
    return failure();
  if (type.getRank() != getNumLoops() + 1)
    return emitOpError() << "expected destinations of rank "
                         << getNumLoops() + 1 << ", got " << type
                         << " (sincos_c3)";
  if (failed(detail::verifySymbols(*this, "sincos_c3")))
    return failure();
  return detail::verifyDestinations(*this, "sincos_c5");
}

//===- RotateOp.cpp - posenc.rotate ---------------------------------------===//
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

int64_t RotateOp::getNumLoops() { return getDims().size(); }

SmallVector<int64_t> RotateOp::getDimSymbols(unsigned operandNumber) {
  Type type = getOperation()->getOperand(operandNumber).getType();
  unsigned numInputs = getInputs().size();
  if (operandNumber == numInputs || operandNumber == numInputs + 1)
    return getTableSymbols(type);
  int64_t index =
      operandNumber < numInputs ? operandNumber : operandNumber - numInputs - 2;
  return getRotatedSymbols(type, getDims(), index);
}

std::optional<unsigned> RotateOp::getScalarPositionOperand() {
  return std::nullopt;
}

int64_t RotateOp::getRotaryDim() {
  auto table = cast<ShapedType>(getCos().getType());
  int64_t width = table.getDimSize(table.getRank() - 1);
  return getFullTables() ? width : 2 * width;
}

LogicalResult RotateOp::verify() {
  // The generic form can have any number of operands in each group.
  for (unsigned table : {1, 2})
    if (getODSOperands(table).size() != 1)
      return emitOpError() << "expected one operand for each table, got "
                           << getODSOperands(table).size();
  auto table = cast<ShapedType>(getCos().getType());
  auto sines = cast<ShapedType>(getSin().getType());
  if (!haveCompatibleShapes(table, sines) || table.getRank() < 1 ||
      table.isDynamicDim(table.getRank() - 1) ||
      sines.isDynamicDim(table.getRank() - 1) ||
      table.getDimSize(table.getRank() - 1) < 1 ||
      table.getDimSize(table.getRank() - 1) > 32768 ||
      (getFullTables() && table.getDimSize(table.getRank() - 1) % 2 != 0))
    return emitOpError() << "expected tables of one shape and element type "
                            "with a static last dimension between 1 and "
                            "32768"
                         << (getFullTables() ? " that is even" : "") << ", got "
                         << table << " and " << sines << " (rotate_c3)";
  if (failed(
          verifyRotation(*this, getInputs(), getInits(), getDims(),
                         table.getRank() - 1, getOffset(), getRotaryDim(),
                         {"rotate_c1", "rotate_c2", "rotate_c4", "rotate_c5"})))
    return failure();
  if (failed(detail::verifySymbols(*this, "rotate_c6")))
    return failure();
  if (table.getElementType().isF64() &&
      !getElementTypeOrSelf(getInputs().front().getType()).isF64())
    return emitOpError() << "expected tables of at most 32 bits for "
                         << getInputs().front().getType() << " (rotate_c7)";
  if (failed(detail::verifyDestinations(*this, "rotate_c8")))
    return failure();
  if (getFullTables() && !hasPureTensorSemantics())
    return emitOpError() << "expected tensors with full_tables (rotate_c9)";
  return success();
}

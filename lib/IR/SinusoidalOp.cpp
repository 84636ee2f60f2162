//===- SinusoidalOp.cpp - posenc.sinusoidal -------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PositionalVerify.h"

using namespace mlir;
using namespace mlir::posenc;

int64_t SinusoidalOp::getNumLoops() {
  return getNumPositionLoops(getPositions().getType(), getAxesAttr());
}

SmallVector<int64_t> SinusoidalOp::getDimSymbols(unsigned operandNumber) {
  Type type = getOperation()->getOperand(operandNumber).getType();
  return operandNumber == 0 ? getPositionSymbols(type, getAxesAttr())
                            : getTableSymbols(type);
}

std::optional<unsigned> SinusoidalOp::getScalarPositionOperand() {
  if (isa<ShapedType>(getPositions().getType()))
    return std::nullopt;
  return 0;
}

SmallVector<SinusoidalOp::Part> SinusoidalOp::getParts() {
  FrequenciesAttr all = getFrequencies();
  if (!getAxesAttr())
    return {{all, 0}};
  SmallVector<Part> parts;
  int64_t firstLane = 0;
  for (int64_t pairs : getAxesAttr().getSections()) {
    parts.push_back(
        {FrequenciesAttr::get(getContext(), 2 * pairs, all.getBase(),
                              all.getScaling(), all.getPrecision()),
         firstLane});
    firstLane += 2 * pairs;
  }
  return parts;
}

/// Checks the attributes that are valid only together.
static LogicalResult verifyForms(SinusoidalOp op) {
  if (op.getFrequencies().dependsOnLength())
    return op.emitOpError() << "expected frequencies that do not depend on the "
                               "length, got "
                            << op.getFrequencies() << " (sinusoidal_c7)";
  Type positions = op.getPositions().getType();
  if (op.getPaddingPosition() &&
      isa<FloatType>(getElementTypeOrSelf(positions)))
    return op.emitOpError()
           << "expected no padding_position, since positions are "
              "floats, got "
           << positions << " (sinusoidal_c6)";
  AxesAttr axes = op.getAxesAttr();
  if (!axes)
    return success();
  if (axes.getLayout() != AxisLayout::Axial)
    return op.emitOpError()
           << "expected axes with the layout axial, got "
           << stringifyAxisLayout(axes.getLayout()) << " (sinusoidal_c5)";
  if (!restartsOnAxes(op.getFrequencies()))
    return op.emitOpError()
           << "expected a scaling without a list of pairs, got "
           << op.getFrequencies().getScaling()
           << "; use one operation per axis (sinusoidal_c5)";
  if (op.getPaddingPosition())
    return op.emitOpError() << "expected no padding_position with axes, since "
                               "a row has several positions (sinusoidal_c6)";
  return success();
}

LogicalResult SinusoidalOp::verify() {
  if (getInits().size() != 1)
    return emitOpError() << "expected one destination, got "
                         << getInits().size() << " (sinusoidal_c1)";
  auto type = cast<ShapedType>(getInits()[0].getType());
  if (type.getRank() < 1 || type.getDimSize(type.getRank() - 1) != getRowSize())
    return emitOpError() << "expected a destination with a last dimension of "
                         << getRowSize() << ", got " << type
                         << " (sinusoidal_c1)";
  if (failed(verifyForms(*this)) ||
      failed(verifyAxes(*this, getPositions().getType(), getAxesAttr(),
                        getFrequencies(), "sinusoidal_c4")))
    return failure();
  if (type.getRank() != getNumLoops() + 1)
    return emitOpError() << "expected a destination of rank "
                         << getNumLoops() + 1 << ", got " << type
                         << " (sinusoidal_c2)";
  if (failed(detail::verifySymbols(*this, "sinusoidal_c2")))
    return failure();
  return detail::verifyDestinations(*this, "sinusoidal_c3");
}

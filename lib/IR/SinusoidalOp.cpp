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
  return getNumPositionLoops(getPositions().getType(), /*axes=*/nullptr);
}

SmallVector<int64_t> SinusoidalOp::getDimSymbols(unsigned operandNumber) {
  Type type = getOperation()->getOperand(operandNumber).getType();
  return operandNumber == 0 ? getPositionSymbols(type, /*axes=*/nullptr)
                            : getTableSymbols(type);
}

std::optional<unsigned> SinusoidalOp::getScalarPositionOperand() {
  if (isa<ShapedType>(getPositions().getType()))
    return std::nullopt;
  return 0;
}

LogicalResult SinusoidalOp::verify() {
  int64_t dim = getFrequencies().getDim();
  if (getInits().size() != 1)
    return emitOpError() << "expected one destination, got "
                         << getInits().size() << " (sinusoidal_c1)";
  auto type = cast<ShapedType>(getInits()[0].getType());
  if (type.getRank() < 1 || type.getDimSize(type.getRank() - 1) != dim)
    return emitOpError() << "expected a destination with a last dimension of "
                         << dim << ", got " << type << " (sinusoidal_c1)";
  if (type.getRank() != getNumLoops() + 1)
    return emitOpError() << "expected a destination of rank "
                         << getNumLoops() + 1 << ", got " << type
                         << " (sinusoidal_c2)";
  if (failed(detail::verifySymbols(*this, "sinusoidal_c2")))
    return failure();
  return detail::verifyDestinations(*this, "sinusoidal_c3");
}

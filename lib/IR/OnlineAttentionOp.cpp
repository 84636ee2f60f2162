//===- OnlineAttentionOp.cpp - posenc.online_attention --------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionVerify.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::posenc;

// Heads, queries and keys are loops of the tiling interface only; there are no
// loops over positions.
int64_t OnlineAttentionOp::getNumLoops() { return 0; }

SmallVector<int64_t> OnlineAttentionOp::getDimSymbols(unsigned operandNumber) {
  // Symbols of the sizes of operands. Dimensions with the same symbol are
  // equal. The first three symbols are the loops.
  enum : int64_t { Own = -1, Heads, Queries, Keys, Dim, ValueDim };
  Value value = getOperation()->getOperand(operandNumber);
  auto type = dyn_cast<ShapedType>(value.getType());
  if (!type)
    return {};
  unsigned query = getQueryMutable().getOperandNumber();
  unsigned firstInit = getInits().getBeginOperandIndex();
  bool isMask = operandNumber > query + 2 && operandNumber < firstInit;
  SmallVector<int64_t> symbols;
  if (operandNumber == query)
    symbols = {Heads, Queries, Dim};
  else if (operandNumber == query + 1)
    symbols = {Keys, Dim};
  else if (operandNumber == query + 2)
    symbols = {Keys, ValueDim};
  else if (isMask)
    symbols = {Heads, Queries, Keys};
  else if (operandNumber == firstInit)
    symbols = {Heads, Queries, ValueDim};
  else
    symbols = {Heads, Queries};
  // The verifier reports wrong ranks separately.
  symbols.resize(type.getRank(), Own);
  if (isMask)
    dropUnitSymbols(type, symbols);
  return symbols;
}

FloatType OnlineAttentionOp::getSumType() {
  return getSumTypeFor(getQuery().getType());
}

double OnlineAttentionOp::getScoreScale() {
  std::optional<APFloat> scale = getScale();
  return scale ? scale->convertToDouble() : 1.0;
}

void OnlineAttentionOp::getAsmBlockArgumentNames(Region &region,
                                                 OpAsmSetValueNameFn setName) {
  nameScalarArguments(region, setName);
}

LogicalResult OnlineAttentionOp::verify() {
  // The generic form can have any number of operands in each group.
  for (unsigned group : {0, 1, 2, 3, 5, 6, 7})
    if (getODSOperands(group).size() != 1)
      return emitOpError() << "expected one operand each for the indices, "
                              "query, key and value, got "
                           << getODSOperands(group).size();
  if (getInits().size() != 3)
    return emitOpError() << "expected three destinations, got "
                         << getInits().size() << " (online_attn_c1)";
  for (Value value : {getKey(), getValue()})
    if (getElementTypeOrSelf(value.getType()).getIntOrFloatBitWidth() >
        getSumType().getWidth())
      return emitOpError() << "expected keys and values that are not wider "
                              "than the sums' "
                           << getSumType() << ", got " << value.getType()
                           << " (online_attn_c2)";
  for (Value init : getInits())
    if (getElementTypeOrSelf(init.getType()) != getSumType())
      return emitOpError() << "expected element type " << getSumType()
                           << ", got " << init.getType() << " (online_attn_c2)";
  StringRef c3 = "online_attn_c3";
  if (failed(verifyHeads(*this, "query", getQuery().getType(), 3, c3)) ||
      failed(verifyHeads(*this, "key", getKey().getType(), 2, c3)) ||
      failed(verifyHeads(*this, "value", getValue().getType(), 2, c3)) ||
      failed(verifyHeads(*this, "first destination", getInits()[0].getType(), 3,
                         c3)) ||
      failed(verifyRank(*this, "second destination", getInits()[1].getType(), 2,
                        c3)) ||
      failed(verifyRank(*this, "third destination", getInits()[2].getType(), 2,
                        c3)))
    return failure();
  if (Value mask = getMask())
    if (failed(verifyRank(*this, "mask", mask.getType(), 3, "online_attn_c5")))
      return failure();
  if (failed(detail::verifySymbols(*this, "online_attn_c4")) ||
      failed(verifyScaleAndWindow(*this, getScaleAttr(), getWindowLeftAttr(),
                                  getWindowRightAttr(), "online_attn_c6")))
    return failure();
  return detail::verifyDestinations(*this, "online_attn_c10");
}

// Runs after the operations in the regions have been verified.
LogicalResult OnlineAttentionOp::verifyRegions() {
  if (failed(verifyScalarRegion(
          *this, getScore(), "score", getScoreArguments(getQuery().getType()),
          getSumType(), "online_attn_c7", "online_attn_c9")) ||
      failed(verifyScalarRegion(*this, getWhere(), "where",
                                getWhereArguments(getContext()),
                                IntegerType::get(getContext(), 1),
                                "online_attn_c8", "online_attn_c9")))
    return failure();
  return success();
}

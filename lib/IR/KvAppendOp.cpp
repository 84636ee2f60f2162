//===- KvAppendOp.cpp - posenc.kv_append ----------------------------------===//
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

// No dimension is a loop over positions.
int64_t KvAppendOp::getNumLoops() { return 0; }

SmallVector<int64_t> KvAppendOp::getDimSymbols(unsigned operandNumber) {
  // Symbols of the sizes of operands. Dimensions with the same symbol are
  // equal.
  enum : int64_t {
    Own = -1,
    Batch,
    Tokens,
    Heads,
    Dim,
    ValueDim,
    CacheBatch,
    CacheTokens
  };
  auto type =
      cast<ShapedType>(getOperation()->getOperand(operandNumber).getType());
  // With lengths, sequence i of the rows is appended to sequence i of the
  // cache.
  int64_t sequences = getLengths() ? Batch : CacheBatch;
  auto is = [&](unsigned group) {
    OperandRange range = getODSOperands(group);
    return !range.empty() && operandNumber == range.getBeginOperandIndex();
  };
  SmallVector<int64_t> tokens;
  if (!hasRaggedRows())
    tokens.push_back(Batch);
  tokens.push_back(Tokens);
  SmallVector<int64_t> symbols;
  if (is(0) || is(1)) {
    symbols = getHeadSymbols(Batch, Tokens, Heads, is(0) ? Dim : ValueDim,
                             getLayout(), hasRaggedRows());
  } else if (is(2)) {
    symbols = tokens;
    if (RotationAttr rotation = getRotationAttr();
        rotation && rotation.getAxes())
      symbols.insert(symbols.begin(), Own);
  } else if (is(3)) {
    symbols = {Dim};
  } else if (is(4)) {
    symbols = {Batch};
  } else if (is(5)) {
    symbols = tokens;
  } else if (is(7) || is(8)) {
    symbols = getScaleSymbols(Own, Heads, Own, /*isPacked=*/false);
    symbols.resize(type.getRank(), Own);
    dropUnitSymbols(type, symbols);
  } else if (operandNumber < getInits().getBeginOperandIndex()) {
    symbols = {Own};
  } else if (operandNumber < getInits().getBeginOperandIndex() + 2) {
    symbols = getHeadSymbols(sequences, CacheTokens, Heads,
                             is(9) ? Dim : ValueDim, getCacheLayout(),
                             /*isPacked=*/false);
  } else {
    symbols =
        getScaleSymbols(sequences, Heads, CacheTokens, /*isPacked=*/false);
  }
  // The verifier reports wrong ranks separately.
  symbols.resize(type.getRank(), Own);
  return symbols;
}

bool KvAppendOp::hasRaggedRows() {
  return getSlots() && cast<ShapedType>(getKey().getType()).getRank() == 3;
}

double KvAppendOp::getNormWeightOffset() {
  return getNormOffset() ? getNormOffset()->convertToDouble() : 0;
}

bool KvAppendOp::isQuantized() {
  return isQuantizedType(getInits().front().getType());
}

unsigned KvAppendOp::getHeadDim() {
  return getHeadDimension(getLayout(), hasRaggedRows());
}

unsigned KvAppendOp::getTokenDim() {
  return getTokenDimension(getLayout(), hasRaggedRows());
}

unsigned KvAppendOp::getCacheHeadDim() {
  return getHeadDimension(getCacheLayout(), /*isPacked=*/false);
}

unsigned KvAppendOp::getCacheTokenDim() {
  return getTokenDimension(getCacheLayout(), /*isPacked=*/false);
}

/// Checks the scales that are given, which all tokens share.
static LogicalResult verifyGivenScales(KvAppendOp op) {
  StringRef c12 = "kv_append_c12";
  if (static_cast<bool>(op.getKeyScales()) !=
      static_cast<bool>(op.getValueScales()))
    return op.emitOpError()
           << "expected both key_scales and value_scales or neither (" << c12
           << ")";
  for (auto [name, scales] : {std::pair("key_scales", op.getKeyScales()),
                              std::pair("value_scales", op.getValueScales())}) {
    if (!scales)
      continue;
    if (!op.isQuantized())
      return op.emitOpError() << "caches of type " << op.getInits()[0].getType()
                              << " have no " << name << " (" << c12 << ")";
    if (failed(verifyRank(op, name, scales.getType(), 3, c12)))
      return failure();
    auto type = cast<ShapedType>(scales.getType());
    if (type.getDimSize(0) != 1 || type.getDimSize(2) != 1)
      return op.emitOpError()
             << "expected " << name
             << " with a size of 1 in the first and last dimension, got "
             << type << " (" << c12 << ")";
  }
  return success();
}

LogicalResult KvAppendOp::verify() {
  // The generic form can have any number of operands in each group.
  for (unsigned group : {0, 1})
    if (getODSOperands(group).size() != 1)
      return emitOpError()
             << "expected one operand each for key and value, got "
             << getODSOperands(group).size();
  size_t numInits = !getInits().empty() && computesScales() ? 4 : 2;
  if (getInits().size() != numInits)
    return emitOpError() << "expected " << (numInits == 4 ? "four" : "two")
                         << " destinations, got " << getInits().size()
                         << " (kv_append_c1)";
  Type element = getElementTypeOrSelf(getKey().getType());
  for (Value value : {getValue(), getNorm()})
    if (value && getElementTypeOrSelf(value.getType()) != element)
      return emitOpError() << "expected element type " << element << ", got "
                           << value.getType() << " (kv_append_c2)";
  if (failed(verifyCacheTypes(
          *this, getInits()[0].getType(), getInits()[1].getType(),
          getSumTypeFor(getKey().getType()), "kv_append_c2")))
    return failure();
  if (failed(verifyGivenScales(*this)))
    return failure();
  for (Value scales : getInits().drop_front(2)) {
    if (!getElementTypeOrSelf(scales.getType()).isF32())
      return emitOpError() << "expected scales of f32, got " << scales.getType()
                           << " (kv_append_c10)";
    if (failed(
            verifyRank(*this, "scales", scales.getType(), 3, "kv_append_c10")))
      return failure();
  }

  int64_t rank = hasRaggedRows() ? 3 : 4;
  StringRef c3 = "kv_append_c3";
  if (failed(verifyHeads(*this, "key", getKey().getType(), rank, c3)) ||
      failed(verifyHeads(*this, "value", getValue().getType(), rank, c3)) ||
      failed(verifyHeads(*this, "key cache", getInits()[0].getType(), 4, c3)) ||
      failed(verifyHeads(*this, "value cache", getInits()[1].getType(), 4, c3)))
    return failure();

  if (static_cast<bool>(getLengths()) == static_cast<bool>(getSlots()))
    return emitOpError() << "expected either lengths or slots (kv_append_c5)";
  if (Value lengths = getLengths())
    if (failed(
            verifyRank(*this, "lengths", lengths.getType(), 1, "kv_append_c5")))
      return failure();
  if (Value slots = getSlots())
    if (failed(verifyRank(*this, "slots", slots.getType(), rank - 2,
                          "kv_append_c5")))
      return failure();

  if (failed(verifyHeadRotation(*this, "keys", getKey().getType(),
                                getRotationAttr(), getPositions(), rank - 2,
                                "kv_append_c6", "kv_append_c7")))
    return failure();
  if (failed(verifyHeadTurns(*this, getTurns(), getRotationAttr(),
                             getPositions(), "kv_append_c11")))
    return failure();
  if (getRotationAttr() && getSlots() && !getPositions())
    return emitOpError()
           << "expected positions of the keys in slots (kv_append_c7)";
  if (failed(verifyNorm(*this, "norm", getNorm(), "kv_append_c8")) ||
      failed(verifyNormEps(*this, static_cast<bool>(getNorm()),
                           getNormEpsAttr(), "kv_append_c8")) ||
      failed(verifyNormOffset(*this, static_cast<bool>(getNorm()),
                              getNormOffsetAttr(), "kv_append_c8")) ||
      failed(detail::verifySymbols(*this, "kv_append_c4")))
    return failure();
  return detail::verifyDestinations(*this, "kv_append_c9");
}

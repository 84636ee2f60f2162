//===- AttentionOp.cpp - posenc.attention ---------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionSizes.h"
#include "AttentionVerify.h"

#include "mlir/IR/TypeUtilities.h"

#include <cmath>

using namespace mlir;
using namespace mlir::posenc;
using namespace mlir::posenc::attention;

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

/// Returns the symbols of a tensor of token positions.
static SmallVector<int64_t>
getPositionSymbols(Size tokens, RotationAttr rotation, bool isPacked) {
  SmallVector<int64_t> symbols;
  if (rotation && rotation.getAxes())
    symbols.push_back(Own);
  if (!isPacked)
    symbols.push_back(Batch);
  symbols.push_back(tokens);
  return symbols;
}

// AttentionTiling.cpp implements the tiling of attention, so no dimension is a
// loop over positions.
int64_t AttentionOp::getNumLoops() { return 0; }

SmallVector<int64_t> AttentionOp::getDimSymbols(unsigned operandNumber) {
  OpOperand &operand = getOperation()->getOpOperand(operandNumber);
  auto type = dyn_cast<ShapedType>(operand.get().getType());
  if (!type)
    return {};
  bool isPaged = static_cast<bool>(getBlockTable());
  // Operands are identified by their index, as one value may be several
  // operands.
  auto is = [&](OperandRange group) {
    return !group.empty() && operandNumber >= group.getBeginOperandIndex() &&
           operandNumber < group.getBeginOperandIndex() + group.size();
  };
  SmallVector<int64_t> symbols(type.getRank(), Own);
  SmallVector<int64_t> output =
      getHeadSymbols(Batch, Queries, QueryHeads, ValueDim, getQueryLayout(),
                     hasRaggedQueries());
  auto getKeySymbols = [&](Size dim) {
    return getHeadSymbols(isPaged ? Pages : Batch, isPaged ? PageSlots : Keys,
                          KeyHeads, dim, getKeyLayout(), hasRaggedKeys());
  };
  if (is(getODSOperands(0)))
    symbols = getHeadSymbols(Batch, Queries, QueryHeads, Dim, getQueryLayout(),
                             hasRaggedQueries());
  else if (is(getODSOperands(1)))
    symbols = getKeySymbols(Dim);
  else if (is(getODSOperands(2)))
    symbols = getKeySymbols(ValueDim);
  else if (is(getODSOperands(3)))
    symbols = ::getPositionSymbols(Queries, getQueryRotationAttr(),
                                   hasRaggedQueries());
  else if (is(getODSOperands(4)))
    symbols = ::getPositionSymbols(isPaged ? Own : Keys, getKeyRotationAttr(),
                                   hasRaggedKeys());
  else if (is(getODSOperands(5)))
    symbols = {normsAllQueryHeads() ? Own : Dim};
  else if (is(getODSOperands(6)))
    symbols = {normsAllKeyHeads() ? Own : Dim};
  else if (is(getODSOperands(7)))
    symbols = {Batch};
  else if (is(getODSOperands(8)))
    symbols = {Boundaries};
  else if (is(getODSOperands(9)))
    symbols = {Batch, Own};
  else if (is(getODSOperands(10)))
    symbols = {Batch, QueryHeads, Queries, isPaged ? Own : Keys};
  else if (is(getODSOperands(11)))
    symbols = {QueryHeads};
  else if (is(getODSOperands(12)) || is(getODSOperands(13)))
    symbols = getScaleSymbols(isPaged ? Pages : Batch, KeyHeads,
                              isPaged ? PageSlots : Keys, hasRaggedKeys());
  else if (is(getTurns()))
    symbols = {Own};
  else if (operandNumber == getInits().getBeginOperandIndex())
    symbols = output;
  else
    symbols = SmallVector<int64_t>(ArrayRef(output).drop_back());
  // The verifier reports wrong ranks separately.
  symbols.resize(type.getRank(), Own);
  if (is(getODSOperands(10)) || is(getODSOperands(12)) ||
      is(getODSOperands(13)))
    dropUnitSymbols(type, symbols);
  return symbols;
}

FloatType AttentionOp::getSumType() {
  return getSumTypeFor(getQuery().getType());
}

double AttentionOp::getScoreScale() {
  if (std::optional<APFloat> scale = getScale())
    return scale->convertToDouble();
  auto type = cast<ShapedType>(getQuery().getType());
  return 1.0 / std::sqrt(static_cast<double>(type.getShape().back()));
}

double AttentionOp::getNormWeightOffset() {
  return getNormOffset() ? getNormOffset()->convertToDouble() : 0;
}

/// Whether the norm has a weight for each channel of all heads of a token. With
/// one head, this is the same as a norm per head.
static bool normsAllHeads(Value norm, Value heads, unsigned headDim) {
  if (!norm)
    return false;
  auto weights = cast<ShapedType>(norm.getType());
  auto rows = cast<ShapedType>(heads.getType());
  // The verifier calls this before it has checked the ranks.
  if (weights.getRank() != 1 || weights.isDynamicDim(0) ||
      headDim + 1 >= rows.getRank() || rows.isDynamicDim(headDim))
    return false;
  int64_t numHeads = rows.getDimSize(headDim);
  int64_t size = weights.getDimSize(0);
  return numHeads > 1 && size % numHeads == 0 &&
         size / numHeads == rows.getShape().back();
}

bool AttentionOp::normsAllQueryHeads() {
  return normsAllHeads(getQueryNorm(), getQuery(), getQueryHeadDim());
}

bool AttentionOp::normsAllKeyHeads() {
  return normsAllHeads(getKeyNorm(), getKey(), getKeyHeadDim());
}

unsigned AttentionOp::getQueryHeadDim() {
  return getHeadDimension(getQueryLayout(), hasRaggedQueries());
}

unsigned AttentionOp::getQueryTokenDim() {
  return getTokenDimension(getQueryLayout(), hasRaggedQueries());
}

unsigned AttentionOp::getKeyHeadDim() {
  return getHeadDimension(getKeyLayout(), hasRaggedKeys());
}

unsigned AttentionOp::getKeyTokenDim() {
  return getTokenDimension(getKeyLayout(), hasRaggedKeys());
}

void AttentionOp::getAsmBlockArgumentNames(Region &region,
                                           OpAsmSetValueNameFn setName) {
  nameScalarArguments(region, setName);
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

/// Verifies the number, types and ranks of operands.
static LogicalResult verifyOperands(AttentionOp op) {
  // The generic form can have any number of operands in each group.
  for (unsigned group : {0, 1, 2})
    if (op.getODSOperands(group).size() != 1)
      return op.emitOpError() << "expected one operand each for query, key and "
                                 "value, got "
                              << op.getODSOperands(group).size();
  if (op.getInits().empty() || op.getInits().size() > 2)
    return op.emitOpError() << "expected one or two destinations, got "
                            << op.getInits().size() << " (attn_c1)";
  if (op.getCuSeqlens().size() > 2)
    return op.emitOpError() << "expected at most two lists in cu_seqlens, got "
                            << op.getCuSeqlens().size() << " (attn_c8)";
  Type element = getElementTypeOrSelf(op.getQuery().getType());
  for (Value value : {op.getQueryNorm(), op.getKeyNorm(), op.getInits()[0]})
    if (value && getElementTypeOrSelf(value.getType()) != element)
      return op.emitOpError() << "expected element type " << element << ", got "
                              << value.getType() << " (attn_c2)";
  for (Value value : {op.getSinks(), op.getLogSumInit()})
    if (value && getElementTypeOrSelf(value.getType()) != op.getSumType())
      return op.emitOpError() << "expected element type " << op.getSumType()
                              << ", got " << value.getType() << " (attn_c2)";
  if (failed(verifyCacheTypes(op, op.getKey().getType(),
                              op.getValue().getType(), op.getSumType(),
                              "attn_c19")))
    return failure();

  int64_t queryRank = op.hasRaggedQueries() ? 3 : 4;
  int64_t keyRank = op.hasRaggedKeys() ? 3 : 4;
  StringRef c3 = "attn_c3";
  if (failed(
          verifyHeads(op, "query", op.getQuery().getType(), queryRank, c3)) ||
      failed(verifyHeads(op, "key", op.getKey().getType(), keyRank, c3)) ||
      failed(verifyHeads(op, "value", op.getValue().getType(), keyRank, c3)) ||
      failed(
          verifyHeads(op, "output", op.getInits()[0].getType(), queryRank, c3)))
    return failure();
  bool isQuantized = isQuantizedType(op.getKey().getType());
  for (auto [name, scales] : {std::pair("key_scales", op.getKeyScales()),
                              std::pair("value_scales", op.getValueScales())}) {
    if (isQuantized != static_cast<bool>(scales))
      return op.emitOpError()
             << "keys of " << getElementTypeOrSelf(op.getKey().getType())
             << (isQuantized ? " need " : " have no ") << name << " (attn_c20)";
    if (scales &&
        failed(verifyRank(op, name, scales.getType(), keyRank - 1, "attn_c20")))
      return failure();
  }
  if (Value logSums = op.getLogSumInit())
    return verifyRank(op, "second destination", logSums.getType(),
                      queryRank - 1, c3);
  return success();
}

/// Verifies the optional operands.
static LogicalResult verifyGroups(AttentionOp op) {
  for (Value list : op.getCuSeqlens())
    if (failed(verifyRank(op, "cu_seqlens", list.getType(), 1, "attn_c8")))
      return failure();
  if (Value lengths = op.getLengths())
    if (failed(verifyRank(op, "lengths", lengths.getType(), 1, "attn_c9")))
      return failure();
  if (op.getBlockTable() && op.hasRaggedKeys())
    return op.emitOpError()
           << "expected keys that are not both packed and paged (attn_c10)";
  bool needsLengths = op.getBlockTable() || op.getCuSeqlens().size() == 1;
  if (needsLengths && !op.getLengths())
    return op.emitOpError() << "expected lengths of the keys (attn_c9)";
  if (op.hasRaggedKeys() && op.getLengths())
    return op.emitOpError()
           << "expected no lengths for packed keys, which have them in "
              "cu_seqlens (attn_c9)";
  if (Value table = op.getBlockTable())
    if (failed(verifyRank(op, "block_table", table.getType(), 2, "attn_c10")))
      return failure();
  if (Value mask = op.getMask()) {
    if (failed(verifyRank(op, "mask", mask.getType(), 4, "attn_c11")))
      return failure();
    if (op.hasRaggedQueries())
      return op.emitOpError()
             << "expected no mask for packed queries (attn_c11)";
  }
  if (op.getTrailingQueries() && op.hasRaggedQueries())
    return op.emitOpError()
           << "expected no trailing_queries for packed queries (attn_c21)";
  if (Value sinks = op.getSinks())
    if (failed(verifyRank(op, "sinks", sinks.getType(), 1, "attn_c12")))
      return failure();
  if (failed(verifyNorm(op, "query_norm", op.getQueryNorm(), "attn_c13")) ||
      failed(verifyNorm(op, "key_norm", op.getKeyNorm(), "attn_c13")))
    return failure();
  bool hasNorm = op.getQueryNorm() || op.getKeyNorm();
  if (failed(verifyNormEps(op, hasNorm, op.getNormEpsAttr(), "attn_c13")))
    return failure();
  return verifyNormOffset(op, hasNorm, op.getNormOffsetAttr(), "attn_c13");
}

/// Verifies sizes: equal ones, and those that are related in another way.
static LogicalResult verifySizes(AttentionOp op) {
  if (failed(mlir::posenc::detail::verifySymbols(op, "attn_c4")))
    return failure();
  int64_t queryHeads = cast<ShapedType>(op.getQuery().getType())
                           .getDimSize(op.getQueryHeadDim());
  int64_t keyHeads =
      cast<ShapedType>(op.getKey().getType()).getDimSize(op.getKeyHeadDim());
  bool areStatic =
      !ShapedType::isDynamic(queryHeads) && !ShapedType::isDynamic(keyHeads);
  if (queryHeads == 0 || keyHeads == 0 ||
      (areStatic && queryHeads % keyHeads != 0))
    return op.emitOpError() << "expected the query heads to be a positive "
                               "multiple of the key heads, got "
                            << op.getQuery().getType() << " and "
                            << op.getKey().getType() << " (attn_c5)";
  for (Value list : op.getCuSeqlens()) {
    int64_t sequences = cast<ShapedType>(list.getType()).getDimSize(0);
    int64_t batch = ShapedType::kDynamic;
    if (Value lengths = op.getLengths())
      batch = cast<ShapedType>(lengths.getType()).getDimSize(0);
    if (sequences == 0 ||
        (!ShapedType::isDynamic(sequences) && !ShapedType::isDynamic(batch) &&
         sequences != batch + 1))
      return op.emitOpError()
             << "expected cu_seqlens with one element more than "
                "there are sequences, got "
             << list.getType() << " (attn_c8)";
  }
  return success();
}

LogicalResult AttentionOp::verify() {
  if (failed(verifyOperands(*this)) || failed(verifyGroups(*this)) ||
      failed(verifyHeadRotation(*this, "queries", getQuery().getType(),
                                getQueryRotationAttr(), getQueryPositions(),
                                hasRaggedQueries() ? 1 : 2, "attn_c6",
                                "attn_c7")) ||
      failed(verifyHeadRotation(
          *this, "keys", getKey().getType(), getKeyRotationAttr(),
          getKeyPositions(), hasRaggedKeys() ? 1 : 2, "attn_c6", "attn_c7")) ||
      failed(verifyHeadTurns(
          *this, getTurns(), {getQueryRotationAttr(), getKeyRotationAttr()},
          {getQueryPositions(), getKeyPositions()}, "attn_c22")) ||
      failed(verifySizes(*this)))
    return failure();
  if (failed(verifyScaleAndWindow(*this, getScaleAttr(), getWindowLeftAttr(),
                                  getWindowRightAttr(), "attn_c14")))
    return failure();
  return detail::verifyDestinations(*this, "attn_c18");
}

// Runs after the operations in the regions have been verified.
LogicalResult AttentionOp::verifyRegions() {
  if (failed(verifyScalarRegion(*this, getScore(), "score",
                                getScoreArguments(getQuery().getType()),
                                getSumType(), "attn_c15", "attn_c17")) ||
      failed(verifyScalarRegion(
          *this, getWhere(), "where", getWhereArguments(getContext()),
          IntegerType::get(getContext(), 1), "attn_c16", "attn_c17")))
    return failure();
  return success();
}

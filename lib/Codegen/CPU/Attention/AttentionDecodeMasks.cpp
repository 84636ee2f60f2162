//===- AttentionDecodeMasks.cpp - masks of the decode kernel --------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The queries of a decode task see the same keys except for a few at either
// end, so only the tiles there are masked.
//
//===----------------------------------------------------------------------===//

#include "AttentionDecode.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::posenc;

bool Decode::hasMasks() const {
  return code.tiles.getTokens() > 1 && PositionMask(op);
}

Value Decode::isVisibleToAll(Value firstKey, Value count) {
  PositionMask mask(op);
  Value last = addIndex(b, task.firstPosition, addIndex(b, numTokens, -1));
  Value isBegun = arith::CmpIOp::create(b, arith::CmpIPredicate::sge, firstKey,
                                        mask.emitFirstKey(b, last));
  Value isDone = arith::CmpIOp::create(
      b, arith::CmpIPredicate::sle, addIndex(b, firstKey, count),
      mask.emitEndKey(b, task.firstPosition, task.numKeys));
  return arith::AndIOp::create(b, isBegun, isDone);
}

Value Decode::getTokenOfLanes(Value block) {
  VectorType integers = type.clone(b.getI32Type());
  auto heads = static_cast<int32_t>(code.tiles.getHeadsPerKeyHead());
  auto toI32 = [&](Value index) {
    return posenc::broadcast(
        b, integers, arith::IndexCastOp::create(b, b.getI32Type(), index));
  };
  // Either a block has queries of one token only, or each token fills whole
  // blocks.
  if (heads % queries == 0)
    return toI32(getToken(getNumber(block)));
  bool isKnown = queries % heads == 0;
  SmallVector<int32_t> numbers;
  for (int64_t lane = 0; lane < lanes; ++lane)
    numbers.push_back(lane % queries / (isKnown ? heads : 1));
  Value number = arith::ConstantOp::create(
      b, DenseElementsAttr::get(integers, ArrayRef(numbers)));
  Value first = getNumber(block);
  number = arith::AddIOp::create(b, number,
                                 toI32(isKnown ? getToken(first) : first));
  if (isKnown)
    return number;
  return arith::DivUIOp::create(
      b, number,
      arith::ConstantOp::create(b, DenseElementsAttr::get(integers, heads)));
}

Value Decode::getVisible(Value firstKey, Value row, Value count, Value block) {
  VectorType integers = type.clone(b.getI32Type());
  SmallVector<int32_t> numbers;
  for (int64_t lane = 0; lane < lanes; ++lane)
    numbers.push_back(lane / queries);
  Value keyOfLane = arith::ConstantOp::create(
      b, DenseElementsAttr::get(integers, ArrayRef(numbers)));
  ElementwiseBuilder elements(b, b.getLoc(), keyOfLane);
  VisibleKeys visible{{}, createRowLimit(b, code, subIndex(b, count, row))};
  if (hasMasks()) {
    Value token = getTokenOfLanes(block);
    Value position =
        subIndex(b, task.firstPosition, addIndex(b, firstKey, row));
    visible = PositionMask(op).emitVisibleKeys(
        elements,
        [&](int64_t offset) {
          Value first = createRowLimit(b, code, addIndex(b, position, offset));
          return elements.addi(first, token);
        },
        visible.end);
  }
  return emitIsVisible(elements, keyOfLane, visible);
}

Value Decode::emitPairs(Value scores, Value keep, bool appliesWhere,
                        Value firstKey, Value row, Value count, Value block) {
  // Lanes after the last query use the last token, and rows after the last key
  // the last key, so masks and tables are read in bounds.
  SmallVector<Value> heads, tokens, positions, allKeys;
  Value lastToken = addIndex(b, numTokens, -1), last = addIndex(b, count, -1);
  for (int64_t lane = 0; lane < lanes; ++lane) {
    Value number = addIndex(b, getNumber(block), lane % queries);
    Value token = minIndex(b, getToken(number), lastToken);
    heads.push_back(
        addIndex(b, task.queryHead, getHead(getKeyHead(block), number)));
    tokens.push_back(addIndex(b, task.firstToken, token));
    positions.push_back(addIndex(b, task.firstPosition, token));
    Value key = addIndex(b, row, lane / queries);
    allKeys.push_back(addIndex(b, firstKey, minIndex(b, key, last)));
  }
  Value mask;
  if (op.getMask())
    mask = loadMask(b, code, {{task.batch}, heads, tokens, allKeys});
  auto toVector = [&](ArrayRef<Value> elements) -> Value {
    return vector::FromElementsOp::create(
        b, VectorType::get({lanes}, b.getIndexType()), elements);
  };
  return emitScore(
      b, code,
      {task.batch, toVector(heads), toVector(positions), toVector(allKeys)},
      scores, mask, keep, appliesWhere);
}

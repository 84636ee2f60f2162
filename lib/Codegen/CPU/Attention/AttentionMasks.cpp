//===- AttentionMasks.cpp - masks of the prefill kernel -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionCode.h"

#include "posenc/Numerics/BF16Weights.h"
#include "posenc/Numerics/Softmax.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

#include <limits>

using namespace mlir;
using namespace mlir::posenc;

//===----------------------------------------------------------------------===//
// Positions
//===----------------------------------------------------------------------===//

Value mlir::posenc::createRowLimit(ImplicitLocOpBuilder &builder,
                                   const AttentionCode &code, Value row) {
  constexpr int64_t max = 1 << 20;
  Value held =
      minIndex(builder, maxIndex(builder, row, createIndex(builder, -max)),
               createIndex(builder, max));
  Type i32 = builder.getI32Type();
  return broadcast(builder, code.getVectorType().clone(i32),
                   arith::IndexCastOp::create(builder, i32, held));
}

/// Returns a vector with `first` plus the lane index in each lane.
static Value createLaneNumbers(ImplicitLocOpBuilder &builder,
                               const AttentionCode &code, Value first) {
  Value all = createRowLimit(builder, code, first);
  auto numbers = llvm::to_vector(llvm::seq<int32_t>(code.tiles.lanes));
  return arith::AddIOp::create(
      builder, all,
      arith::ConstantOp::create(
          builder, DenseElementsAttr::get(cast<ShapedType>(all.getType()),
                                          ArrayRef(numbers))));
}

/// Broadcasts a row of the tile to all lanes as i32.
static Value broadcastRow(ImplicitLocOpBuilder &builder,
                          const AttentionCode &code, Value row) {
  Type i32 = builder.getI32Type();
  return broadcast(builder, code.getVectorType().clone(i32),
                   arith::IndexCastOp::create(builder, i32, row));
}

/// Returns the rows of the tile that each lane of a vector sees by positions.
static VisibleKeys emitVisibleRows(ImplicitLocOpBuilder &builder,
                                   const AttentionCode &code,
                                   const AttentionBlock &block,
                                   int64_t vector) {
  Value position = addIndex(builder, block.position, vector * code.tiles.lanes);
  Value row = subIndex(builder, position, block.firstKey);
  Value end = broadcastRow(builder, code, block.endRow);
  ElementwiseBuilder b(builder, builder.getLoc(), end);
  return PositionMask(code.op).emitVisibleKeys(
      b,
      [&](int64_t offset) {
        return createLaneNumbers(builder, code, addIndex(builder, row, offset));
      },
      end);
}

//===----------------------------------------------------------------------===//
// Mask operand and regions
//===----------------------------------------------------------------------===//

static Value both(ImplicitLocOpBuilder &builder, Value a, Value b) {
  return a ? Value(arith::AndIOp::create(builder, a, b)) : b;
}

Value mlir::posenc::loadMask(ImplicitLocOpBuilder &builder,
                             const AttentionCode &code,
                             ArrayRef<SmallVector<Value>> indices) {
  AttentionOp op = code.op;
  Value mask = op.getMask();
  auto type = cast<MemRefType>(mask.getType());
  SmallVector<SmallVector<Value>> held(indices);
  for (auto [laneIndices, size] : llvm::zip_equal(held, type.getShape()))
    if (size == 1)
      laneIndices = {createIndex(builder, 0)};
  bool areSame = llvm::all_of(held, [](ArrayRef<Value> laneIndices) {
    return laneIndices.size() == 1;
  });
  SmallVector<Value> elements;
  for (int64_t lane = 0, e = areSame ? 1 : code.tiles.lanes; lane < e; ++lane) {
    SmallVector<Value> at;
    for (ArrayRef<Value> laneIndices : held)
      at.push_back(laneIndices[laneIndices.size() == 1 ? 0 : lane]);
    elements.push_back(memref::LoadOp::create(builder, mask, at));
  }
  auto vectorType = VectorType::get({code.tiles.lanes}, type.getElementType());
  if (areSame)
    return broadcast(builder, vectorType, elements.front());
  return vector::FromElementsOp::create(builder, vectorType, elements);
}

static Value toF32(ImplicitLocOpBuilder &builder, Value value) {
  auto type = cast<VectorType>(value.getType());
  Type f32 = builder.getF32Type();
  if (type.getElementType() == f32)
    return value;
  if (type.getElementType().isF64())
    return arith::TruncFOp::create(builder, type.clone(f32), value);
  return arith::ExtFOp::create(builder, type.clone(f32), value);
}

Value mlir::posenc::emitScore(ImplicitLocOpBuilder &builder,
                              const AttentionCode &code, ValueRange pair,
                              Value score, Value mask, Value keep,
                              bool appliesWhere, ValueRange relativeValues) {
  AttentionOp op = code.op;
  VectorType type = code.getVectorType();
  Value minusInfinity =
      createSplat(builder, type, -std::numeric_limits<double>::infinity());
  if (!op.getScore().empty()) {
    SmallVector<Value> arguments{score};
    llvm::append_range(arguments, pair);
    score = emitRegion(builder, code, op.getScore(), arguments, relativeValues);
  }
  if (mask && getElementTypeOrSelf(mask.getType()).isInteger(1)) {
    keep = both(builder, keep, mask);
  } else if (mask) {
    mask = toF32(builder, mask);
    score = arith::AddFOp::create(builder, score, mask);
    // A bias of minus infinity masks the key, even if its score is NaN.
    keep = both(builder, keep,
                arith::CmpFOp::create(builder, arith::CmpFPredicate::UNE, mask,
                                      minusInfinity));
  }
  if (code.hasOwnScores()) {
    // Scores stay finite: the lowest f32 must not become minus infinity.
    Base2Softmax b(builder, builder.getLoc(), type);
    Value isNumber = b.compare(arith::CmpFPredicate::UGT, score, minusInfinity);
    Value scaled = b.mul(score, b.f32(llvm::numbers::log2e));
    double lowest = code.tiles.hasAMXSteps() ? getLowestScore() : b.start;
    score = b.select(isNumber, b.max(b.f32(lowest), scaled), minusInfinity);
  }
  if (appliesWhere && !op.getWhere().empty())
    keep = both(builder, keep, emitRegion(builder, code, op.getWhere(), pair));
  return keep ? arith::SelectOp::create(builder, keep, score, minusInfinity)
              : score;
}

PairTile mlir::posenc::getPairTile(ImplicitLocOpBuilder &builder,
                                   const AttentionCode &code,
                                   const AttentionTask &task, Value numTokens,
                                   Value firstKey, Value count) {
  auto getLast = [&](Value first, Value number) {
    return addIndex(builder, first, addIndex(builder, number, -1));
  };
  return {task.batch,
          task.queryHead,
          addIndex(builder, task.queryHead, code.tiles.heads - 1),
          task.firstPosition,
          getLast(task.firstPosition, numTokens),
          firstKey,
          getLast(firstKey, count)};
}

void mlir::posenc::emitMasks(ImplicitLocOpBuilder &builder,
                             const AttentionCode &code,
                             const AttentionBlock &block, Value row,
                             bool isPartial, bool appliesWhere,
                             MutableArrayRef<Value> scores) {
  AttentionOp op = code.op;
  bool hasRegion =
      !op.getScore().empty() || (appliesWhere && !op.getWhere().empty());
  if (!isPartial && !hasRegion && !op.getMask())
    return;
  int64_t lanes = code.tiles.lanes, vectors = code.tiles.vectors;
  Value last = addIndex(builder, block.endRow, -1);
  for (int64_t j = 0; j < vectors; ++j) {
    // Lanes after the last query use the last query, and rows after the last
    // key the last key, so all loads are in bounds.
    SmallVector<Value> tokens, positions;
    for (int64_t i = 0; i < lanes; ++i) {
      int64_t lane = j * lanes + i;
      tokens.push_back(minIndex(builder, addIndex(builder, block.token, lane),
                                block.lastToken));
      positions.push_back(minIndex(builder,
                                   addIndex(builder, block.position, lane),
                                   block.lastPosition));
    }
    Value position;
    if (hasRegion)
      position = vector::FromElementsOp::create(
          builder, VectorType::get({lanes}, builder.getIndexType()), positions);
    VisibleKeys visible;
    if (isPartial)
      visible = emitVisibleRows(builder, code, block, j);
    for (int64_t i = 0, e = scores.size() / vectors; i < e; ++i) {
      Value &score = scores[i * vectors + j];
      Value keyRow = addIndex(builder, row, i);
      Value key =
          addIndex(builder, block.firstKey, minIndex(builder, keyRow, last));
      Value keep, mask;
      if (isPartial) {
        Value rows = broadcastRow(builder, code, keyRow);
        ElementwiseBuilder b(builder, builder.getLoc(), rows);
        keep = emitIsVisible(b, rows, visible);
      }
      if (op.getMask())
        mask = loadMask(builder, code,
                        {{block.batch}, {block.queryHead}, tokens, {key}});
      score = emitScore(builder, code,
                        {block.batch, block.queryHead, position, key}, score,
                        mask, keep, appliesWhere,
                        loadRelativeValues(builder, code, keyRow, j));
    }
  }
}

//===- AttentionRegion.cpp - score_mod and mask_mod regions ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionCode.h"

#include "posenc/Numerics/Alibi.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

#include <cmath>

using namespace mlir;
using namespace mlir::posenc;

/// Emits `-(slope * |query - key|)` for each query. The difference of two
/// token positions fits in i32; other indices are subtracted in i64.
static Value emitAlibi(ImplicitLocOpBuilder &builder, int64_t lanes, AlibiOp op,
                       const IRMapping &mapping) {
  Value all = emitAlibiSlopes(builder, op, op);
  Type type = op.getType();
  auto getSlope = [&](Value head) -> Value {
    Value slope = memref::LoadOp::create(builder, all, head);
    return type.isF64() ? slope : arith::TruncFOp::create(builder, type, slope);
  };
  auto vectorType = VectorType::get({lanes}, type);
  Value head = mapping.lookupOrDefault(op.getHead()), slope;
  if (isa<VectorType>(head.getType())) {
    SmallVector<Value> laneSlopes;
    for (int64_t lane = 0; lane < lanes; ++lane)
      laneSlopes.push_back(
          getSlope(vector::ExtractOp::create(builder, head, lane)));
    slope = vector::FromElementsOp::create(builder, vectorType, laneSlopes);
  } else {
    slope = broadcast(builder, vectorType, getSlope(head));
  }
  auto positions = op->getBlock()->getArguments();
  bool arePositions = llvm::is_contained(positions, op.getQuery()) &&
                      llvm::is_contained(positions, op.getKey());
  Type integer = arePositions ? builder.getI32Type() : builder.getI64Type();
  auto toInteger = [&](Value index) -> Value {
    auto vector = dyn_cast<VectorType>(index.getType());
    Type narrow = vector ? Type(vector.clone(integer)) : integer;
    index = arith::IndexCastOp::create(builder, narrow, index);
    return vector
               ? index
               : broadcast(builder, VectorType::get({lanes}, integer), index);
  };
  Value query = toInteger(mapping.lookupOrDefault(op.getQuery()));
  Value key = toInteger(mapping.lookupOrDefault(op.getKey()));
  ElementwiseBuilder b(builder, builder.getLoc(), query);
  return emitAlibi(b, slope, emitAlibiDistance(b, type, b.subi(query, key)));
}

/// Emits one scalar load per lane.
static Value emitLoads(ImplicitLocOpBuilder &builder, int64_t lanes,
                       memref::LoadOp op, const IRMapping &mapping) {
  Value memref = mapping.lookupOrDefault(op.getMemRef());
  SmallVector<Value> elements;
  for (int64_t lane = 0; lane < lanes; ++lane) {
    SmallVector<Value> at;
    for (Value operand : op.getIndices()) {
      Value index = mapping.lookupOrDefault(operand);
      if (isa<VectorType>(index.getType()))
        index = vector::ExtractOp::create(builder, index, lane);
      at.push_back(index);
    }
    elements.push_back(memref::LoadOp::create(builder, memref, at));
  }
  return vector::FromElementsOp::create(
      builder, VectorType::get({lanes}, op.getType()), elements);
}

/// Replaces the quotient of an f32 vector and a constant by a product, or
/// returns null. A product serves if the divisor is a power of two, or if the
/// quotient is the argument of a tanh, as in soft caps; not where the quotient
/// is rounded or compared.
static Value emitQuotient(ImplicitLocOpBuilder &builder, arith::DivFOp op,
                          Value dividend) {
  APFloat divisor(0.0f);
  if (!op.getType().isF32() || !isa<VectorType>(dividend.getType()) ||
      !matchPattern(op.getRhs(), m_ConstantFloat(&divisor)))
    return nullptr;
  float reciprocal = 1.0f / divisor.convertToFloat();
  bool isForTanh = llvm::all_of(
      op->getUsers(), [](Operation *user) { return isa<math::TanhOp>(user); });
  if (!std::isnormal(reciprocal) ||
      (!isForTanh && !divisor.getExactInverse(nullptr)))
    return nullptr;
  ElementwiseBuilder b(builder, builder.getLoc(), dividend);
  return b.mul(dividend, b.f32(reciprocal));
}

static Value toVector(ImplicitLocOpBuilder &builder, int64_t lanes,
                      Value value) {
  if (isa<VectorType>(value.getType()))
    return value;
  return broadcast(builder, VectorType::get({lanes}, value.getType()), value);
}

/// Emits an operation of a region, on vectors if an operand is a vector.
static void emitOperation(ImplicitLocOpBuilder &builder, int64_t lanes,
                          Operation &op, IRMapping &mapping) {
  if (auto alibi = dyn_cast<AlibiOp>(op))
    return mapping.map(alibi.getResult(),
                       emitAlibi(builder, lanes, alibi, mapping));
  bool isVector = llvm::any_of(op.getOperands(), [&](Value operand) {
    return isa<VectorType>(mapping.lookupOrDefault(operand).getType());
  });
  if (!isVector) {
    builder.clone(op, mapping);
    return;
  }
  if (auto load = dyn_cast<memref::LoadOp>(op))
    return mapping.map(load.getResult(),
                       emitLoads(builder, lanes, load, mapping));
  if (auto division = dyn_cast<arith::DivFOp>(op))
    if (Value quotient = emitQuotient(
            builder, division, mapping.lookupOrDefault(division.getLhs())))
      return mapping.map(division.getResult(), quotient);
  IRMapping vectors;
  for (Value operand : op.getOperands())
    vectors.map(operand,
                toVector(builder, lanes, mapping.lookupOrDefault(operand)));
  Operation *clone = builder.clone(op, vectors);
  for (auto [result, wide] :
       llvm::zip_equal(op.getResults(), clone->getResults())) {
    wide.setType(VectorType::get({lanes}, result.getType()));
    mapping.map(result, wide);
  }
}

/// Returns the operations of a region that `values` depend on, in order,
/// without those that only `ends` depend on.
static SmallVector<Operation *>
getNeeded(Region &region, ArrayRef<Value> values,
          function_ref<bool(Operation *)> isEnd) {
  llvm::SmallDenseSet<Value> live(values.begin(), values.end());
  SmallVector<Operation *> needed;
  for (Operation &op : llvm::reverse(region.front().without_terminator())) {
    if (llvm::none_of(op.getResults(),
                      [&](Value result) { return live.contains(result); }))
      continue;
    needed.push_back(&op);
    if (!isEnd(&op))
      live.insert(op.operand_begin(), op.operand_end());
  }
  std::reverse(needed.begin(), needed.end());
  return needed;
}

Value mlir::posenc::emitRegion(ImplicitLocOpBuilder &builder,
                               const AttentionCode &code, Region &region,
                               ValueRange arguments,
                               ValueRange relativeValues) {
  IRMapping mapping;
  mapping.map(region.getArguments(), arguments);
  if (!relativeValues.empty())
    mapping.map(getRelativeValues(code.op), relativeValues);
  Value result = cast<YieldOp>(region.front().getTerminator()).getValue();
  auto isKnown = [&](Operation *op) {
    return llvm::all_of(op->getResults(),
                        [&](Value value) { return mapping.contains(value); });
  };
  for (Operation *op : getNeeded(region, result, isKnown))
    if (!isKnown(op))
      emitOperation(builder, code.tiles.lanes, *op, mapping);
  return toVector(builder, code.tiles.lanes, mapping.lookupOrDefault(result));
}

//===----------------------------------------------------------------------===//
// Relative positions
//===----------------------------------------------------------------------===//

namespace {
/// The inputs that a value of the score_mod region depends on.
struct Dependence {
  /// Whether it depends on query and key by their relative position only, if at
  /// all.
  bool isByRelativePosition = true;
  bool hasRelativePosition = false;
  /// Whether it loads a tensor's element by the relative position.
  bool hasLoad = false;
};
} // namespace

/// Whether an operation is the difference of a query and a key position. Sets
/// `isKeyMinusQuery` to whether the query is subtracted from the key.
static bool isRelativePosition(Operation *op, Region &region,
                               bool *isKeyMinusQuery = nullptr) {
  auto difference = dyn_cast<arith::SubIOp>(op);
  if (!difference)
    return false;
  // A position fits in 32 bits; for other operands the difference needs all
  // bits of their type.
  auto getBits = [](Type type) -> unsigned {
    return type.isIndex() ? 32 : std::min(type.getIntOrFloatBitWidth(), 32u);
  };
  unsigned bits = getBits(difference.getType());
  auto stripCasts = [&](Value value) {
    auto cast = value.getDefiningOp<arith::IndexCastOp>();
    while (cast && getBits(cast.getType()) >= bits) {
      value = cast.getIn();
      cast = value.getDefiningOp<arith::IndexCastOp>();
    }
    return value;
  };
  Value left = stripCasts(difference.getLhs());
  Value right = stripCasts(difference.getRhs());
  Value query = region.getArgument(3), key = region.getArgument(4);
  if (isKeyMinusQuery)
    *isKeyMinusQuery = left == key;
  return (left == key && right == query) || (left == query && right == key);
}

SmallVector<Value> mlir::posenc::getRelativeValues(AttentionOp op) {
  Region &region = op.getScore();
  if (region.empty())
    return {};
  DenseMap<Value, Dependence> dependences;
  for (unsigned argument : {0, 3, 4})
    dependences[region.getArgument(argument)].isByRelativePosition = false;
  for (Operation &inner : region.front()) {
    Dependence all;
    if (isRelativePosition(&inner, region)) {
      all.hasRelativePosition = true;
    } else {
      for (Value operand : inner.getOperands()) {
        Dependence one = dependences.lookup(operand);
        all.isByRelativePosition &= one.isByRelativePosition;
        all.hasRelativePosition |= one.hasRelativePosition;
        all.hasLoad |= one.hasLoad;
      }
      all.hasLoad |= all.hasRelativePosition && isa<memref::LoadOp>(inner);
    }
    // The terminator has no results; its operands are needed.
    for (Value result : inner.getResults())
      dependences[result] = all;
  }
  SmallVector<Value> values;
  for (Operation &inner : region.front())
    for (Value result : inner.getResults()) {
      Dependence dependence = dependences.lookup(result);
      bool isLast = llvm::any_of(result.getUsers(), [&](Operation *user) {
        return user->getNumResults() == 0 ||
               !dependences.lookup(user->getResult(0)).isByRelativePosition;
      });
      if (isLast && dependence.isByRelativePosition && dependence.hasLoad &&
          result.getType().isF32())
        values.push_back(result);
    }
  return values;
}

/// Returns the row of keys at which the index of `relativeValues` is 0.
static int64_t getLastRow(const AttentionCode &code) {
  return cast<MemRefType>(code.scores.getType()).getDimSize(0) - 1;
}

void mlir::posenc::emitRelativeValues(ImplicitLocOpBuilder &builder,
                                      const AttentionCode &code,
                                      const AttentionBlock &block) {
  if (!code.relativeValues)
    return;
  auto getKey = [&](Value row) {
    return addIndex(builder, block.firstKey, row);
  };
  RelativePositions positions;
  positions.batch = block.batch;
  positions.queryHead = block.queryHead;
  positions.min = subIndex(builder, getKey(block.firstRow), block.lastPosition);
  positions.max = subIndex(builder, getKey(addIndex(builder, block.endRow, -1)),
                           block.position);
  positions.first =
      addIndex(builder, subIndex(builder, block.firstKey, block.position),
               getLastRow(code));
  positions.step = -1;
  emitRelativeValues(builder, code, positions);
}

void mlir::posenc::emitRelativeValues(ImplicitLocOpBuilder &builder,
                                      const AttentionCode &code,
                                      const RelativePositions &positions) {
  if (!code.relativeValues)
    return;
  AttentionOp op = code.op;
  Region &region = op.getScore();
  SmallVector<Value> values = getRelativeValues(op);
  int64_t lanes = code.tiles.lanes;
  int64_t size = cast<MemRefType>(code.relativeValues.getType()).getDimSize(1);
  auto type = VectorType::get({lanes}, builder.getIndexType());
  createLoop(
      builder, createIndex(builder, 0), createIndex(builder, size), lanes,
      [&](Value position) {
        SmallVector<Value> elements;
        Value firstLane = addIndex(builder, positions.first,
                                   mulIndex(builder, position, positions.step));
        // Clamps to the existing pairs: tables may have no elements for others.
        for (int64_t lane = 0; lane < lanes; ++lane)
          elements.push_back(maxIndex(
              builder, positions.min,
              minIndex(builder, positions.max,
                       addIndex(builder, firstLane, lane * positions.step))));
        Value relative =
            vector::FromElementsOp::create(builder, type, elements);
        IRMapping mapping;
        mapping.map(region.getArgument(1), positions.batch);
        mapping.map(region.getArgument(2), positions.queryHead);
        auto isEnd = [&](Operation *inner) {
          return isRelativePosition(inner, region);
        };
        for (Operation *inner : getNeeded(region, values, isEnd)) {
          bool isKeyMinusQuery;
          if (!isRelativePosition(inner, region, &isKeyMinusQuery)) {
            emitOperation(builder, lanes, *inner, mapping);
            continue;
          }
          Type element = inner->getResult(0).getType();
          Value difference = relative;
          if (!isKeyMinusQuery)
            difference = arith::SubIOp::create(
                builder, toVector(builder, lanes, createIndex(builder, 0)),
                difference);
          if (!element.isIndex())
            difference = arith::IndexCastOp::create(
                builder, type.clone(element), difference);
          mapping.map(inner->getResult(0), difference);
        }
        for (auto [number, value] : llvm::enumerate(values))
          storeVector(
              builder, toVector(builder, lanes, mapping.lookupOrDefault(value)),
              code.relativeValues, {createIndex(builder, number), position});
      });
}

SmallVector<Value>
mlir::posenc::loadRelativeValues(ImplicitLocOpBuilder &builder,
                                 const AttentionCode &code, Value first) {
  SmallVector<Value> values;
  if (!code.relativeValues)
    return values;
  int64_t count = cast<MemRefType>(code.relativeValues.getType()).getDimSize(0);
  for (int64_t number = 0; number < count; ++number)
    values.push_back(loadVector(builder, code.getVectorType(),
                                code.relativeValues,
                                {createIndex(builder, number), first}));
  return values;
}

SmallVector<Value>
mlir::posenc::loadRelativeValues(ImplicitLocOpBuilder &builder,
                                 const AttentionCode &code, Value row,
                                 int64_t vector) {
  if (!code.relativeValues)
    return {};
  int64_t last = getLastRow(code) + vector * code.tiles.lanes;
  return loadRelativeValues(builder, code,
                            subIndex(builder, createIndex(builder, last), row));
}

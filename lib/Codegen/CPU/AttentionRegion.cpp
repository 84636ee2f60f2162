//===- AttentionRegion.cpp - regions of attention as vectors ----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionCode.h"

#include "ConstantTables.h"
#include "ElementwiseBuilder.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::posenc;

/// Whether an operation on vectors becomes instructions, not calls. Functions
/// are expanded later.
static bool hasVectorForm(Operation *op) {
  if (isa<arith::ArithDialect>(op->getDialect()))
    return !isa<arith::RemFOp>(op);
  return isa<math::AbsFOp, math::AbsIOp, math::CeilOp, math::CopySignOp,
             math::ExpOp, math::Exp2Op, math::FloorOp, math::FmaOp, math::LogOp,
             math::Log2Op, math::RoundEvenOp, math::SqrtOp, math::TanhOp,
             math::TruncOp>(op);
}

std::optional<std::string> mlir::posenc::getRegionObstacle(AttentionOp op) {
  for (Region *region : {&op.getScore(), &op.getWhere()}) {
    if (region->empty())
      continue;
    for (Operation &inner : region->front().without_terminator())
      if (!hasVectorForm(&inner) &&
          !isa<AlibiOp, T5BucketOp, memref::LoadOp, tensor::ExtractOp>(inner))
        return ("its region has " + inner.getName().getStringRef()).str();
  }
  return std::nullopt;
}

/// `-(slope * |query - key|)` for each query.
static Value emitAlibi(ImplicitLocOpBuilder &builder, int64_t lanes, AlibiOp op,
                       const IRMapping &mapping) {
  SmallVector<double> slopes;
  for (int64_t head = 0, heads = op.getHeads(); head < heads; ++head)
    slopes.push_back(op.getSlope(head));
  std::string table =
      createConstants<double>(builder, op, "alibi_slopes", slopes);
  Value slope = memref::LoadOp::create(
      builder,
      memref::GetGlobalOp::create(
          builder,
          MemRefType::get({static_cast<int64_t>(slopes.size())},
                          builder.getF64Type()),
          table),
      ValueRange(mapping.lookupOrDefault(op.getHead())));
  Type type = op.getType(), i32 = builder.getI32Type();
  if (!type.isF64())
    slope = arith::TruncFOp::create(builder, type, slope);
  // Places are less than 2^31 apart.
  auto toI32 = [&](Value index) -> Value {
    auto vector = dyn_cast<VectorType>(index.getType());
    Type narrow = vector ? Type(vector.clone(i32)) : i32;
    index = arith::IndexCastOp::create(builder, narrow, index);
    return vector ? index
                  : broadcast(builder, VectorType::get({lanes}, i32), index);
  };
  Value query = toI32(mapping.lookupOrDefault(op.getQuery()));
  Value key = toI32(mapping.lookupOrDefault(op.getKey()));
  ElementwiseBuilder b(builder, builder.getLoc(), query);
  Value difference = b.binary<arith::SubIOp>(query, key);
  Value distance =
      b.cast<arith::SIToFPOp>(type, math::AbsIOp::create(builder, difference));
  Value slopeOfAll = broadcast(builder, VectorType::get({lanes}, type), slope);
  return b.neg(b.mul(slopeOfAll, distance));
}

/// Loads an element for each lane.
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

Value mlir::posenc::emitRegion(ImplicitLocOpBuilder &builder,
                               const AttentionCode &code, Region &region,
                               ValueRange arguments) {
  int64_t lanes = code.tiles.lanes;
  IRMapping mapping;
  mapping.map(region.getArguments(), arguments);
  auto toVector = [&](Value value) -> Value {
    if (isa<VectorType>(value.getType()))
      return value;
    return broadcast(builder, VectorType::get({lanes}, value.getType()), value);
  };
  Block &block = region.front();
  for (Operation &op : block.without_terminator()) {
    bool isVector = llvm::any_of(op.getOperands(), [&](Value operand) {
      return isa<VectorType>(mapping.lookupOrDefault(operand).getType());
    });
    if (auto alibi = dyn_cast<AlibiOp>(op)) {
      mapping.map(alibi.getResult(), emitAlibi(builder, lanes, alibi, mapping));
      continue;
    }
    if (!isVector) {
      builder.clone(op, mapping);
      continue;
    }
    if (auto load = dyn_cast<memref::LoadOp>(op)) {
      mapping.map(load.getResult(), emitLoads(builder, lanes, load, mapping));
      continue;
    }
    IRMapping vectors;
    for (Value operand : op.getOperands())
      vectors.map(operand, toVector(mapping.lookupOrDefault(operand)));
    Operation *clone = builder.clone(op, vectors);
    for (auto [result, wide] :
         llvm::zip_equal(op.getResults(), clone->getResults())) {
      wide.setType(VectorType::get({lanes}, result.getType()));
      mapping.map(result, wide);
    }
  }
  return toVector(
      mapping.lookupOrDefault(cast<YieldOp>(block.getTerminator()).getValue()));
}

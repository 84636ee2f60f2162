//===- AttentionBuilders.cpp - building the regions of attention ----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionVerify.h"
#include "posenc/IR/Attention.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::posenc;

void AttentionOp::build(OpBuilder &builder, OperationState &state, Value query,
                        Value key, Value value, ValueRange inits) {
  SmallVector<Type> results;
  llvm::copy_if(inits.getTypes(), std::back_inserter(results),
                llvm::IsaPred<RankedTensorType>);
  build(builder, state, results, query, key, value, /*query_positions=*/{},
        /*key_positions=*/{}, /*query_norm=*/{}, /*key_norm=*/{},
        /*lengths=*/{}, /*cu_seqlens=*/{}, /*block_table=*/{}, /*mask=*/{},
        /*sinks=*/{}, /*key_scales=*/{}, /*value_scales=*/{},
        /*trailing_queries=*/{}, /*turns=*/{}, inits, HeadLayout::TokenMajor,
        HeadLayout::TokenMajor,
        /*query_rotation=*/{}, /*key_rotation=*/{}, /*norm_eps=*/{},
        /*norm_offset=*/{}, /*scale=*/{}, /*window_left=*/{},
        /*window_right=*/{}, /*causal=*/false);
}

Value mlir::posenc::cloneScalarRegion(OpBuilder &builder, Region &region,
                                      ValueRange arguments) {
  IRMapping mapping;
  mapping.map(region.getArguments(), arguments);
  Block &block = region.front();
  for (Operation &op : block.without_terminator())
    builder.clone(op, mapping);
  return mapping.lookupOrDefault(
      cast<YieldOp>(block.getTerminator()).getValue());
}

/// Extends a region, or creates it. `build` gets the region's arguments; the
/// score argument is the value that the region yielded before. `combine` joins
/// the old and the new value.
static void
extendRegion(OpBuilder &builder, Location loc, Region &region,
             ArrayRef<Type> types, bool hasScore, BuildScalar build,
             llvm::function_ref<Value(OpBuilder &, Value, Value)> combine) {
  OpBuilder::InsertionGuard guard(builder);
  Value yielded;
  if (region.empty()) {
    builder.createBlock(&region, region.end(), types,
                        SmallVector<Location>(types.size(), loc));
  } else {
    auto yield = cast<YieldOp>(region.front().getTerminator());
    yielded = yield.getValue();
    yield.erase();
    builder.setInsertionPointToEnd(&region.front());
  }
  SmallVector<Value> arguments(region.getArguments());
  if (hasScore && yielded)
    arguments.front() = yielded;
  Value value = build(builder, loc, arguments);
  if (yielded)
    value = combine(builder, yielded, value);
  YieldOp::create(builder, loc, value);
}

template <typename OpTy>
static void extendScore(OpBuilder &builder, OpTy op, BuildScalar build) {
  extendRegion(builder, op.getLoc(), op.getScore(),
               getScoreArguments(op.getQuery().getType()), /*hasScore=*/true,
               build, [](OpBuilder &, Value, Value score) { return score; });
}

template <typename OpTy>
static void extendWhere(OpBuilder &builder, OpTy op, BuildScalar build) {
  extendRegion(builder, op.getLoc(), op.getWhere(),
               getWhereArguments(op.getContext()), /*hasScore=*/false, build,
               [&](OpBuilder &nested, Value a, Value b) -> Value {
                 return arith::AndIOp::create(nested, op.getLoc(), a, b);
               });
}

void mlir::posenc::buildScore(OpBuilder &builder, AttentionOp op,
                              BuildScalar build) {
  extendScore(builder, op, build);
}

void mlir::posenc::buildScore(OpBuilder &builder, OnlineAttentionOp op,
                              BuildScalar build) {
  extendScore(builder, op, build);
}

void mlir::posenc::buildWhere(OpBuilder &builder, AttentionOp op,
                              BuildScalar build) {
  extendWhere(builder, op, build);
}

void mlir::posenc::buildWhere(OpBuilder &builder, OnlineAttentionOp op,
                              BuildScalar build) {
  extendWhere(builder, op, build);
}

void mlir::posenc::buildSoftCap(OpBuilder &builder, AttentionOp op,
                                double cap) {
  buildScore(
      builder, op, [&](OpBuilder &nested, Location loc, ValueRange arguments) {
        Value score = arguments.front();
        Value limit = arith::ConstantOp::create(
            nested, loc, nested.getFloatAttr(score.getType(), cap));
        Value ratio = arith::DivFOp::create(nested, loc, score, limit);
        Value tanh = math::TanhOp::create(nested, loc, ratio);
        return arith::MulFOp::create(nested, loc, tanh, limit).getResult();
      });
}

//===- DecomposeKvAppend.cpp - kv_append to loops over tokens -------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CacheRows.h"
#include "HeadRows.h"

#include "posenc/IR/CreateGeneric.h"
#include "posenc/Transforms/AttentionIndices.h"
#include "posenc/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/TypeUtilities.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCDECOMPOSEKVAPPENDPASS
#include "posenc/Transforms/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

namespace {

/// Lowers one kv_append to an scf.forall with one iteration per token.
class AppendLowering {
public:
  AppendLowering(RewriterBase &rewriter, KvAppendOp op)
      : builder(rewriter), loc(op.getLoc()), op(op) {}

  /// Emits the loop and returns its results, which replace those of the op.
  ValueRange lower();

private:
  void findSlot();
  /// Extracts the token's row of every head; `count` rows, which is 0 if the
  /// slot is outside the cache.
  Value takeRows(Value tensor);
  Value takePosition();
  void insertRows(Value rows, Value cache, scf::InParallelOp terminator);
  /// Converts rows to the cache's type and inserts them into cache `number` (0:
  /// keys, 1: values); inserts the rows' scales if these are computed.
  void insertConverted(Value rows, unsigned number, scf::ForallOp forall);
  /// The slice of the cache's scales that has those of the rows: (heads, 1), or
  /// (heads, 0) if the slot is outside the cache.
  struct ScaleSlice {
    SmallVector<OpFoldResult> offsets, sizes;
  };
  ScaleSlice getScaleSlice(Value scales);

  OpFoldResult attr(int64_t value) { return builder.getIndexAttr(value); }
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }
  Value extract(Value tensor, ArrayRef<OpFoldResult> offsets,
                ArrayRef<OpFoldResult> sizes, ArrayRef<int64_t> dropped) {
    return extractSlice(builder, loc, tensor, offsets, sizes, dropped);
  }

  OpBuilder builder;
  Location loc;
  KvAppendOp op;
  Value batch, token;   ///< `batch` is null if the new rows are ragged.
  Value sequence, slot; ///< Indices of the row in the cache.
  OpFoldResult count;   ///< 1, or 0 if the slot is outside the cache.
};

} // namespace

void AppendLowering::findSlot() {
  auto getSize = [&](Value tensor, int64_t dim) {
    return getValueOrCreateConstantIndexOp(
        builder, loc, tensor::getMixedSize(builder, loc, tensor, dim));
  };
  Value cache = op.getInits()[0];
  Value tokens = getSize(cache, op.getCacheTokenDim());
  Value one = constant(1), limit = tokens;
  Value given;
  if (Value lengths = op.getLengths()) {
    Value length = loadIndex(builder, loc, lengths, batch);
    Value count = getSize(op.getKey(), op.getTokenDim());
    Value first = arith::SubIOp::create(builder, loc, length, count);
    given = arith::AddIOp::create(builder, loc, first, token);
  } else {
    SmallVector<Value> at{token};
    if (batch)
      at.insert(at.begin(), batch);
    given = loadIndex(builder, loc, op.getSlots(), at);
    limit = arith::MulIOp::create(builder, loc, getSize(cache, 0), tokens);
  }
  Value zero = constant(0);
  auto max = [&](Value a, Value b) -> Value {
    return arith::MaxSIOp::create(builder, loc, a, b);
  };
  auto min = [&](Value a, Value b) -> Value {
    return arith::MinSIOp::create(builder, loc, a, b);
  };
  auto subtract = [&](Value a, Value b) -> Value {
    return arith::SubIOp::create(builder, loc, a, b);
  };
  // 1 if 0 <= given < limit, else 0. Written with min and max so that the value
  // bounds of the slices can be inferred.
  Value first = max(given, zero);
  Value next = arith::AddIOp::create(builder, loc, given, one);
  Value number =
      min(min(one, max(next, zero)), max(subtract(limit, first), zero));
  slot = first;
  sequence = batch;
  if (op.getSlots()) {
    Value divisor = max(tokens, one);
    sequence = min(arith::DivUIOp::create(builder, loc, first, divisor),
                   subtract(getSize(cache, 0), one));
    slot = arith::RemUIOp::create(builder, loc, first, divisor);
    number = min(number, tokens);
  }
  slot = min(slot, subtract(tokens, number));
  count = number;
}

Value AppendLowering::takeRows(Value tensor) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, tensor);
  SmallVector<OpFoldResult> offsets(sizes.size(), attr(0));
  SmallVector<int64_t> dropped;
  if (batch) {
    offsets[0] = batch;
    sizes[0] = attr(1);
    dropped.push_back(0);
  }
  offsets[op.getTokenDim()] = token;
  sizes[op.getTokenDim()] = count;
  Value rows = extract(tensor, offsets, sizes, dropped);
  if (op.getLayout() != op.getCacheLayout())
    rows = transpose(builder, loc, rows, {1, 0, 2});
  return rows;
}

Value AppendLowering::takePosition() {
  Value positions = op.getPositions();
  if (!positions)
    return slot;
  SmallVector<OpFoldResult> offsets, sizes;
  SmallVector<int64_t> dropped;
  if (AxesAttr axes = op.getRotationAttr().getAxes()) {
    offsets.push_back(attr(0));
    sizes.push_back(attr(axes.getNumAxes()));
  }
  if (batch) {
    dropped.push_back(offsets.size());
    offsets.push_back(batch);
    sizes.push_back(attr(1));
  }
  offsets.push_back(token);
  sizes.push_back(count);
  return extract(positions, offsets, sizes, dropped);
}

void AppendLowering::insertRows(Value rows, Value cache,
                                scf::InParallelOp terminator) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, cache);
  SmallVector<OpFoldResult> offsets(4, attr(0)), strides(4, attr(1));
  offsets[0] = sequence;
  sizes[0] = attr(1);
  offsets[op.getCacheTokenDim()] = slot;
  sizes[op.getCacheTokenDim()] = count;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(terminator.getBody());
  tensor::ParallelInsertSliceOp::create(builder, loc, rows, cache, offsets,
                                        sizes, strides);
}

AppendLowering::ScaleSlice AppendLowering::getScaleSlice(Value scales) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, scales);
  sizes[0] = attr(1);
  sizes[2] = count;
  return {{sequence, attr(0), slot}, sizes};
}

void AppendLowering::insertConverted(Value rows, unsigned number,
                                     scf::ForallOp forall) {
  ArrayRef<BlockArgument> caches = forall.getRegionIterArgs();
  Type element = getElementTypeOrSelf(caches[number].getType());
  if (!op.isQuantized()) {
    rows = narrowRows(builder, loc, rows, element);
    return insertRows(rows, caches[number], forall.getTerminator());
  }
  rows = narrowRows(builder, loc, rows, builder.getF32Type());
  SmallVector<unsigned> headAndToken{0, 1};
  if (op.getCacheLayout() == HeadLayout::TokenMajor)
    std::swap(headAndToken[0], headAndToken[1]);
  if (Value given = number == 0 ? op.getKeyScales() : op.getValueScales()) {
    // Both the sequence and the token of these scales are dropped.
    SmallVector<unsigned> dims{0, headAndToken[0], headAndToken[1]};
    rows = quantizeRowsBy(builder, loc, rows, element, given, dims);
    return insertRows(rows, caches[number], forall.getTerminator());
  }
  Value allScales = caches[number + 2];
  ScaleSlice slice = getScaleSlice(allScales);
  auto [quantized, scales] = quantizeRows(
      builder, loc, rows, element,
      extract(allScales, slice.offsets, slice.sizes, {0}), headAndToken);
  insertRows(quantized, caches[number], forall.getTerminator());
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(forall.getTerminator().getBody());
  tensor::ParallelInsertSliceOp::create(builder, loc, scales, allScales,
                                        slice.offsets, slice.sizes,
                                        SmallVector<OpFoldResult>(3, attr(1)));
}

ValueRange AppendLowering::lower() {
  SmallVector<OpFoldResult> loops;
  if (!op.hasRaggedRows())
    loops.push_back(tensor::getMixedSize(builder, loc, op.getKey(), 0));
  loops.push_back(
      tensor::getMixedSize(builder, loc, op.getKey(), op.getTokenDim()));
  auto forall = scf::ForallOp::create(builder, loc, loops, op.getInits(),
                                      /*mapping=*/std::nullopt);
  builder.setInsertionPoint(forall.getTerminator());
  token = forall.getInductionVars().back();
  if (!op.hasRaggedRows())
    batch = forall.getInductionVars().front();
  findSlot();
  Value key = takeRows(op.getKey()), value = takeRows(op.getValue());
  // Widens the rows, so that they are rounded once, to the caches' type.
  Type element = getElementTypeOrSelf(key.getType());
  if (element != getElementTypeOrSelf(op.getInits().front().getType())) {
    Type sum = element.isF64() ? element : Type(builder.getF32Type());
    key = widenRows(builder, loc, key, /*scales=*/nullptr, {}, sum);
    value = widenRows(builder, loc, value, /*scales=*/nullptr, {}, sum);
  }
  RowTransform transform{
      op.getNorm(), op.getNormEps() ? op.getNormEps()->convertToDouble() : 0.0,
      op.getNormWeightOffset(), op.getRotationAttr(), op.getTurns()};
  unsigned tokenDim = op.getCacheTokenDim() - 1;
  key = transformRows(builder, loc, key, tokenDim,
                      transform.rotation ? takePosition() : Value(), transform);
  insertConverted(key, 0, forall);
  insertConverted(value, 1, forall);
  return forall.getResults();
}

namespace {
struct PosencDecomposeKvAppendPass
    : mlir::posenc::impl::PosencDecomposeKvAppendPassBase<
          PosencDecomposeKvAppendPass> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<KvAppendOp> operations;
    getOperation()->walk([&](KvAppendOp op) {
      if (op.hasPureTensorSemantics())
        operations.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (KvAppendOp op : operations) {
      rewriter.setInsertionPoint(op);
      rewriter.replaceOp(op, AppendLowering(rewriter, op).lower());
    }
  }
};
} // namespace

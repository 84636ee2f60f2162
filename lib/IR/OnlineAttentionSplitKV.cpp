//===- OnlineAttentionSplitKV.cpp - KV splits of online_attention ---------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements PartialReductionOpInterface: KV splits as in Flash-Decoding. Each
// split of the keys has a partial result (m, l, acc). With M, the largest m,
// the merged l is the sum of exp(m - M) * l, and the merged acc is the sum of
// exp(m - M) * acc. The first dimension of partial results is the split.
//
//===----------------------------------------------------------------------===//

#include "Tiling.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

#include <limits>

using namespace mlir;
using namespace mlir::posenc;

/// The number of the loop over keys.
static constexpr unsigned kKeyLoop = 2;

/// Whether these loops can be split into partial results.
static bool isSplitOfKeys(ReductionTilingStrategy strategy,
                          const llvm::SetVector<unsigned> &reductionDims,
                          ArrayRef<OpFoldResult> ivs) {
  return strategy == ReductionTilingStrategy::PartialReductionOuterParallel &&
         reductionDims.size() == 1 && reductionDims.front() == kKeyLoop &&
         ivs.size() == 1;
}

FailureOr<SmallVector<Value>>
OnlineAttentionOp::generateInitialTensorForPartialReduction(
    OpBuilder &builder, Location loc, ArrayRef<OpFoldResult> sizes,
    const llvm::SetVector<unsigned> &reductionDims) {
  if (!hasPureTensorSemantics() || reductionDims.size() != 1 ||
      reductionDims.front() != kKeyLoop)
    return failure();
  double infinity = std::numeric_limits<double>::infinity();
  SmallVector<Value> initials;
  for (auto [init, identity] :
       llvm::zip_equal(getInits(), ArrayRef<double>{0.0, -infinity, 0.0})) {
    SmallVector<OpFoldResult> shape = tensor::getMixedSizes(builder, loc, init);
    shape.insert(shape.begin(), sizes[kKeyLoop]);
    Value empty = tensor::EmptyOp::create(builder, loc, shape, getSumType());
    Value scalar = arith::ConstantOp::create(
        builder, loc, builder.getFloatAttr(getSumType(), identity));
    initials.push_back(
        linalg::FillOp::create(builder, loc, scalar, empty).getResult(0));
  }
  return initials;
}

// At this point, the destinations may already be the partial results.
LogicalResult OnlineAttentionOp::getPartialResultTilePosition(
    OpBuilder &builder, unsigned resultNumber, ReductionTilingStrategy strategy,
    ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes,
    const llvm::SetVector<unsigned> &reductionDims,
    ArrayRef<OpFoldResult> splitReductionIvs,
    SmallVector<OpFoldResult> &resultOffsets,
    SmallVector<OpFoldResult> &resultSizes) {
  if (!isSplitOfKeys(strategy, reductionDims, splitReductionIvs))
    return failure();
  resultOffsets.assign({splitReductionIvs.front(), offsets[0], offsets[1]});
  resultSizes.assign({builder.getIndexAttr(1), sizes[0], sizes[1]});
  if (resultNumber == 0) {
    auto value = cast<ShapedType>(getValue().getType());
    resultOffsets.push_back(builder.getIndexAttr(0));
    resultSizes.push_back(builder.getIndexAttr(value.getDimSize(1)));
  }
  return success();
}

FailureOr<TilingResult> OnlineAttentionOp::tileToPartialReduction(
    OpBuilder &builder, Location loc, ReductionTilingStrategy strategy,
    ValueRange inits, ArrayRef<OpFoldResult> offsets,
    ArrayRef<OpFoldResult> sizes,
    const llvm::SetVector<unsigned> &reductionDims,
    ArrayRef<OpFoldResult> splitReductionIvs) {
  SmallVector<Value> parts;
  SmallVector<Operation *> slices;
  for (auto [number, init] : llvm::enumerate(inits)) {
    SmallVector<OpFoldResult> first, count;
    if (failed(getPartialResultTilePosition(builder, number, strategy, offsets,
                                            sizes, reductionDims,
                                            splitReductionIvs, first, count)))
      return failure();
    SmallVector<OpFoldResult> strides(first.size(), builder.getIndexAttr(1));
    // The shape without the dimension of splits.
    SmallVector<int64_t> shape;
    for (OpFoldResult size : llvm::drop_begin(count))
      shape.push_back(getConstantIntValue(size).value_or(ShapedType::kDynamic));
    auto type = RankedTensorType::get(shape, getSumType());
    slices.push_back(tensor::ExtractSliceOp::create(builder, loc, type, init,
                                                    first, count, strides));
    parts.push_back(slices.back()->getResult(0));
  }
  TilingResult tile = createTile(builder, *this, offsets, sizes, parts);
  llvm::append_range(tile.generatedSlices, slices);
  return tile;
}

/// Emits `exp(max - last)`, the factor that rescales results from the maximum
/// `max` to the maximum `last`. It is 1 if both are minus infinity.
static Value createFactor(OpBuilder &builder, Location loc, Value max,
                          Value last) {
  Value isSame =
      arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OEQ, max, last);
  Value less = arith::SubFOp::create(builder, loc, max, last);
  Value factor = math::ExpOp::create(builder, loc, less);
  Value one = arith::ConstantOp::create(
      builder, loc, builder.getFloatAttr(max.getType(), 1.0));
  return arith::SelectOp::create(builder, loc, isSame, one, factor);
}

FailureOr<MergeResult> OnlineAttentionOp::mergeReductions(
    OpBuilder &builder, Location loc, ValueRange partial,
    const llvm::SetVector<unsigned> &reductionDims) {
  if (partial.size() != getInits().size())
    return failure();
  MergeResult result;
  // Loops: splits (if `hasSplits`), heads, queries, and lanes.
  auto create = [&](ValueRange inputs, Value init, bool hasSplits,
                    function_ref<Value(OpBuilder &, ValueRange)> body) {
    int64_t rank = cast<RankedTensorType>(init.getType()).getRank();
    AffineMap all = builder.getMultiDimIdentityMap(rank + hasSplits);
    SmallVector<AffineMap> maps;
    auto getMap = [&](Value value, bool isPartial) {
      int64_t dims = cast<RankedTensorType>(value.getType()).getRank();
      unsigned first = hasSplits && !isPartial;
      return all.getSliceMap(first, dims);
    };
    for (Value input : inputs)
      maps.push_back(getMap(input, llvm::is_contained(partial, input)));
    maps.push_back(getMap(init, /*isPartial=*/false));
    SmallVector<utils::IteratorType> loops(rank + hasSplits,
                                           utils::IteratorType::parallel);
    if (hasSplits)
      loops.front() = utils::IteratorType::reduction;
    auto op = linalg::GenericOp::create(
        builder, loc, init.getType(), inputs, init, maps, loops,
        [&](OpBuilder &b, Location l, ValueRange args) {
          linalg::YieldOp::create(b, l, body(b, args));
        });
    result.mergeOps.push_back(op);
    return op.getResult(0);
  };
  Value oldMax = getInits()[1];
  Value max =
      create(partial[1], oldMax, /*hasSplits=*/true,
             [&](OpBuilder &b, ValueRange args) -> Value {
               return arith::MaximumFOp::create(b, loc, args[0], args[1]);
             });
  for (auto [init, splits] :
       {std::pair(getInits()[0], partial[0]), {getInits()[2], partial[2]}}) {
    // The previous state counts as one more split.
    Value sum = create({oldMax, max}, init, /*hasSplits=*/false,
                       [&](OpBuilder &b, ValueRange args) -> Value {
                         Value factor = createFactor(b, loc, args[0], args[1]);
                         return arith::MulFOp::create(b, loc, args[2], factor);
                       });
    sum = create({splits, partial[1], max}, sum, /*hasSplits=*/true,
                 [&](OpBuilder &b, ValueRange args) -> Value {
                   Value factor = createFactor(b, loc, args[1], args[2]);
                   return math::FmaOp::create(b, loc, args[0], factor, args[3]);
                 });
    result.replacements.push_back(sum);
  }
  result.replacements.insert(result.replacements.begin() + 1, max);
  return result;
}

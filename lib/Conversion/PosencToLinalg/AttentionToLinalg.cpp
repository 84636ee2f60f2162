//===- AttentionToLinalg.cpp - a tile of attention to linalg ----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// With s the scores of a row, minus infinity where a key takes no part:
//   max' = max(max, max_j s_j)       p_j = exp(s_j - max')   r = exp(max -
//   max') acc' = r * acc + sum_j p_j v_j   sum' = r * sum + sum_j p_j
// Where max' is minus infinity, 0 stands in for it in p, and r is 1. All is in
// the type of the sums. The sums of a tile are taken on their own, so that
// rounding errors grow with the size of a tile and the number of tiles, and not
// with their product.
//
//===----------------------------------------------------------------------===//

#include "SincosGeneric.h"
#include "posenc/Conversion/Passes.h"
#include "posenc/Conversion/PosencToLinalg.h"
#include "posenc/IR/Attention.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

#include <limits>

namespace mlir::posenc {
#define GEN_PASS_DEF_CONVERTPOSENCATTENTIONTOLINALGPASS
#include "posenc/Conversion/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

namespace {

/// The lowering of one tile. Loops are heads, queries, keys and lanes, and each
/// tensor is indexed by some of them.
class TileLowering {
public:
  TileLowering(OpBuilder &builder, OnlineAttentionOp op)
      : builder(builder), loc(op.getLoc()), op(op), sum(op.getSumType()) {}

  SmallVector<Value> lower();

private:
  using Body = function_ref<SmallVector<Value>(OpBuilder &, ValueRange)>;
  using Loops = ArrayRef<unsigned>;

  void takeKeys();
  Value createDots();
  Value createScores(Value dots);
  Value createWeightedSums(Value weights, bool skipsZeros);
  Value collapseRows(Value tensor);
  Value expandRows(Value rows, OpFoldResult size);
  Value createValues(Value weights);

  /// A generic over `numLoops` loops, of which `reduced` is a reduction (none
  /// if it is negative). `dims` are the loops that index each operand.
  SmallVector<Value> generic(unsigned numLoops, int reduced, ValueRange inputs,
                             ValueRange inits, ArrayRef<Loops> dims, Body body);
  Value scalar(OpBuilder &b, double value) {
    return arith::ConstantOp::create(b, loc, b.getFloatAttr(sum, value));
  }
  Value minusInfinity(OpBuilder &b) {
    return scalar(b, -std::numeric_limits<double>::infinity());
  }
  Value widen(OpBuilder &b, Value value) {
    if (value.getType() == sum)
      return value;
    if (value.getType().getIntOrFloatBitWidth() < sum.getWidth())
      return arith::ExtFOp::create(b, loc, sum, value);
    return arith::TruncFOp::create(b, loc, sum, value);
  }
  Value empty(ArrayRef<OpFoldResult> sizes) {
    return tensor::EmptyOp::create(builder, loc, sizes, sum);
  }
  Value fill(ArrayRef<OpFoldResult> sizes, double value) {
    return linalg::FillOp::create(builder, loc, scalar(builder, value),
                                  empty(sizes))
        .getResult(0);
  }

  OpBuilder &builder;
  Location loc;
  OnlineAttentionOp op;
  FloatType sum;
  Value key, value, mask;
  OpFoldResult numHeads, numQueries, numKeys, valueDim;
};

} // namespace

static constexpr unsigned kRow[] = {0, 1};
static constexpr unsigned kScore[] = {0, 1, 2};

SmallVector<Value> TileLowering::generic(unsigned numLoops, int reduced,
                                         ValueRange inputs, ValueRange inits,
                                         ArrayRef<Loops> dims, Body body) {
  AffineMap all = builder.getMultiDimIdentityMap(numLoops);
  SmallVector<AffineMap> maps;
  for (Loops loops : dims)
    maps.push_back(all.getSubMap(loops));
  SmallVector<utils::IteratorType> iterators(numLoops,
                                             utils::IteratorType::parallel);
  if (reduced >= 0)
    iterators[reduced] = utils::IteratorType::reduction;
  auto generic = linalg::GenericOp::create(
      builder, loc, inits.getTypes(), inputs, inits, maps, iterators,
      [&](OpBuilder &b, Location, ValueRange args) {
        linalg::YieldOp::create(b, loc, body(b, args));
      });
  return SmallVector<Value>(generic.getResults());
}

/// Keys, values and mask as far as keys take part.
void TileLowering::takeKeys() {
  key = op.getKey();
  value = op.getValue();
  mask = op.getMask();
  numKeys = tensor::getMixedSize(builder, loc, key, 0);
  if (!op.getNumKeys())
    return;
  auto constant = [&](int64_t number) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, number);
  };
  Value rest =
      arith::SubIOp::create(builder, loc, op.getNumKeys(), op.getKeyIndex());
  rest = arith::MaxSIOp::create(builder, loc, rest, constant(0));
  AffineExpr d0 = builder.getAffineDimExpr(0), d1 = builder.getAffineDimExpr(1);
  numKeys = affine::makeComposedFoldedAffineMin(
      builder, loc, AffineMap::get(2, 0, {d0, d1}, builder.getContext()),
      {numKeys, rest});
  auto cut = [&](Value tensor, int64_t dim) -> Value {
    SmallVector<OpFoldResult> sizes =
        tensor::getMixedSizes(builder, loc, tensor);
    SmallVector<OpFoldResult> offsets(sizes.size(), builder.getIndexAttr(0));
    SmallVector<OpFoldResult> strides(sizes.size(), builder.getIndexAttr(1));
    sizes[dim] = numKeys;
    return tensor::ExtractSliceOp::create(builder, loc, tensor, offsets, sizes,
                                          strides);
  };
  key = cut(key, 0);
  value = cut(value, 0);
  if (mask && cast<RankedTensorType>(mask.getType()).getDimSize(2) != 1)
    mask = cut(mask, 2);
}

/// Heads and queries as one dimension: the rows of a product of matrices.
Value TileLowering::collapseRows(Value tensor) {
  return tensor::CollapseShapeOp::create(
      builder, loc, tensor, ArrayRef<ReassociationIndices>{{0, 1}, {2}});
}

/// The inverse; `size` is that of the last dimension.
Value TileLowering::expandRows(Value rows, OpFoldResult size) {
  SmallVector<OpFoldResult> sizes{numHeads, numQueries, size};
  SmallVector<Value> dynamicSizes;
  SmallVector<int64_t> shape;
  dispatchIndexOpFoldResults(sizes, dynamicSizes, shape);
  return tensor::ExpandShapeOp::create(
      builder, loc, RankedTensorType::get(shape, sum), rows,
      ArrayRef<ReassociationIndices>{{0, 1}, {2}}, sizes);
}

/// The products of queries and keys, not scaled.
Value TileLowering::createDots() {
  // How partial sums are put together is for whoever vectorizes.
  auto fast = arith::FastMathFlags::reassoc | arith::FastMathFlags::contract;
  Value query = collapseRows(op.getQuery());
  OpFoldResult rows = tensor::getMixedSize(builder, loc, query, 0);
  Value dots = generic(
      3, 2, {query, key}, fill({rows, numKeys}, 0.0), {{0, 2}, {1, 2}, {0, 1}},
      [&](OpBuilder &b, ValueRange args) -> SmallVector<Value> {
        Value product = arith::MulFOp::create(b, loc, widen(b, args[0]),
                                              widen(b, args[1]), fast);
        return {arith::AddFOp::create(b, loc, product, args[2], fast)};
      })[0];
  return expandRows(dots, numKeys);
}

/// The scores, minus infinity where a key takes no part.
Value TileLowering::createScores(Value dots) {
  if (op.getScoreScale() == 1.0 && op.getScore().empty() && !mask &&
      !op.getCausal() && !op.getWindowLeft() && !op.getWindowRight() &&
      op.getWhere().empty())
    return dots;
  SmallVector<Value> inputs;
  SmallVector<Loops> dims;
  SmallVector<unsigned> maskDims;
  if (mask) {
    // A size of 1 stands for all.
    auto type = cast<RankedTensorType>(mask.getType());
    SmallVector<int64_t> shape;
    for (unsigned dim = 0; dim < 3; ++dim)
      if (type.getDimSize(dim) != 1) {
        shape.push_back(type.getDimSize(dim));
        maskDims.push_back(dim);
      }
    SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, mask);
    inputs.push_back(tensor::ExtractSliceOp::create(
        builder, loc, RankedTensorType::get(shape, type.getElementType()), mask,
        SmallVector<OpFoldResult>(3, builder.getIndexAttr(0)), sizes,
        SmallVector<OpFoldResult>(3, builder.getIndexAttr(1))));
    dims.push_back(maskDims);
  }
  dims.push_back(kScore);
  bool isMasked = mask && getElementTypeOrSelf(mask.getType()).isInteger(1);

  auto body = [&](OpBuilder &b, ValueRange args) -> SmallVector<Value> {
    auto index = [&](unsigned loop, Value first) -> Value {
      Value own = linalg::IndexOp::create(b, loc, loop);
      return arith::AddIOp::create(b, loc, first, own);
    };
    SmallVector<Value> at{op.getBatchIndex(), index(0, op.getHeadIndex()),
                          index(1, op.getQueryIndex()),
                          index(2, op.getKeyIndex())};
    Value query = at[2], place = at[3];
    Value score = args.back();
    if (double scale = op.getScoreScale(); scale != 1.0)
      score = arith::MulFOp::create(b, loc, score, scalar(b, scale));
    if (!op.getScore().empty()) {
      SmallVector<Value> arguments{score};
      llvm::append_range(arguments, at);
      score = cloneScalarRegion(b, op.getScore(), arguments);
    }

    Value takesPart;
    auto require = [&](Value condition) {
      takesPart =
          takesPart ? Value(arith::AndIOp::create(b, loc, takesPart, condition))
                    : condition;
    };
    if (mask && !isMasked) {
      Value added = widen(b, args[0]);
      score = arith::AddFOp::create(b, loc, score, added);
      // Whatever the key is.
      require(arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE, added,
                                    minusInfinity(b)));
    }
    // Distances, since a place less a window could wrap.
    auto requireNear = [&](Value from, Value to, int64_t most) {
      Value distance = arith::SubIOp::create(b, loc, from, to);
      Value limit = arith::ConstantIndexOp::create(b, loc, most);
      require(arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle, distance,
                                    limit));
    };
    if (op.getCausal())
      requireNear(place, query, 0);
    if (std::optional<int64_t> left = op.getWindowLeft())
      requireNear(query, place, *left);
    if (std::optional<int64_t> right = op.getWindowRight())
      requireNear(place, query, *right);
    if (!op.getWhere().empty())
      require(cloneScalarRegion(b, op.getWhere(), at));
    if (isMasked)
      require(args[0]);
    if (takesPart)
      score =
          arith::SelectOp::create(b, loc, takesPart, score, minusInfinity(b));
    return {score};
  };
  return generic(3, -1, inputs, dots, dims, body)[0];
}

/// The sums of values times weights. Where zeros are skipped, a value may be
/// anything if its weight is 0: its key takes no part.
Value TileLowering::createWeightedSums(Value weights, bool skipsZeros) {
  weights = collapseRows(weights);
  OpFoldResult rows = tensor::getMixedSize(builder, loc, weights, 0);
  Value sums = generic(
      3, 1, {weights, value}, fill({rows, valueDim}, 0.0),
      {{0, 1}, {1, 2}, {0, 2}},
      [&](OpBuilder &b, ValueRange args) -> SmallVector<Value> {
        Value weighted = widen(b, args[1]);
        if (!skipsZeros) {
          auto fused = arith::FastMathFlags::contract;
          Value product =
              arith::MulFOp::create(b, loc, args[0], weighted, fused);
          return {arith::AddFOp::create(b, loc, product, args[2], fused)};
        }
        Value added = math::FmaOp::create(b, loc, args[0], weighted, args[2]);
        Value isOut = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ,
                                            args[0], scalar(b, 0.0));
        return {arith::SelectOp::create(b, loc, isOut, args[2], added)};
      })[0];
  return expandRows(sums, valueDim);
}

/// The sums of values of the tile. A product of matrices is many times faster
/// than one that skips zeros, and as good if all keys take part for all
/// queries.
Value TileLowering::createValues(Value weights) {
  if (mask || !op.getWhere().empty())
    return createWeightedSums(weights, /*skipsZeros=*/true);
  if (!op.getCausal() && !op.getWindowLeft() && !op.getWindowRight())
    return createWeightedSums(weights, /*skipsZeros=*/false);
  auto getLast = [&](Value first, OpFoldResult count) -> Value {
    Value size = getValueOrCreateConstantIndexOp(builder, loc, count);
    Value one = arith::ConstantIndexOp::create(builder, loc, 1);
    return arith::SubIOp::create(
        builder, loc, arith::AddIOp::create(builder, loc, first, size), one);
  };
  Value query = op.getQueryIndex(), key = op.getKeyIndex();
  Value lastQuery = getLast(query, numQueries), lastKey = getLast(key, numKeys);
  Value areAll = arith::ConstantIntOp::create(builder, loc, 1, 1);
  auto require = [&](Value from, Value to, int64_t most) {
    Value distance = arith::SubIOp::create(builder, loc, from, to);
    Value limit = arith::ConstantIndexOp::create(builder, loc, most);
    areAll = arith::AndIOp::create(
        builder, loc, areAll,
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sle, distance,
                              limit));
  };
  if (op.getCausal())
    require(lastKey, query, 0);
  if (std::optional<int64_t> left = op.getWindowLeft())
    require(lastQuery, key, *left);
  if (std::optional<int64_t> right = op.getWindowRight())
    require(lastKey, query, *right);
  auto createIn = [&](Region &region, bool skipsZeros) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&region.front());
    Value sums = createWeightedSums(weights, skipsZeros);
    scf::YieldOp::create(builder, loc, sums);
  };
  SmallVector<int64_t> shape;
  SmallVector<Value> sizes;
  dispatchIndexOpFoldResults({numHeads, numQueries, valueDim}, sizes, shape);
  auto branch =
      scf::IfOp::create(builder, loc, RankedTensorType::get(shape, sum), areAll,
                        /*withElseRegion=*/true);
  createIn(branch.getThenRegion(), /*skipsZeros=*/false);
  createIn(branch.getElseRegion(), /*skipsZeros=*/true);
  return branch.getResult(0);
}

SmallVector<Value> TileLowering::lower() {
  Value acc = op.getInits()[0], max = op.getInits()[1], sums = op.getInits()[2];
  takeKeys();
  numHeads = tensor::getMixedSize(builder, loc, op.getQuery(), 0);
  numQueries = tensor::getMixedSize(builder, loc, op.getQuery(), 1);
  valueDim = tensor::getMixedSize(builder, loc, value, 1);
  SmallVector<OpFoldResult> rows{numHeads, numQueries};
  Value scores = createScores(createDots());

  auto isNothing = [&](OpBuilder &b, Value maximum) -> Value {
    return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, maximum,
                                 minusInfinity(b));
  };
  Value maxima = generic(
      3, 2, scores, fill(rows, -std::numeric_limits<double>::infinity()),
      {kScore, kRow}, [&](OpBuilder &b, ValueRange args) -> SmallVector<Value> {
        return {arith::MaximumFOp::create(b, loc, args[0], args[1])};
      })[0];
  SmallVector<Value> rescaled =
      generic(2, -1, maxima, {empty(rows), max}, {kRow, kRow, kRow},
              [&](OpBuilder &b, ValueRange args) -> SmallVector<Value> {
                Value next =
                    arith::MaximumFOp::create(b, loc, args[0], args[2]);
                Value less = arith::SubFOp::create(b, loc, args[2], next);
                Value factor = math::ExpOp::create(b, loc, less);
                factor = arith::SelectOp::create(b, loc, isNothing(b, next),
                                                 scalar(b, 1.0), factor);
                return {factor, next};
              });
  Value factor = rescaled[0];
  max = rescaled[1];

  Value weights =
      generic(3, -1, max, scores, {kRow, kScore},
              [&](OpBuilder &b, ValueRange args) -> SmallVector<Value> {
                Value base = arith::SelectOp::create(
                    b, loc, isNothing(b, args[0]), scalar(b, 0.0), args[0]);
                Value less = arith::SubFOp::create(b, loc, args[1], base);
                return {math::ExpOp::create(b, loc, less)};
              })[0];
  Value sumOfTile =
      generic(3, 2, weights, fill(rows, 0.0), {kScore, kRow},
              [&](OpBuilder &b, ValueRange args) -> SmallVector<Value> {
                return {arith::AddFOp::create(b, loc, args[0], args[1])};
              })[0];
  Value valuesOfTile = createValues(weights);
  auto rescale = [&](OpBuilder &b, ValueRange args) -> SmallVector<Value> {
    return {math::FmaOp::create(b, loc, args[0], args[2], args[1])};
  };
  sums =
      generic(2, -1, {factor, sumOfTile}, sums, {kRow, kRow, kRow}, rescale)[0];
  acc = generic(3, -1, {factor, valuesOfTile}, acc, {kRow, kScore, kScore},
                rescale)[0];
  return {acc, max, sums};
}

namespace {

struct ConvertOnlineAttention : OpRewritePattern<OnlineAttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(OnlineAttentionOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPureTensorSemantics())
      return rewriter.notifyMatchFailure(op, "not on tensors");
    if (isEmptyTensor(op.getKey())) {
      rewriter.replaceOp(op, op.getInits());
      return success();
    }
    rewriter.replaceOp(op, TileLowering(rewriter, op).lower());
    return success();
  }
};

struct ConvertPosencAttentionToLinalgPass
    : mlir::posenc::impl::ConvertPosencAttentionToLinalgPassBase<
          ConvertPosencAttentionToLinalgPass> {
  using Base::Base;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populatePosencAttentionToLinalgPatterns(patterns);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
    // The regions of attention hold no operations on tables.
    RewritePatternSet biases(&getContext());
    populatePosencBiasToArithPatterns(biases);
    walkAndApplyPatterns(getOperation(), std::move(biases));
  }
};

} // namespace

void mlir::posenc::populatePosencAttentionToLinalgPatterns(
    RewritePatternSet &patterns) {
  patterns.add<ConvertOnlineAttention>(patterns.getContext());
}

//===- AttentionToLinalg.cpp - online_attention to linalg -----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One step of online softmax. With s the scores of a row, minus infinity for
// masked keys, running max m, running sum l and accumulator acc:
//
//   m'   = max(m, max_j s_j)
//   p_j  = exp(s_j - m')
//   r    = exp(m - m')
//   acc' = r * acc + sum_j p_j v_j
//   l'   = r * l + sum_j p_j
//
// If m' is minus infinity, p_j uses 0 in its place, and r is 1. All is computed
// in the accumulator type. The sums over j start at zero for each tile, so the
// rounding error grows with the tile size plus the number of tiles, not with
// their product.
//
// The rows of a tile are all its (head, query) pairs. Scores are stored as
// (keys, rows): with rows in the lanes, neither the max nor the sum needs an
// operation across lanes, and the matrix products read keys and values without
// a transpose.
//
//===----------------------------------------------------------------------===//

#include "SincosGeneric.h"
#include "posenc/Conversion/Passes.h"
#include "posenc/Conversion/PosencToLinalg.h"
#include "posenc/IR/Attention.h"
#include "posenc/Numerics/Softmax.h"
#include "posenc/Transforms/AttentionIndices.h"
#include "posenc/Transforms/Loops.h"

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

static bool isBF16(Value tensor) {
  return getElementTypeOrSelf(tensor.getType()).isBF16();
}

/// Lowers one posenc.online_attention.
class TileLowering {
public:
  TileLowering(OpBuilder &builder, OnlineAttentionOp op, bool bf16Weights)
      : builder(builder), loc(op.getLoc()), op(op), sum(op.getSumType()),
        roundsWeights(bf16Weights && isBF16(op.getQuery()) &&
                      isBF16(op.getValue())) {}

  SmallVector<Value> lower();

private:
  using Body = function_ref<SmallVector<Value>(OpBuilder &, ValueRange)>;
  using Loops = ArrayRef<unsigned>;

  void chooseKeys();
  Value createDots();
  Value createScores(Value dots);
  Value applyPositionMask(Value scores);
  Value createWeightedSums(Value weights, bool skipsZeros);
  Value round(Value weights);
  Value addValues(Value weights, Value factor, Value acc);
  /// Whether keys are masked by position: causal, windows or `num_keys`.
  bool hasPositionMask();
  Value createIsPartial();
  Value createIsFinite();

  /// Whether loops over scores are (keys, heads, queries) instead of (keys,
  /// rows), because the head and the query of a row are needed but cannot be
  /// computed from the row.
  bool splitsRows();
  Value splitRows(Value scores);
  Value joinRows(Value scores);
  /// Emits the indices (head, query, key) of a score, relative to the tile.
  SmallVector<Value> createIndices(OpBuilder &b);

  /// Creates a linalg.generic with `numLoops` loops, of which `reduced` are
  /// reductions. `dims` are the loops that index each operand. Returns its
  /// results.
  SmallVector<Value> generic(unsigned numLoops, Loops reduced,
                             ValueRange inputs, ValueRange inits,
                             ArrayRef<Loops> dims, Body body);
  Value scalar(OpBuilder &b, double value) {
    return arith::ConstantOp::create(b, loc, b.getFloatAttr(sum, value));
  }
  Value index(OpBuilder &b, int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
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
  /// Collapses heads x queries (x dim) to rows (x dim).
  Value collapseRows(Value tensor) {
    SmallVector<ReassociationIndices> groups{{0, 1}};
    if (cast<RankedTensorType>(tensor.getType()).getRank() == 3)
      groups.push_back({2});
    return tensor::CollapseShapeOp::create(builder, loc, tensor, groups);
  }
  /// Expands rows (x dim) to the type of `like`, heads x queries (x dim).
  Value expandRows(Value rows, Value like) {
    auto type = cast<RankedTensorType>(like.getType());
    SmallVector<ReassociationIndices> groups{{0, 1}};
    if (type.getRank() == 3)
      groups.push_back({2});
    return tensor::ExpandShapeOp::create(
        builder, loc, type, rows, groups,
        tensor::getMixedSizes(builder, loc, like));
  }

  OpBuilder &builder;
  Location loc;
  OnlineAttentionOp op;
  FloatType sum;
  /// Whether softmax weights are rounded to bf16 before the product with the
  /// values.
  bool roundsWeights;
  /// The slices of the tile's keys that at least one query sees, and the index
  /// of their first key.
  Value key, value, mask, keyIndex;
  OpFoldResult numHeads, numQueries, numRows, numKeys, valueDim;
};

} // namespace

/// The number of keys of a tile is rounded up to a multiple of this, which is
/// the number of rows of a register tile.
static constexpr int64_t kKeyStep = 8;

/// Loops of scores (keys, rows), of a row, and of scores (keys, heads,
/// queries).
static constexpr unsigned kScore[] = {0, 1}, kRow[] = {1};
static constexpr unsigned kSplitScore[] = {0, 1, 2};

SmallVector<Value> TileLowering::generic(unsigned numLoops, Loops reduced,
                                         ValueRange inputs, ValueRange inits,
                                         ArrayRef<Loops> dims, Body body) {
  AffineMap all = builder.getMultiDimIdentityMap(numLoops);
  SmallVector<AffineMap> maps;
  for (Loops loops : dims)
    maps.push_back(all.getSubMap(loops));
  SmallVector<utils::IteratorType> iterators(numLoops,
                                             utils::IteratorType::parallel);
  for (unsigned loop : reduced)
    iterators[loop] = utils::IteratorType::reduction;
  auto generic = linalg::GenericOp::create(
      builder, loc, inits.getTypes(), inputs, inits, maps, iterators,
      [&](OpBuilder &b, Location, ValueRange args) {
        linalg::YieldOp::create(b, loc, body(b, args));
      });
  return SmallVector<Value>(generic.getResults());
}

/// Restricts the tile to the keys that the position masks leave visible for at
/// least one query, in steps of kKeyStep keys.
void TileLowering::chooseKeys() {
  key = op.getKey();
  value = op.getValue();
  mask = op.getMask();
  keyIndex = op.getKeyIndex();
  numKeys = tensor::getMixedSize(builder, loc, key, 0);
  std::optional<int64_t> all = getConstantIntValue(numKeys);
  if (!all || *all % kKeyStep != 0 || !hasPositionMask())
    return;
  PositionMask positions(op);
  Value begin = index(builder, 0), end = index(builder, *all);
  // Converts `position` + `offset` to an index in the tile's keys.
  auto toTile = [&](Value position, int64_t offset) -> Value {
    Value row = arith::SubIOp::create(builder, loc, position, keyIndex);
    return arith::AddIOp::create(builder, loc, row, index(builder, offset));
  };
  Value afterLast = arith::AddIOp::create(
      builder, loc, op.getQueryIndex(),
      getValueOrCreateConstantIndexOp(builder, loc, numQueries));
  auto limit = [&](Value row) {
    end = arith::MinSIOp::create(builder, loc, end, row);
  };
  if (std::optional<int64_t> right = positions.getRight())
    limit(toTile(afterLast, *right));
  if (Value number = op.getNumKeys())
    limit(toTile(number, 0));
  if (std::optional<int64_t> left = positions.getLeft())
    begin = arith::MaxSIOp::create(builder, loc, begin,
                                   toTile(op.getQueryIndex(), -*left));
  AffineExpr d0 = builder.getAffineDimExpr(0);
  auto apply = [&](AffineExpr expr, Value of) {
    return affine::makeComposedFoldedAffineApply(builder, loc, expr, {of});
  };
  auto toValue = [&](OpFoldResult number) {
    return getValueOrCreateConstantIndexOp(builder, loc, number);
  };
  Value firstStep = toValue(apply(d0.floorDiv(kKeyStep), begin));
  Value endStep = toValue(apply(d0.ceilDiv(kKeyStep), end));
  // The affine.min gives the dynamic sizes a constant upper bound.
  Value steps = arith::MaxSIOp::create(
      builder, loc, arith::SubIOp::create(builder, loc, endStep, firstStep),
      index(builder, 0));
  AffineMap bound =
      AffineMap::get(1, 0, {d0, builder.getAffineConstantExpr(*all / kKeyStep)},
                     builder.getContext());
  steps = toValue(
      affine::makeComposedFoldedAffineMin(builder, loc, bound, {steps}));
  OpFoldResult first = builder.getIndexAttr(0);
  if (positions.getLeft()) {
    // Clamps the first key, so that the slice is in bounds even without keys.
    Value last = arith::SubIOp::create(builder, loc,
                                       index(builder, *all / kKeyStep), steps);
    firstStep = arith::MinSIOp::create(builder, loc, firstStep, last);
    first = apply(d0 * kKeyStep, firstStep);
  }
  numKeys = apply(d0 * kKeyStep, steps);
  auto cut = [&](Value tensor, int64_t dim) -> Value {
    SmallVector<OpFoldResult> sizes =
        tensor::getMixedSizes(builder, loc, tensor);
    SmallVector<OpFoldResult> offsets(sizes.size(), builder.getIndexAttr(0));
    SmallVector<OpFoldResult> strides(sizes.size(), builder.getIndexAttr(1));
    offsets[dim] = first;
    sizes[dim] = numKeys;
    return tensor::ExtractSliceOp::create(builder, loc, tensor, offsets, sizes,
                                          strides);
  };
  key = cut(key, 0);
  value = cut(value, 0);
  if (mask && cast<RankedTensorType>(mask.getType()).getDimSize(2) != 1)
    mask = cut(mask, 2);
  keyIndex = arith::AddIOp::create(builder, loc, keyIndex, toValue(first));
}

/// Emits the dot products of keys and queries, without the scale.
Value TileLowering::createDots() {
  // Vectorization may choose the order of partial sums.
  auto fast = arith::FastMathFlags::reassoc | arith::FastMathFlags::contract;
  return generic(
      3, {2}, {key, collapseRows(op.getQuery())}, fill({numKeys, numRows}, 0.0),
      {{0, 2}, {1, 2}, {0, 1}},
      [&](OpBuilder &b, ValueRange args) -> SmallVector<Value> {
        Value product = arith::MulFOp::create(b, loc, widen(b, args[0]),
                                              widen(b, args[1]), fast);
        return {arith::AddFOp::create(b, loc, product, args[2], fast)};
      })[0];
}

bool TileLowering::splitsRows() {
  if (isConstantIntValue(numHeads, 1))
    return false;
  return mask || !getConstantIntValue(numQueries);
}

Value TileLowering::splitRows(Value scores) {
  SmallVector<OpFoldResult> sizes{numKeys, numHeads, numQueries};
  SmallVector<Value> dynamicSizes;
  SmallVector<int64_t> shape;
  dispatchIndexOpFoldResults(sizes, dynamicSizes, shape);
  return tensor::ExpandShapeOp::create(
      builder, loc, RankedTensorType::get(shape, sum), scores,
      ArrayRef<ReassociationIndices>{{0}, {1, 2}}, sizes);
}

Value TileLowering::joinRows(Value scores) {
  return tensor::CollapseShapeOp::create(
      builder, loc, scores, ArrayRef<ReassociationIndices>{{0}, {1, 2}});
}

SmallVector<Value> TileLowering::createIndices(OpBuilder &b) {
  Value key = linalg::IndexOp::create(b, loc, 0);
  if (splitsRows())
    return {linalg::IndexOp::create(b, loc, 1),
            linalg::IndexOp::create(b, loc, 2), key};
  Value row = linalg::IndexOp::create(b, loc, 1);
  if (isConstantIntValue(numHeads, 1))
    return {index(b, 0), row, key};
  int64_t queries = *getConstantIntValue(numQueries);
  auto apply = [&](AffineExpr expr) -> Value {
    return affine::AffineApplyOp::create(b, loc, AffineMap::get(1, 0, expr),
                                         row);
  };
  AffineExpr d0 = b.getAffineDimExpr(0);
  return {apply(d0.floorDiv(queries)), apply(d0 % queries), key};
}

/// Emits the scores after scale, score_mod (`score`), bias and masks. Keys that
/// the mask or mask_mod (`where`) excludes get minus infinity.
Value TileLowering::createScores(Value dots) {
  if (op.getScoreScale() == 1.0 && op.getScore().empty() && !mask &&
      op.getWhere().empty())
    return dots;
  bool isSplit = splitsRows();
  SmallVector<Value> inputs;
  SmallVector<Loops> dims;
  SmallVector<unsigned> maskDims;
  if (mask) {
    // A mask dimension of size 1 is broadcast.
    auto type = cast<RankedTensorType>(mask.getType());
    // The loops of heads, queries and keys.
    unsigned loops[] = {1, isSplit ? 2u : 1u, 0};
    SmallVector<int64_t> shape;
    for (unsigned dim = 0; dim < 3; ++dim)
      if (type.getDimSize(dim) != 1) {
        shape.push_back(type.getDimSize(dim));
        maskDims.push_back(loops[dim]);
      }
    SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, mask);
    inputs.push_back(tensor::ExtractSliceOp::create(
        builder, loc, RankedTensorType::get(shape, type.getElementType()), mask,
        SmallVector<OpFoldResult>(3, builder.getIndexAttr(0)), sizes,
        SmallVector<OpFoldResult>(3, builder.getIndexAttr(1))));
    dims.push_back(maskDims);
  }
  inputs.push_back(isSplit ? splitRows(dots) : dots);
  dims.append(2, isSplit ? Loops(kSplitScore) : Loops(kScore));
  bool isMasked = mask && getElementTypeOrSelf(mask.getType()).isInteger(1);

  auto body = [&](OpBuilder &b, ValueRange args) -> SmallVector<Value> {
    SmallVector<Value> at;
    if (!op.getScore().empty() || !op.getWhere().empty()) {
      SmallVector<Value> own = createIndices(b);
      Value firsts[] = {op.getHeadIndex(), op.getQueryIndex(), keyIndex};
      at.push_back(op.getBatchIndex());
      for (auto [first, number] : llvm::zip_equal(firsts, own))
        at.push_back(arith::AddIOp::create(b, loc, first, number));
      // Evaluates the regions for existing keys only.
      if (Value end = op.getNumKeys()) {
        Value last = arith::SubIOp::create(b, loc, end, index(b, 1));
        at.back() = arith::MinSIOp::create(b, loc, at.back(), last);
      }
    }
    Value score = args.drop_back().back();
    if (double scale = op.getScoreScale(); scale != 1.0)
      score = arith::MulFOp::create(b, loc, score, scalar(b, scale));
    if (!op.getScore().empty()) {
      SmallVector<Value> arguments{score};
      llvm::append_range(arguments, at);
      score = cloneScalarRegion(b, op.getScore(), arguments);
    }
    Value isVisible;
    auto require = [&](Value condition) {
      isVisible =
          isVisible ? Value(arith::AndIOp::create(b, loc, isVisible, condition))
                    : condition;
    };
    if (mask && !isMasked) {
      Value added = widen(b, args[0]);
      score = arith::AddFOp::create(b, loc, score, added);
      // A bias of minus infinity masks the key even if its score is NaN.
      require(arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE, added,
                                    minusInfinity(b)));
    }
    if (!op.getWhere().empty())
      require(cloneScalarRegion(b, op.getWhere(), at));
    if (isMasked)
      require(args[0]);
    if (isVisible)
      score =
          arith::SelectOp::create(b, loc, isVisible, score, minusInfinity(b));
    return {score};
  };
  Value init = empty(tensor::getMixedSizes(builder, loc, inputs.back()));
  Value scores = generic(isSplit ? 3 : 2, {}, inputs, init, dims, body)[0];
  return isSplit ? joinRows(scores) : scores;
}

bool TileLowering::hasPositionMask() {
  return op.getCausal() || op.getWindowLeft() || op.getWindowRight() ||
         op.getNumKeys();
}

/// Emits an i1: whether a position mask excludes any key of the tile for any of
/// its queries. Returns null if none does.
Value TileLowering::createIsPartial() {
  auto getLast = [&](Value first, OpFoldResult count) -> Value {
    Value size = getValueOrCreateConstantIndexOp(builder, loc, count);
    return arith::SubIOp::create(
        builder, loc, arith::AddIOp::create(builder, loc, first, size),
        index(builder, 1));
  };
  Value query = op.getQueryIndex(), lastKey = getLast(keyIndex, numKeys);
  ImplicitLocOpBuilder b(loc, builder);
  Value isPartial = PositionMask(op).emitIsPartial(
      b, {query, getLast(query, numQueries), keyIndex, lastKey});
  if (!op.getNumKeys())
    return isPartial;
  Value isBeyond = arith::CmpIOp::create(
      builder, loc, arith::CmpIPredicate::sge, lastKey, op.getNumKeys());
  return isPartial
             ? Value(arith::OrIOp::create(builder, loc, isPartial, isBeyond))
             : isBeyond;
}

/// Emits the scores, with minus infinity for keys that a position mask
/// excludes. A tile without excluded keys skips the masking at run time.
Value TileLowering::applyPositionMask(Value scores) {
  Value isPartial = hasPositionMask() ? createIsPartial() : Value();
  if (!isPartial)
    return scores;
  auto body = [&](OpBuilder &b, ValueRange args) -> SmallVector<Value> {
    SmallVector<Value> own = createIndices(b);
    Value query = arith::AddIOp::create(b, loc, op.getQueryIndex(), own[1]);
    Value key = arith::AddIOp::create(b, loc, keyIndex, own[2]);
    ImplicitLocOpBuilder nested(loc, b);
    Value isVisible =
        PositionMask(op).emitIsAnyVisible(nested, {query, query, key, key});
    if (op.getNumKeys()) {
      Value exists = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                           key, op.getNumKeys());
      isVisible = isVisible
                      ? Value(arith::AndIOp::create(b, loc, isVisible, exists))
                      : exists;
    }
    return {
        arith::SelectOp::create(b, loc, isVisible, args[0], minusInfinity(b))};
  };
  auto branch = scf::IfOp::create(builder, loc, scores.getType(), isPartial,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  Value masked = splitsRows() ? joinRows(generic(3, {}, {}, splitRows(scores),
                                                 {kSplitScore}, body)[0])
                              : generic(2, {}, {}, scores, {kScore}, body)[0];
  scf::YieldOp::create(builder, loc, masked);
  builder.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(builder, loc, scores);
  return branch.getResult(0);
}

/// Emits an i1: whether all values of the tile are finite, so that their
/// products with a weight of 0 are 0. The check is hoisted out of loops in
/// which the values are invariant.
Value TileLowering::createIsFinite() {
  OpBuilder::InsertionGuard guard(builder);
  setInsertionPointBeforeLoops(builder, op, op.getValue());
  auto addZeros = [&](OpBuilder &b, ValueRange args) -> SmallVector<Value> {
    Value product =
        arith::MulFOp::create(b, loc, widen(b, args[0]), scalar(b, 0.0));
    return {arith::AddFOp::create(b, loc, args[1], product)};
  };
  // Sums the columns first, which vectorizes without operations across lanes.
  Value columns = generic(2, {0}, op.getValue(), fill(valueDim, 0.0),
                          {kScore, kRow}, addZeros)[0];
  Value zeros = generic(1, {0}, columns, fill({}, 0.0), {{0}, {}}, addZeros)[0];
  Value number = tensor::ExtractOp::create(builder, loc, zeros, ValueRange());
  return arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OEQ, number,
                               scalar(builder, 0.0));
}

/// Emits the weighted sums of values. If `skipsZeros`, values with weight 0 are
/// ignored, even infinities and NaNs, as their keys are masked.
Value TileLowering::createWeightedSums(Value weights, bool skipsZeros) {
  return generic(
      3, {1}, {weights, value}, fill({numRows, valueDim}, 0.0),
      {{1, 0}, {1, 2}, {0, 2}},
      [&](OpBuilder &b, ValueRange args) -> SmallVector<Value> {
        Value weight = widen(b, args[0]), weighted = widen(b, args[1]);
        if (!skipsZeros) {
          auto fused = arith::FastMathFlags::contract;
          Value product =
              arith::MulFOp::create(b, loc, weight, weighted, fused);
          return {arith::AddFOp::create(b, loc, product, args[2], fused)};
        }
        Value added = math::FmaOp::create(b, loc, weight, weighted, args[2]);
        Value isZero = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ,
                                             weight, scalar(b, 0.0));
        return {arith::SelectOp::create(b, loc, isZero, args[2], added)};
      })[0];
}

/// Rounds the weights to bf16 if the product with the values uses it.
Value TileLowering::round(Value weights) {
  if (!roundsWeights)
    return weights;
  Type element = getElementTypeOrSelf(value.getType());
  Value init = tensor::EmptyOp::create(
      builder, loc, tensor::getMixedSizes(builder, loc, weights), element);
  return generic(2, {}, weights, init, {kScore, kScore},
                 [&](OpBuilder &b, ValueRange args) -> SmallVector<Value> {
                   return {arith::TruncFOp::create(b, loc, element, args[0])};
                 })[0];
}

/// Emits the new accumulators. A matrix product is many times faster than sums
/// that skip zeros, and equivalent if all values are finite.
Value TileLowering::addValues(Value weights, Value factor, Value acc) {
  auto add = [&](bool skipsZeros) {
    Value tileAcc = createWeightedSums(round(weights), skipsZeros);
    static constexpr unsigned row[] = {0};
    return generic(
        2, {}, {factor, tileAcc}, acc, {row, kScore, kScore},
        [&](OpBuilder &b, ValueRange args) -> SmallVector<Value> {
          return {math::FmaOp::create(b, loc, args[0], args[2], args[1])};
        })[0];
  };
  if (!mask && op.getWhere().empty() && !hasPositionMask())
    return add(/*skipsZeros=*/false);
  auto branch = scf::IfOp::create(builder, loc, acc.getType(), createIsFinite(),
                                  /*withElseRegion=*/true);
  for (bool skipsZeros : {false, true}) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(skipsZeros ? branch.elseBlock()
                                                : branch.thenBlock());
    scf::YieldOp::create(builder, loc, add(skipsZeros));
  }
  return branch.getResult(0);
}

SmallVector<Value> TileLowering::lower() {
  numHeads = tensor::getMixedSize(builder, loc, op.getQuery(), 0);
  numQueries = tensor::getMixedSize(builder, loc, op.getQuery(), 1);
  chooseKeys();
  valueDim = tensor::getMixedSize(builder, loc, op.getValue(), 1);
  SmallVector<Value> states;
  for (Value init : op.getInits())
    states.push_back(collapseRows(init));
  numRows = tensor::getMixedSize(builder, loc, states[1], 0);
  Value scores = applyPositionMask(createScores(createDots()));

  Value tileMax = generic(
      2, {0}, scores, fill(numRows, -std::numeric_limits<double>::infinity()),
      {kScore, kRow}, [&](OpBuilder &b, ValueRange args) -> SmallVector<Value> {
        return {MathSoftmax(b, loc, sum).max(args[0], args[1])};
      })[0];
  static constexpr unsigned row[] = {0};
  SmallVector<Value> rescaled =
      generic(1, {}, tileMax, {empty(numRows), empty(numRows), states[1]},
              {row, row, row, row},
              [&](OpBuilder &b, ValueRange args) -> SmallVector<Value> {
                MathSoftmax softmax(b, loc, sum);
                Value next = softmax.max(args[0], args[3]);
                SoftmaxStep step = emitStep(softmax, args[3], next);
                // The operation keeps the state of a row without a visible
                // key.
                Value factor = softmax.select(step.base.isEmpty,
                                              softmax.number(1), step.factor);
                return {factor, step.base.value, next};
              });
  Value factor = rescaled[0], base = rescaled[1];
  states[1] = rescaled[2];

  Value weights =
      generic(2, {}, base, scores, {kRow, kScore},
              [&](OpBuilder &b, ValueRange args) -> SmallVector<Value> {
                MathSoftmax softmax(b, loc, sum);
                return {emitExp(softmax, args[1], args[0])};
              })[0];
  Value tileSum =
      generic(2, {0}, weights, fill(numRows, 0.0), {kScore, kRow},
              [&](OpBuilder &b, ValueRange args) -> SmallVector<Value> {
                return {arith::AddFOp::create(b, loc, args[0], args[1])};
              })[0];
  states[2] =
      generic(1, {}, {factor, tileSum}, states[2], {row, row, row},
              [&](OpBuilder &b, ValueRange args) -> SmallVector<Value> {
                return {math::FmaOp::create(b, loc, args[0], args[2], args[1])};
              })[0];
  states[0] = addValues(weights, factor, states[0]);
  for (auto [state, init] : llvm::zip_equal(states, op.getInits()))
    state = expandRows(state, init);
  return states;
}

namespace {

struct ConvertOnlineAttention : OpRewritePattern<OnlineAttentionOp> {
  ConvertOnlineAttention(MLIRContext *context, bool bf16Weights)
      : OpRewritePattern(context), bf16Weights(bf16Weights) {}

  LogicalResult matchAndRewrite(OnlineAttentionOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPureTensorSemantics())
      return rewriter.notifyMatchFailure(op, "not on tensors");
    if (isEmptyTensor(op.getKey())) {
      rewriter.replaceOp(op, op.getInits());
      return success();
    }
    rewriter.replaceOp(op, TileLowering(rewriter, op, bf16Weights).lower());
    return success();
  }

  bool bf16Weights;
};

/// Implements the decomposition interface with the same lowering.
struct DecomposeOnlineAttention
    : linalg::AggregatedOpInterface::ExternalModel<DecomposeOnlineAttention,
                                                   OnlineAttentionOp> {
  FailureOr<SmallVector<Value>> decomposeOperation(Operation *op,
                                                   OpBuilder &builder) const {
    auto tile = cast<OnlineAttentionOp>(op);
    if (!tile.hasPureTensorSemantics())
      return failure();
    if (isEmptyTensor(tile.getKey()))
      return SmallVector<Value>(tile.getInits());
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(op);
    return TileLowering(builder, tile, /*bf16Weights=*/false).lower();
  }
};

struct ConvertPosencAttentionToLinalgPass
    : mlir::posenc::impl::ConvertPosencAttentionToLinalgPassBase<
          ConvertPosencAttentionToLinalgPass> {
  using Base::Base;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populatePosencAttentionToLinalgPatterns(patterns, bf16Weights);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
    // The bias operations were inside regions, which must not contain table
    // lookups, so they are converted after the regions are inlined.
    RewritePatternSet biases(&getContext());
    populatePosencBiasToArithPatterns(biases);
    walkAndApplyPatterns(getOperation(), std::move(biases));
  }
};

} // namespace

void mlir::posenc::registerAttentionDecomposition(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, PosencDialect *) {
    OnlineAttentionOp::attachInterface<DecomposeOnlineAttention>(*context);
  });
}

void mlir::posenc::populatePosencAttentionToLinalgPatterns(
    RewritePatternSet &patterns, bool bf16Weights) {
  patterns.add<ConvertOnlineAttention>(patterns.getContext(), bf16Weights);
}

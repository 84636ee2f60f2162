//===- AttentionScores.cpp - scores and softmax of GPU attention ----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionKernel.h"

#include "posenc/IR/CreateIndex.h"
#include "posenc/Numerics/Alibi.h"
#include "posenc/Transforms/AttentionIndices.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

#include <limits>

using namespace mlir;
using namespace mlir::posenc;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Windows that are wider than clamped relative positions exclude nothing.
static constexpr uint64_t kMaxWindow = 1 << 19;

std::optional<int64_t> AttentionKernel::getRightWindow() {
  return PositionMask(op, kMaxWindow).getRight();
}

std::optional<int64_t> AttentionKernel::getLeftWindow() {
  return PositionMask(op, kMaxWindow).getLeft();
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

AttentionKernel::Tile AttentionKernel::findTile(Value stage) {
  Tile tile;
  tile.firstKey = reader.get(op.getKeyIndex());
  tile.relative =
      b.toClampedI32(b.sub(reader.get(op.getQueryIndex()), tile.firstKey));
  if (op.getNumKeys())
    tile.limit =
        b.toClampedI32(b.sub(reader.get(op.getNumKeys()), tile.firstKey));
  tile.keys =
      b.add(b.mul(stage, tiles.getKeyBytes(sizes)), tiles.getQueryBytes(sizes));
  tile.values = b.add(b.mul(stage, tiles.getValueBytes(sizes)),
                      tiles.getQueryBytes(sizes) +
                          tiles.getNumStages() * tiles.getKeyBytes(sizes));
  if (scf::IfOp branch = nest.isFull) {
    tile.isFull = isFullTile ? isFullTile : reader.get(branch.getCondition());
    // Sizes that a mask's padding depends on.
    reader.cloneScalars(*op->getBlock());
  }
  return tile;
}

AttentionKernel::QueryRange AttentionKernel::getQueryRange() {
  int64_t warpRows = tiles.getRowsPerWarp();
  if (queriesPerHead % warpRows != 0)
    return {b.i32(0), b.i32(queriesPerHead - 1)};
  Value first = b.rem(warpRow, queriesPerHead);
  return {first, b.add(first, warpRows - 1)};
}

/// Emits an i1: whether position masks leave any pair of the warp's rows; null
/// if they always do.
Value AttentionKernel::isVisible(const Tile &tile) {
  auto [first, last] = getQueryRange();
  Value visible;
  if (std::optional<int64_t> right = getRightWindow())
    visible =
        b.both(visible,
               b.compare(arith::CmpIPredicate::sge,
                         b.add(b.add(tile.relative, last), *right), b.i32(0)));
  if (std::optional<int64_t> left = getLeftWindow())
    visible =
        b.both(visible, b.compare(arith::CmpIPredicate::sle,
                                  b.add(b.add(tile.relative, first), -*left),
                                  b.i32(tiles.keys - 1)));
  return visible;
}

/// Emits an i1: whether position masks exclude any pair of a tile with some
/// queries; null if they never do.
Value AttentionKernel::isPartial(const Tile &tile, const QueryRange &queries) {
  auto [first, last] = queries;
  Value partial;
  auto add = [&](Value condition) {
    partial =
        partial ? b.createOrFold<arith::OrIOp>(partial, condition) : condition;
  };
  if (tile.limit)
    add(b.compare(arith::CmpIPredicate::slt, tile.limit, b.i32(tiles.keys)));
  if (std::optional<int64_t> right = getRightWindow())
    add(b.compare(arith::CmpIPredicate::slt,
                  b.add(b.add(tile.relative, first), *right),
                  b.i32(tiles.keys - 1)));
  if (std::optional<int64_t> left = getLeftWindow())
    add(b.compare(arith::CmpIPredicate::sgt,
                  b.add(b.add(tile.relative, last), -*left), b.i32(0)));
  return partial;
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

/// Replaces the scores of pairs that are not kept by minus infinity.
void AttentionKernel::selectScores(
    MutableArrayRef<Value> scores,
    function_ref<Value(int64_t row, int64_t column)> isKept) {
  Value masked = b.real(sum, -kInfinity);
  for (int64_t row = 0; row < getNumRows(); ++row)
    for (int64_t column = 0; column < getNumColumns(); ++column) {
      Value &score = scores[getIndex(row, column, getNumColumns())];
      score = b.select(isKept(row, column), score, masked);
    }
}

void AttentionKernel::maskByPositions(const Tile &tile,
                                      MutableArrayRef<Value> scores) {
  // Bounds of the visible keys, relative to the thread's first column.
  Value columnStart = b.mul(laneColumn, 2);
  ElementwiseBuilder integers(b, b.getLoc(), b.getI32Type());
  SmallVector<VisibleKeys> visible;
  for (const Row &row : rows) {
    Value position = b.sub(b.add(tile.relative, row.query), columnStart);
    visible.push_back(
        PositionMask(op, kMaxWindow)
            .emitVisibleKeys(
                integers,
                [&](int64_t offset) { return b.add(position, offset); },
                tile.limit ? b.sub(tile.limit, columnStart) : Value()));
  }
  selectScores(scores, [&](int64_t row, int64_t column) {
    return emitIsVisible(integers, b.i32(getColumnKey(column)), visible[row]);
  });
}

/// Returns the index of a key, or of the last one if there are fewer.
Value AttentionKernel::getKey(const Tile &tile, int64_t column,
                              bool isClamped) {
  Value key = b.add(b.mul(laneColumn, 2), getColumnKey(column));
  if (isClamped && tile.limit)
    key = b.createOrFold<arith::MinSIOp>(key, b.add(tile.limit, -1));
  return b.toIndex(key);
}

/// Returns the element of the mask operand for a pair; for pairs that do not
/// exist, that of another pair.
Value AttentionKernel::getMaskValue(const Tile &tile, int64_t row,
                                    int64_t column) {
  Value mask = op.getMask();
  SmallVector<Value> at{b.toIndex(rows[row].head), b.toIndex(rows[row].query),
                        getKey(tile, column, /*isClamped=*/false)};
  for (auto [index, size] :
       llvm::zip_equal(at, cast<ShapedType>(mask.getType()).getShape()))
    if (size == 1)
      index = createIndex(b, b.getLoc(), 0);
  if (rows[row].exists)
    at[0] = b.createOrFold<arith::MinSIOp>(
        at[0], createIndex(b, b.getLoc(), numRows / queriesPerHead - 1));
  Value element = reader.readClamped(mask, at, 1).vectors.front();
  return vector::ExtractOp::create(b, element, 0);
}

/// Emits the factors of an ALiBi bias, `-slope` and `|query - key|`. Positions
/// of tokens are subtracted in i32; those of a tile are converted once for all
/// keys of a row, which is exact up to 2^24.
std::pair<Value, Value> AttentionKernel::emitAlibi(AlibiOp op, const Tile &tile,
                                                   int64_t row,
                                                   int64_t column) {
  Value head = reader.get(op.getHead());
  Block &block = *op->getBlock();
  auto isArgument = [&](Value value) {
    return llvm::is_contained(block.getArguments(), value);
  };
  Type type = op.getType();
  Value slopes = emitAlibiSlopes(b, kernel.getFunction(), op);
  Value slope = b.convert(memref::LoadOp::create(b, slopes, head), type);
  Value query = reader.get(op.getQuery()), position = op.getQuery(), distance;
  // Queries may be clamped to the last one.
  if (auto clamped = position.getDefiningOp<arith::MinSIOp>())
    position = clamped.getLhs();
  if (isArgument(position) && isArgument(op.getKey())) {
    Value first = b.add(b.toI32(tile.firstKey), b.mul(laneColumn, 2));
    Value relative =
        arith::SIToFPOp::create(b, type, b.sub(b.toI32(query), first));
    Value key = b.real(type, getColumnKey(column));
    distance = math::AbsFOp::create(b, b.subf(relative, key));
  } else {
    Value difference = b.createOrFold<arith::IndexCastOp>(
        b.getI64Type(), b.sub(query, reader.get(op.getKey())));
    ElementwiseBuilder elements(b, b.getLoc(), difference);
    distance = emitAlibiDistance(elements, type, difference);
  }
  return {arith::NegFOp::create(b, slope), distance};
}

/// Returns the ALiBi bias that an operation adds to `other`; null if it adds
/// none.
static AlibiOp findAddedAlibi(Operation *op, Value &other) {
  if (!isa<arith::AddFOp>(op))
    return nullptr;
  for (unsigned i : {0, 1})
    if (auto alibi = op->getOperand(i).getDefiningOp<AlibiOp>()) {
      other = op->getOperand(1 - i);
      return alibi;
    }
  return nullptr;
}

/// Emits a region for one pair; `score` is null for `where`.
Value AttentionKernel::emitRegion(Region &region, const Tile &tile, Value score,
                                  int64_t row, int64_t column) {
  Value result;
  reader.withScope([&] {
    Block &block = region.front();
    Value head =
        b.add(reader.get(op.getHeadIndex()), b.toIndex(rows[row].head));
    // Rows without a query have the last head.
    if (rows[row].exists)
      head = b.createOrFold<arith::MinSIOp>(
          head,
          b.add(reader.get(op.getHeadIndex()), numRows / queriesPerHead - 1));
    SmallVector<Value> arguments{
        reader.get(op.getBatchIndex()), head,
        b.add(reader.get(op.getQueryIndex()), b.toIndex(rows[row].query)),
        b.add(tile.firstKey, getKey(tile, column, /*isClamped=*/true))};
    if (score)
      arguments.insert(arguments.begin(), score);
    reader.getScalars().map(block.getArguments(), arguments);
    for (Operation &inner : block.without_terminator()) {
      Value other;
      if (auto alibi = dyn_cast<AlibiOp>(inner)) {
        auto [slope, distance] = emitAlibi(alibi, tile, row, column);
        reader.getScalars().map(alibi.getResult(), b.mulf(slope, distance));
      } else if (AlibiOp alibi = findAddedAlibi(&inner, other)) {
        auto [slope, distance] = emitAlibi(alibi, tile, row, column);
        if (score && !hasOwnScores())
          slope = b.mulf(slope, b.real(sum, 1.0 / getScoreUnit()));
        reader.getScalars().map(inner.getResult(0),
                                b.fma(slope, distance, reader.get(other)));
      } else {
        reader.cloneScalar(inner);
      }
    }
    result = reader.get(block.getTerminator()->getOperand(0));
  });
  return result;
}

void AttentionKernel::maskByRegion(const Tile &tile,
                                   MutableArrayRef<Value> scores) {
  selectScores(scores, [&](int64_t row, int64_t column) {
    return emitRegion(op.getWhere(), tile, {}, row, column);
  });
}

/// Scales the scores to their unit, and applies the region and the mask
/// operand.
void AttentionKernel::changeScores(const Tile &tile,
                                   MutableArrayRef<Value> scores) {
  Value mask = op.getMask();
  bool hasBooleans = mask && getElementTypeOrSelf(mask.getType()).isInteger(1);
  Value scale = b.real(sum, op.getScoreScale() / getScoreUnit());
  Value infinity = b.real(sum, -kInfinity);
  for (int64_t row = 0; row < getNumRows(); ++row)
    for (int64_t column = 0; column < getNumColumns(); ++column) {
      Value &score = scores[getIndex(row, column, getNumColumns())];
      if (!scalesQueries)
        score = b.mulf(score, scale);
      if (!op.getScore().empty())
        score = emitRegion(op.getScore(), tile, score, row, column);
      if (!mask)
        continue;
      Value bias = getMaskValue(tile, row, column);
      if (hasBooleans) {
        score = b.select(bias, score, infinity);
        continue;
      }
      bias = b.convert(bias, sum);
      // A bias of minus infinity masks the key, even if its score is NaN.
      Value isMasked =
          arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, bias, infinity);
      score = b.select(isMasked, infinity, b.addf(score, bias));
    }
}

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

/// Emits the maximum of a row's scores in the warp.
Value AttentionKernel::findMaximum(ArrayRef<Value> scores, int64_t row) {
  int64_t columns = getNumColumns();
  Value maximum = scores[getIndex(row, 0, columns)];
  for (int64_t column = 1; column < columns; ++column)
    maximum = b.max(maximum, scores[getIndex(row, column, columns)]);
  for (int64_t mask : {1, 2})
    maximum = b.max(maximum, b.shuffleXor(maximum, mask));
  return maximum;
}

/// Emits the weights of the scores relative to the new maxima; updates maxima
/// and sums. If `isLazy`, maxima are raised by `emitLazyMax`.
AttentionKernel::Weights
AttentionKernel::addSoftmax(ArrayRef<Value> scores, bool isLazy, State &state) {
  Weights weights{SmallVector<Value>(scores), {}};
  ThreadSoftmax softmax = getSoftmax();
  int64_t columns = getNumColumns();
  SmallVector<Value> shared = findSharedMaxima(scores);
  for (int64_t row = 0; row < getNumRows(); ++row) {
    auto at = [&](int64_t column) { return getIndex(row, column, columns); };
    Value before = state.maxima[row];
    Value maximum = shared.empty() ? findMaximum(scores, row) : shared[row];
    maximum = softmax.max(maximum, before);
    if (isLazy)
      maximum = emitLazyMax(softmax, before, maximum);
    SoftmaxStep step = emitStep(softmax, before, maximum);
    Value total = b.mulf(state.sums[row], step.factor);
    for (int64_t column = 0; column < columns; ++column) {
      Value weight = emitExp(softmax, scores[at(column)], step.base.value);
      weights.values[at(column)] = weight;
      total = b.addf(total, weight);
    }
    state.maxima[row] = maximum;
    state.sums[row] = total;
    weights.factors.push_back(step.factor);
  }
  return weights;
}

void AttentionKernel::scaleAccumulators(ArrayRef<Value> factors, State &state) {
  int64_t channels = getNumChannels();
  for (int64_t row = 0; row < getNumRows(); ++row)
    for (int64_t channel = 0; channel < channels; ++channel) {
      Value &x = state.accumulators[getIndex(row, channel, channels)];
      x = b.mulf(x, factors[row]);
    }
}

/// Emits the scores from the products of queries and keys. `isMasked` becomes
/// an i1: whether the tile has masked keys; null if none has.
SmallVector<Value> AttentionKernel::emitScores(const Tile &tile,
                                               SmallVector<Value> scores,
                                               Value &isMasked) {
  changeScores(tile, scores);
  auto maskIf = [&](Value condition,
                    function_ref<void(MutableArrayRef<Value>)> mask) {
    SmallVector<Value> before(scores);
    scores = b.emitIf(
        condition, ValueRange(before).getTypes(),
        [&] {
          SmallVector<Value> masked(before);
          mask(masked);
          return masked;
        },
        [&] { return before; });
  };
  isMasked = isPartial(tile, getQueryRange());
  if (isMasked)
    maskIf(isMasked, [&](MutableArrayRef<Value> masked) {
      maskByPositions(tile, masked);
    });
  Value yes = arith::ConstantIntOp::create(b, 1, 1);
  if (!op.getWhere().empty()) {
    auto mask = [&](MutableArrayRef<Value> masked) {
      maskByRegion(tile, masked);
    };
    Value applies = yes;
    if (tile.isFull) {
      applies = arith::XOrIOp::create(b, tile.isFull, yes);
      maskIf(applies, mask);
    } else {
      mask(scores);
    }
    isMasked = isMasked ? arith::OrIOp::create(b, isMasked, applies) : applies;
  }
  if (op.getMask())
    isMasked = yes;
  return scores;
}

AttentionKernel::State AttentionKernel::addVisible(const Tile &tile,
                                                   State state) {
  Value isMasked;
  SmallVector<Value> scores = emitScores(tile, multiplyKeys(tile), isMasked);
  Weights weights = addSoftmax(scores, /*isLazy=*/false, state);
  scaleAccumulators(weights.factors, state);
  addValues(tile, weights.values, isMasked, state);
  return state;
}

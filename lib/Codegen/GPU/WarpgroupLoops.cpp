//===- WarpgroupLoops.cpp - loops over keys of kernels for sm_90a ---------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WarpgroupAttention.h"

#include "posenc/IR/CreateIndex.h"

using namespace mlir;
using namespace mlir::posenc;

/// Waits for a tile of keys, and multiplies it with the queries.
SmallVector<Value> WarpgroupAttention::finishQueries(const Stage &stage) {
  w.waitFor(getBarrier(kKeysArrived, stage.number), stage.phase);
  w.beginProducts();
  SmallVector<Value> scores = multiplyQueries(stage);
  w.waitForProducts(0);
  w.arrive(getBarrier(kKeysRead, stage.number), isLeader);
  return w.tie(scores);
}

/// Waits for a tile of values, and adds its products with the weights.
void WarpgroupAttention::finishWeights(const Stage &stage, ValueRange weights,
                                       State &state) {
  w.waitFor(getBarrier(kValuesArrived, stage.number), stage.phase);
  SmallVector<Value> tied = w.tie(weights);
  SmallVector<Value> sums = w.tie(state.accumulators);
  w.beginProducts();
  sums = multiplyWeights(stage, tied, sums);
  w.waitForProducts(0);
  state.accumulators = w.tie(sums);
}

/// Emits the weights of the scores of the tile at `key`, which has no masked
/// keys.
AttentionKernel::Weights
WarpgroupAttention::weighUnmasked(Value key, const Stage &stage,
                                  SmallVector<Value> scores, State &state) {
  Weights weights;
  reader.withScope([&] {
    takeTile(key);
    changeScores(findTile(stage.number), scores);
    weights = addSoftmax(scores, /*isLazy=*/true, state);
  });
  return weights;
}

/// Emits the loop over tiles without masked keys. The products of a tile's
/// weights and values are under way while the weights of the next tile are
/// computed; the first tile is peeled off.
WarpgroupAttention::Progress
WarpgroupAttention::emitUnmasked(Value begin, Value end, Progress progress) {
  Value step = createIndex(b, b.getLoc(), groups.keys);
  SmallVector<Value> before = packProgress(progress);
  size_t numParts = before.size();
  auto emitAll = [&]() -> SmallVector<Value> {
    Stage first = progress.stage;
    State state = progress.state;
    SmallVector<Value> carried = packAll(
        weighUnmasked(begin, first, finishQueries(first), state).values);
    Stage second = getNext(first);
    SmallVector<Value> parts = packProgress({state, second});
    carried.insert(carried.begin(), parts.begin(), parts.end());
    llvm::append_values(carried, first.number, first.phase);
    size_t numWeights = carried.size() - numParts - 2;
    SmallVector<Value> results = b.emitLoop(
        b.add(begin, step), end, step, carried,
        [&](Value key, ValueRange arguments) {
          Progress current = unpackProgress(arguments.take_front(numParts));
          Stage last{arguments[numParts + numWeights],
                     arguments[numParts + numWeights + 1]};
          SmallVector<Value> weights = addUnmasked(
              key, current, arguments.slice(numParts, numWeights), last);
          Stage now = current.stage;
          current.stage = getNext(now);
          SmallVector<Value> next = packProgress(current);
          llvm::append_range(next, weights);
          llvm::append_values(next, now.number, now.phase);
          return next;
        });
    ValueRange all(results);
    Progress last = unpackProgress(all.take_front(numParts));
    Stage stage{all[numParts + numWeights], all[numParts + numWeights + 1]};
    finishWeights(stage, all.slice(numParts, numWeights), last.state);
    w.arrive(getBarrier(kValuesRead, stage.number), isLeader);
    return packProgress(last);
  };
  Value hasTiles = b.compare(arith::CmpIPredicate::slt, begin, end);
  return unpackProgress(b.emitIf(hasTiles, ValueRange(before).getTypes(),
                                 emitAll, [&] { return before; }));
}

/// Emits one iteration: starts the products of the tile at `key`, then those of
/// the weights of the tile before, which is in stage `last`. Returns the tile's
/// weights.
SmallVector<Value> WarpgroupAttention::addUnmasked(Value key,
                                                   Progress &progress,
                                                   ValueRange weights,
                                                   const Stage &last) {
  const Stage &stage = progress.stage;
  State &state = progress.state;
  w.waitFor(getBarrier(kKeysArrived, stage.number), stage.phase);
  SmallVector<Value> tied = w.tie(weights);
  SmallVector<Value> sums = w.tie(state.accumulators);
  w.beginProducts();
  SmallVector<Value> scores = multiplyQueries(stage);
  w.waitFor(getBarrier(kValuesArrived, last.number), last.phase);
  w.beginProducts();
  sums = multiplyWeights(last, tied, sums);
  w.waitForProducts(1);
  w.arrive(getBarrier(kKeysRead, stage.number), isLeader);
  Weights next = weighUnmasked(key, stage, w.tie(scores), state);
  w.waitForProducts(0);
  state.accumulators = w.tie(sums);
  w.arrive(getBarrier(kValuesRead, last.number), isLeader);
  scaleIfNeeded(next.factors, state);
  return packAll(w.tie(next.values));
}

/// Emits the loop over tiles that may have masked keys, one after the other.
WarpgroupAttention::Progress
WarpgroupAttention::emitMasked(Value begin, Value end, Progress progress) {
  return unpackProgress(
      b.emitLoop(begin, end, createIndex(b, b.getLoc(), groups.keys),
                 packProgress(progress), [&](Value key, ValueRange arguments) {
                   Progress current = unpackProgress(arguments);
                   addMasked(key, current);
                   current.stage = getNext(current.stage);
                   return packProgress(current);
                 }));
}

void WarpgroupAttention::addMasked(Value key, Progress &progress) {
  const Stage &stage = progress.stage;
  State &state = progress.state;
  SmallVector<Value> scores = finishQueries(stage), weights;
  Value isMasked;
  reader.withScope([&] {
    takeTile(key);
    scores = emitScores(findTile(stage.number), scores, isMasked);
    Weights all = addSoftmax(scores, /*isLazy=*/true, state);
    scaleIfNeeded(all.factors, state);
    weights = packAll(all.values);
  });
  // Each warp reads all values, so that all decide alike. The weight of a
  // masked key is 0, but 0 times infinity is NaN.
  w.waitFor(getBarrier(kValuesArrived, stage.number), stage.phase);
  Tile tile;
  tile.values = getValues(stage.number);
  Value no = arith::ConstantIntOp::create(b, 0, 1);
  Value hasSpecials = b.emitIf(
      isMasked ? isMasked : no, Type(b.getI1Type()),
      [&]() -> SmallVector<Value> { return {hasSpecialValues(tile)}; },
      [&]() -> SmallVector<Value> { return {no}; })[0];
  auto getWeights = [&](int64_t at) -> SmallVector<SmallVector<Value>> {
    return {SmallVector<Value>(ValueRange(weights).slice(at / 4, 4))};
  };
  state.accumulators = b.emitIf(
      hasSpecials, ValueRange(state.accumulators).getTypes(),
      [&] { return addSpecialValues(tile, getWeights, state.accumulators); },
      [&] {
        State next = state;
        finishWeights(stage, weights, next);
        return next.accumulators;
      });
  w.arrive(getBarrier(kValuesRead, stage.number), isLeader);
}

SmallVector<Value>
WarpgroupAttention::packProgress(const Progress &progress) const {
  SmallVector<Value> all = pack(progress.state);
  llvm::append_values(all, progress.stage.number, progress.stage.phase);
  return all;
}

WarpgroupAttention::Progress
WarpgroupAttention::unpackProgress(ValueRange all) const {
  return {unpack(all.drop_back(2)), {all[all.size() - 2], all.back()}};
}

/// Emits the loops over tiles of keys: those from the first tile on that have
/// keys before a window, those without masked keys, and the others up to the
/// last.
AttentionKernel::State WarpgroupAttention::emitTilesOfKeys() {
  scf::ForOp loop = nest.keys;
  Value begin = reader.get(loop.getLowerBound()),
        end = reader.get(loop.getUpperBound());
  Progress progress{createState(), {b.i32(0), b.i32(0)}};
  if (!op.getWhere().empty() || op.getMask())
    return emitMasked(begin, end, progress).state;
  if (!op.getNumKeys() && !getLeftWindow() && !getRightWindow())
    return emitUnmasked(begin, end, progress).state;
  auto [first, last] = findUnmasked(begin, end);
  if (getLeftWindow())
    progress = emitMasked(begin, first, progress);
  progress = emitUnmasked(first, last, progress);
  return emitMasked(last, end, progress).state;
}

/// Returns the range of keys, multiples of a tile, in which positions mask no
/// key for any query of the block.
std::pair<Value, Value> WarpgroupAttention::findUnmasked(Value begin,
                                                         Value end) {
  Value step = createIndex(b, b.getLoc(), groups.keys);
  auto roundDown = [&](Value key) {
    return b.createOrFold<arith::SubIOp>(
        key, b.createOrFold<arith::RemUIOp>(key, step));
  };
  Value query = reader.get(op.getQueryIndex());
  Value first = begin, last = end;
  if (std::optional<int64_t> left = getLeftWindow()) {
    // The last query sees keys from its position minus the window on.
    Value key = b.add(query, queriesPerHead - 1 - *left);
    key = b.createOrFold<arith::MaxSIOp>(key, begin);
    first = roundDown(b.add(key, groups.keys - 1));
    first = b.createOrFold<arith::MinSIOp>(first, end);
  }
  if (std::optional<int64_t> right = getRightWindow()) {
    Value key = b.add(query, *right + 1);
    last = b.createOrFold<arith::MinSIOp>(last, key);
  }
  last = b.createOrFold<arith::MaxSIOp>(last, first);
  // Counts from the first tile, which is at a multiple of the tile, or at the
  // end.
  return {first, b.add(first, roundDown(b.sub(last, first)))};
}

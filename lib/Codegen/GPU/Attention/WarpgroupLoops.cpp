//===- WarpgroupLoops.cpp - loops over keys of kernels for sm_90a ---------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WarpgroupAttention.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::posenc;

//===----------------------------------------------------------------------===//
// State
//===----------------------------------------------------------------------===//

SmallVector<Value>
WarpgroupAttention::packProgress(const Progress &progress) const {
  SmallVector<Value> all = pack(progress.state);
  llvm::append_values(all, progress.stage.number, progress.stage.phase);
  if (hasHeaders())
    all.push_back(progress.header);
  return all;
}

WarpgroupAttention::Progress
WarpgroupAttention::unpackProgress(ValueRange all) const {
  Progress progress;
  if (hasHeaders()) {
    progress.header = all.back();
    all = all.drop_back();
  }
  progress.stage = {all[all.size() - 2], all.back()};
  progress.state = unpack(all.drop_back(2));
  return progress;
}

SmallVector<Value>
WarpgroupAttention::packPending(const Pending &pending) const {
  SmallVector<Value> all(pending.weights);
  llvm::append_values(all, pending.last.number, pending.last.phase);
  llvm::append_range(all, packProgress(pending.progress));
  return all;
}

WarpgroupAttention::Pending
WarpgroupAttention::unpackPending(ValueRange all) const {
  // A word has the weights of two keys of a row.
  size_t numWeights = groups.keys / 4;
  return {unpackProgress(all.drop_front(numWeights + 2)),
          SmallVector<Value>(all.take_front(numWeights)),
          {all[numWeights], all[numWeights + 1]}};
}

/// Goes on to the next stage, after the last use of this one.
void WarpgroupAttention::moveToNext(Progress &progress) {
  progress.stage = getNext(progress.stage);
  if (hasHeaders())
    progress.header = readHeader(progress.stage);
}

/// Emits the stage of the tile at `key`, if all tiles from `begin` on have one,
/// beginning with `firstStage`. It equals that of the loop over the tiles
/// before, of which the assembler does not know that it is the same for all
/// lanes.
WarpgroupAttention::Stage
WarpgroupAttention::findStage(const Stage &firstStage, Value begin, Value key) {
  Value count = b.div(b.sub(key, begin), groups.keys);
  return getStage(b.add(getNumber(firstStage), count));
}

/// Waits for a tile of keys, unless its header has been read.
void WarpgroupAttention::waitForKeys(const Stage &stage) {
  if (!hasHeaders())
    w.waitFor(getBarrier(kKeysArrived, stage.number), stage.phase);
}

void WarpgroupAttention::releaseKeys(const Stage &stage) {
  // All lanes have read the header.
  if (hasHeaders())
    NVVM::SyncWarpOp::create(b, b.i32(-1));
  if (!groups.sharesValues)
    w.arrive(getBarrier(kKeysRead, stage.number), isLeader);
}

//===----------------------------------------------------------------------===//
// Tiles without masked pairs
//===----------------------------------------------------------------------===//

/// Waits for a tile of keys, and multiplies it with the queries.
SmallVector<Value> WarpgroupAttention::finishQueries(const Stage &stage) {
  waitForKeys(stage);
  w.beginProducts();
  SmallVector<Value> scores = multiplyQueries(stage);
  w.waitForProducts(0);
  releaseKeys(stage);
  return w.tie(scores);
}

/// Waits for a tile of values, unless they are in the keys, for which the
/// scores have waited.
void WarpgroupAttention::waitForValues(const Stage &stage) {
  if (!groups.sharesValues)
    w.waitFor(getBarrier(kValuesArrived, stage.number), stage.phase);
}

/// Waits for a tile of values, and adds its products with the weights.
void WarpgroupAttention::finishWeights(const Stage &stage, ValueRange weights,
                                       State &state) {
  waitForValues(stage);
  SmallVector<Value> tied = w.tie(weights);
  SmallVector<Value> sums = w.tie(state.accumulators);
  w.beginProducts();
  sums = multiplyWeights(stage, tied, sums);
  w.waitForProducts(0);
  state.accumulators = w.tie(sums);
}

/// Emits the weights of the scores of the tile at `key`, which has no masked
/// pairs.
AttentionKernel::Weights
WarpgroupAttention::weighUnmasked(Value key, const Stage &stage,
                                  SmallVector<Value> scores, State &state) {
  Weights weights;
  reader.withScope([&] {
    takeTile(key);
    Tile tile = findTile(stage.number);
    // All keys exist.
    tile.limit = nullptr;
    withOwnKeys([&] {
      changeScores(getOwnKeys(tile), scores);
      weights = addSoftmax(scores, /*isLazy=*/true, state);
    });
  });
  return weights;
}

/// Emits the weights of the first of some tiles without masked pairs. `isFirst`
/// tells that there are no tiles before, so that accumulators are zeros.
WarpgroupAttention::Pending
WarpgroupAttention::startUnmasked(Value key, bool isFirst, Progress progress) {
  Stage stage = progress.stage;
  Weights weights =
      weighUnmasked(key, stage, finishQueries(stage), progress.state);
  if (!isFirst)
    scaleIfNeeded(weights.factors, progress.state);
  SmallVector<Value> words = packAll(weights.values);
  if (groups.sharesValues) {
    shareWeights(words);
    words = loadSharedWeights();
  }
  moveToNext(progress);
  return {progress, words, stage};
}

/// Emits one iteration: starts the products of the tile at `key`, then those of
/// the weights of the tile before. Their products are under way while the
/// weights of this tile are computed.
void WarpgroupAttention::addUnmasked(Value key, Pending &pending) {
  Stage stage = pending.progress.stage, last = pending.last;
  State &state = pending.progress.state;
  waitForKeys(stage);
  SmallVector<Value> tied = w.tie(pending.weights);
  SmallVector<Value> sums = w.tie(state.accumulators);
  w.beginProducts();
  SmallVector<Value> scores = multiplyQueries(stage);
  w.waitFor(getBarrier(kValuesArrived, last.number), last.phase);
  w.beginProducts();
  sums = multiplyWeights(last, tied, sums);
  w.waitForProducts(1);
  releaseKeys(stage);
  Weights next = weighUnmasked(key, stage, w.tie(scores), state);
  w.waitForProducts(0);
  state.accumulators = w.tie(sums);
  w.arrive(getBarrier(kValuesRead, last.number), isLeader);
  moveToNext(pending.progress);
  scaleIfNeeded(next.factors, state);
  pending.weights = packAll(w.tie(next.values));
  pending.last = stage;
}

/// Emits one iteration without products under way after it.
WarpgroupAttention::Progress
WarpgroupAttention::addWhole(Value key, const Progress &progress) {
  return finishUnmasked(startUnmasked(key, /*isFirst=*/false, progress));
}

/// Adds the values of the last tile.
WarpgroupAttention::Progress
WarpgroupAttention::finishUnmasked(Pending pending) {
  finishWeights(pending.last, pending.weights, pending.progress.state);
  w.arrive(getBarrier(kValuesRead, pending.last.number), isLeader);
  return pending.progress;
}

/// Emits the loop over the tiles of a range, which have no masked pairs; the
/// first tile is peeled off.
WarpgroupAttention::Progress
WarpgroupAttention::emitUnmasked(Value begin, Value end,
                                 const Progress &progress) {
  SmallVector<Value> before = packProgress(progress);
  Value step = b.i32(groups.keys);
  if (groups.sharesValues)
    return unpackProgress(b.emitLoop(
        begin, end, step, before, [&](Value key, ValueRange arguments) {
          return packProgress(addWhole(key, unpackProgress(arguments)));
        }));
  return unpackProgress(b.emitIf(
      b.compare(arith::CmpIPredicate::slt, begin, end),
      ValueRange(before).getTypes(),
      [&] {
        SmallVector<Value> all = b.emitLoop(
            b.add(begin, step), end, step,
            packPending(startUnmasked(begin, !getLeftWindow(), progress)),
            [&](Value key, ValueRange arguments) {
              Pending pending = unpackPending(arguments);
              addUnmasked(key, pending);
              return packPending(pending);
            });
        return packProgress(finishUnmasked(unpackPending(all)));
      },
      [&] { return before; }));
}

//===----------------------------------------------------------------------===//
// Tiles that may have masked pairs
//===----------------------------------------------------------------------===//

/// Emits the loop over the tiles of a range, one after the other.
WarpgroupAttention::Progress
WarpgroupAttention::emitMasked(Value begin, Value end,
                               const Progress &progress) {
  return unpackProgress(
      b.emitLoop(begin, end, b.i32(groups.keys), packProgress(progress),
                 [&](Value key, ValueRange arguments) {
                   Progress current = unpackProgress(arguments);
                   addMasked(key, current);
                   return packProgress(current);
                 }));
}

/// Emits one iteration. A tile that position masks hide from all rows of the
/// warpgroup leaves the state as it is.
void WarpgroupAttention::addMasked(Value key, Progress &progress) {
  const Stage &stage = progress.stage;
  State &state = progress.state;
  reader.withScope([&] {
    takeTile(key);
    Tile tile = findTile(stage.number);
    if (hasHeaders())
      tile.isFull =
          arith::XOrIOp::create(b, hasFlag(progress.header, kAppliesWhere),
                                arith::ConstantIntOp::create(b, 1, 1));
    Value tileIsVisible = isVisible(tile);
    if (!tileIsVisible)
      return addVisibleTile(tile, stage, state);
    SmallVector<Value> before = pack(state);
    state = unpack(b.emitIf(
        tileIsVisible, ValueRange(before).getTypes(),
        [&] {
          addVisibleTile(tile, stage, state);
          return pack(state);
        },
        [&] {
          waitForKeys(stage);
          releaseKeys(stage);
          waitForValues(stage);
          w.arrive(getBarrier(kValuesRead, stage.number), isLeader);
          return before;
        }));
  });
  moveToNext(progress);
}

void WarpgroupAttention::addVisibleTile(const Tile &tile, const Stage &stage,
                                        State &state) {
  Value isMasked, isAnyMasked;
  if (groups.sharesValues)
    isAnyMasked = isPartial(tile, getQueryRange());
  Weights all;
  withOwnKeys([&] {
    SmallVector<Value> scores =
        emitScores(getOwnKeys(tile), finishQueries(stage), isMasked);
    all = addSoftmax(scores, /*isLazy=*/true, state);
  });
  if (isAnyMasked)
    isMasked = arith::OrIOp::create(b, isMasked, isAnyMasked);
  scaleIfNeeded(all.factors, state);
  SmallVector<Value> weights = packAll(all.values);
  if (groups.sharesValues)
    shareWeights(weights);
  // The weight of a masked key is 0, but 0 times infinity is NaN.
  waitForValues(stage);
  Value no = arith::ConstantIntOp::create(b, 0, 1);
  Value isUnsafe = b.emitIf(
      isMasked ? isMasked : no, Type(b.getI1Type()),
      [&]() -> SmallVector<Value> { return {hasSpecials(stage.number)}; },
      [&]() -> SmallVector<Value> { return {no}; })[0];
  auto getWeights = [&](int64_t at) -> SmallVector<SmallVector<Value>> {
    if (groups.sharesValues)
      return {loadSharedWeights(at)};
    return {SmallVector<Value>(ValueRange(weights).slice(at / 4, 4))};
  };
  state.accumulators = b.emitIf(
      isUnsafe, ValueRange(state.accumulators).getTypes(),
      [&] {
        // Hides the lane, so that addresses of this code take no registers of
        // the loop.
        Value known = lane;
        if (groups.sharesValues)
          lane = w.tie(lane).front();
        SmallVector<Value> sums =
            addSpecialValues(tile, getWeights, state.accumulators);
        lane = known;
        return sums;
      },
      [&] {
        State next = state;
        if (groups.sharesValues)
          weights = loadSharedWeights();
        finishWeights(stage, weights, next);
        return next.accumulators;
      });
  w.arrive(getBarrier(kValuesRead, stage.number), isLeader);
}

/// Emits an i1, equal in all threads of the warpgroup, which read some bytes
/// each: whether a stage's values in the warpgroup's channels are infinite or
/// NaN.
Value WarpgroupAttention::hasSpecials(Value stage) {
  constexpr int64_t kBytes = 16, kWords = 4;
  Value start =
      b.add(getValues(stage), b.mul(valuePart, groups.getPartBytes(sizes)));
  Value first = b.mul(b.rem(thread, WarpgroupTiles::kThreads), kBytes);
  Value all = b.emitLoop(
      first, b.i32(groups.getPartBytes(sizes)),
      b.i32(WarpgroupTiles::kThreads * kBytes), b.i32(0),
      [&](Value offset, ValueRange carried) -> SmallVector<Value> {
        Value words = b.load({b.add(start, offset)},
                             VectorType::get({kWords}, b.getI32Type()), kBytes);
        Value found = carried[0];
        for (int64_t i = 0; i < kWords; ++i)
          found = arith::OrIOp::create(
              b, found, findSpecials(vector::ExtractOp::create(b, words, i)));
        return {found};
      })[0];
  Value isFound = b.compare(arith::CmpIPredicate::ne, all, b.i32(0));
  return w.anyThread(b.add(consumer, kFirstBarrier), WarpgroupTiles::kThreads,
                     isFound);
}

//===----------------------------------------------------------------------===//
// All tiles
//===----------------------------------------------------------------------===//

/// Emits the loops over tiles of keys: those from the first tile on that have
/// keys before a window, those without masked pairs, and the others up to the
/// last. The stage of the result is that after all of them.
WarpgroupAttention::Progress
WarpgroupAttention::emitTilesOfKeys(const Stage &firstStage) {
  scf::ForOp loop = nest.keys;
  Progress progress{createState(), firstStage, {}};
  if (groups.sharesValues)
    initOwnSums(progress.state);
  if (hasHeaders())
    return emitTilesWithHeaders(progress);
  Value begin = b.toI32(reader.get(loop.getLowerBound())),
        end = b.toI32(reader.get(loop.getUpperBound()));
  if (!op.getWhere().empty() || op.getMask()) {
    progress = emitMasked(begin, end, progress);
  } else if (!op.getNumKeys() && !getLeftWindow() && !getRightWindow()) {
    progress = emitUnmasked(begin, end, progress);
  } else {
    auto [first, last] = findUnmasked(begin, end);
    if (getLeftWindow()) {
      progress = emitMasked(begin, first, progress);
      progress.stage = findStage(firstStage, begin, first);
    }
    progress = emitMasked(last, end, emitUnmasked(first, last, progress));
  }
  Value count = b.createOrFold<arith::MaxSIOp>(b.sub(end, begin), b.i32(0));
  progress.stage =
      findStage(firstStage, b.i32(0), b.add(count, groups.keys - 1));
  return progress;
}

/// Returns the range of keys, multiples of a tile, in which positions mask no
/// pair of the warpgroup's rows.
std::pair<Value, Value> WarpgroupAttention::findUnmasked(Value begin,
                                                         Value end) {
  auto roundDown = [&](Value key) {
    return b.sub(key, b.rem(key, groups.keys));
  };
  Value query = b.toI32(reader.get(op.getQueryIndex()));
  auto [firstQuery, lastQuery] = getQueryRange();
  Value first = begin, last = end;
  if (std::optional<int64_t> left = getLeftWindow()) {
    // The last query sees keys from its position minus the window on.
    Value key = b.add(b.add(query, lastQuery), -*left);
    key = b.createOrFold<arith::MaxSIOp>(key, begin);
    first = roundDown(b.add(key, groups.keys - 1));
    first = b.createOrFold<arith::MinSIOp>(first, end);
  }
  if (std::optional<int64_t> right = getRightWindow()) {
    Value key = b.add(b.add(query, firstQuery), *right + 1);
    last = b.createOrFold<arith::MinSIOp>(last, key);
  }
  last = b.createOrFold<arith::MaxSIOp>(last, first);
  // Counts from the first tile, which is at a multiple of the tile, or at the
  // end.
  return {first, b.add(first, roundDown(b.sub(last, first)))};
}

/// Emits the loop over the tiles that the producer has not skipped.
WarpgroupAttention::Progress
WarpgroupAttention::emitTilesWithHeaders(Progress progress) {
  progress.header = readHeader(progress.stage);
  SmallVector<Value> results = b.emitWhile(
      packProgress(progress),
      [&](ValueRange all) {
        Value header = unpackProgress(all).header;
        return b.any(b.compare(arith::CmpIPredicate::sge, header, b.i32(0)));
      },
      [&](ValueRange all) {
        Value isPartial = hasFlag(unpackProgress(all).header, kIsPartial);
        return b.emitIf(
            isPartial, all.getTypes(),
            [&] {
              Progress current = unpackProgress(all);
              addMasked(getFirstKey(current.header), current);
              return packProgress(current);
            },
            [&] { return packProgress(emitFullTiles(unpackProgress(all))); });
      });
  progress = unpackProgress(results);
  if (hasSplits()) {
    // The last header has a stage, as a tile has.
    releaseKeys(progress.stage);
    waitForValues(progress.stage);
    w.arrive(getBarrier(kValuesRead, progress.stage.number), isLeader);
    progress.stage = getNext(progress.stage);
  }
  return progress;
}

/// Emits the loop over tiles without masked pairs up to the next other tile.
WarpgroupAttention::Progress
WarpgroupAttention::emitFullTiles(const Progress &progress) {
  Value yes = arith::ConstantIntOp::create(b, 1, 1);
  if (groups.sharesValues)
    return unpackProgress(b.emitWhile(
        packProgress(progress),
        [&](ValueRange all) {
          Value header = unpackProgress(all).header;
          return arith::XOrIOp::create(b, hasFlag(header, kIsPartial), yes);
        },
        [&](ValueRange all) {
          Progress current = unpackProgress(all);
          return packProgress(addWhole(getFirstKey(current.header), current));
        }));
  Pending pending = startUnmasked(getFirstKey(progress.header),
                                  /*isFirst=*/false, progress);
  SmallVector<Value> results = b.emitWhile(
      packPending(pending),
      [&](ValueRange all) {
        // The header after the last tile has all flags.
        Value header = unpackPending(all).progress.header;
        return arith::XOrIOp::create(b, hasFlag(header, kIsPartial), yes);
      },
      [&](ValueRange all) {
        Pending current = unpackPending(all);
        addUnmasked(getFirstKey(current.progress.header), current);
        return packPending(current);
      });
  return finishUnmasked(unpackPending(results));
}

//===- AttentionTiles.cpp - sizes of the tiles of attention ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionTiles.h"
#include "AttentionAMXSteps.h"

#include "posenc/ABI/CInterface.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::posenc;

static int64_t getNumHeads(Value tensor, unsigned dim) {
  return cast<ShapedType>(tensor.getType()).getDimSize(dim);
}

/// Returns the number of query tokens of a sequence, or kDynamic.
static int64_t getNumTokens(AttentionOp op) {
  if (op.hasRaggedQueries())
    return ShapedType::kDynamic;
  return cast<ShapedType>(op.getQuery().getType())
      .getDimSize(op.getQueryTokenDim());
}

int64_t mlir::posenc::getSharedBytes(AttentionOp op) {
  // With a dynamic number of tokens, the prefill kernel needs the rest of the
  // stack.
  return ShapedType::isDynamic(getNumTokens(op)) ? kSmallSharedBytes
                                                 : kSharedBytes;
}

/// Limit of a decode task's queries, in elements: the queries, their
/// accumulators, and those of the merged KV splits are on the stack.
constexpr int64_t kMaxDecodeFloats = 8 << 10;

/// Whether the key heads of a token are contiguous and are used in place.
static bool areHeadsTogether(AttentionOp op) {
  return op.getKeyHeadDim() > op.getKeyTokenDim() && !op.getKeyRotation() &&
         !op.getKeyNorm();
}

/// Whether each sequence provably has as many keys as query tokens.
static bool hasKeysOfTokens(AttentionOp op) {
  Value positions = op.getQueryPositions();
  if (op.hasRaggedQueries())
    return op.hasRaggedKeys() && llvm::all_equal(op.getCuSeqlens());
  return op.getQuery() == op.getKey() ||
         (positions && positions == op.getKeyPositions());
}

SmallVector<DecodeRange>
mlir::posenc::getDecodeRanges(AttentionOp op, const VectorTarget &target) {
  // These limits change the bits of results, so they are not fields of Tuning.
  // On Zen 5 the decode kernel takes .35 to .65 of the prefill kernel's time
  // for up to 32 tokens of f32, and .55 to .85 for up to 16 tokens of bf16;
  // beyond that, bf16 dot products are faster.
  const int64_t maxTokens =
      getElementTypeOrSelf(op.getQuery().getType()).isBF16() ? 16 : 32;
  int64_t dim = cast<ShapedType>(op.getKey().getType()).getShape().back();
  int64_t valueDim =
      cast<ShapedType>(op.getValue().getType()).getShape().back();
  if (dim % kSumLanes != 0 || valueDim % kSumLanes != 0)
    return {};
  // With more queries than this limit, attention is no longer bound by memory.
  int64_t tokens = getNumTokens(op);
  int64_t groupSize = getNumHeads(op.getQuery(), op.getQueryHeadDim()) /
                      getNumHeads(op.getKey(), op.getKeyHeadDim());
  int64_t max = std::clamp<int64_t>(
      kMaxDecodeFloats / (groupSize * std::max(dim, valueDim)), 1, maxTokens);
  auto isStacked = [&](int64_t first) {
    return usesStackedAMXSteps(op, target, {first, maxTokens});
  };
  if (!ShapedType::isDynamic(tokens)) {
    if (tokens == 0 || tokens > (isStacked(tokens) ? maxTokens : max))
      return {};
    return {{tokens, tokens}};
  }
  if (hasKeysOfTokens(op))
    return {};
  if (isStacked(1))
    return {{1, maxTokens}};
  if (isStacked(2))
    return {{1, 1}, {2, maxTokens}};
  // A single token gets a kernel of its own, because its vectors hold queries
  // of other heads, unless both kernels would use the same lanes.
  if (static_cast<int64_t>(llvm::PowerOf2Ceil(groupSize)) == kSumLanes / 2 &&
      !areHeadsTogether(op))
    return {{1, max}};
  SmallVector<DecodeRange> range{{1, 1}};
  if (max > 1)
    range.push_back({2, max});
  return range;
}

bool mlir::posenc::isAlwaysDecode(AttentionOp op, const VectorTarget &target) {
  return !ShapedType::isDynamic(getNumTokens(op)) &&
         !getDecodeRanges(op, target).empty();
}

AttentionTiles AttentionTiles::get(AttentionOp op, const VectorTarget &target,
                                   int64_t bytes,
                                   std::optional<DecodeRange> range) {
  AttentionTiles tiles;
  tiles.lanes = target.vectorBytes / 4;
  tiles.vectors = 2;
  // Registers: the accumulators, one vector of each query or weight, and one
  // key or value; 15 of 16 are used, or 19 of 32. Eight accumulators hide the
  // latency of a fused multiply-add.
  bool hasManyRegisters = target.vectorBytes == 64;
  tiles.scoreRows = hasManyRegisters ? 8 : 6;
  auto getDim = [](Value tensor) {
    return cast<ShapedType>(tensor.getType()).getShape().back();
  };
  int64_t dim = getDim(op.getKey()), valueDim = getDim(op.getValue());
  int64_t groupSize = getNumHeads(op.getQuery(), op.getQueryHeadDim()) /
                      getNumHeads(op.getKey(), op.getKeyHeadDim());
  tiles.valueColumns = tiles.scoreRows;
  if (range && usesStackedAMXSteps(op, target, *range)) {
    tiles.setStackedAMXSteps(op, *range, groupSize, bytes);
    return tiles;
  }
  if (range) {
    tiles.setDecode(op, *range, groupSize, std::max(dim, valueDim));
    tiles.fitDecode(op, groupSize, bytes);
    return tiles;
  }
  if (usesAMXSteps(op, target)) {
    tiles.setAMXSteps(op, target, groupSize, bytes);
    return tiles;
  }
  if (!usesBF16Dots(op, target)) {
    // Results depend on the number of keys of a tile, so it is the same for all
    // vector widths.
    AttentionTiles widest = tiles;
    widest.lanes = kSumLanes;
    widest.scoreRows = 8;
    widest.setPrefill(op, target, groupSize, bytes);
    tiles.keys = widest.keys;
  }
  tiles.setPrefill(op, target, groupSize, bytes);
  int64_t step = tiles.heads * tiles.getQueryTile();
  int64_t queries = std::min<int64_t>(tiles.queries, target.attentionQueries);
  tiles.queries = std::max(queries / step, int64_t(1)) * step;
  // Only now, since the number of keys must not depend on the register tile. A
  // tile of keys consists of whole register tiles.
  auto getTileRows = [&](int64_t size) -> int64_t {
    int64_t rows = target.attentionTileRows;
    return hasManyRegisters && size % rows == 0 ? rows : tiles.scoreRows;
  };
  tiles.valueColumns = getTileRows(valueDim);
  tiles.scoreRows = getTileRows(tiles.keys);
  return tiles;
}

void AttentionTiles::setPrefill(AttentionOp op, const VectorTarget &target,
                                int64_t groupSize, int64_t bytes) {
  auto getDim = [](Value tensor) {
    return cast<ShapedType>(tensor.getType()).getShape().back();
  };
  int64_t dim = getDim(op.getKey()), valueDim = getDim(op.getValue());
  // Chooses the numbers of queries and keys of a task that fit in `bytes` at
  // the lowest cost. The cost consists of loading a key again for other queries
  // and of loading and storing accumulators again for other keys.
  constexpr int64_t maxQueries = 384;
  int64_t pair = usesBF16Dots(op, target) ? 2 : 1,
          maxKeys = pair == 2 ? 128 : 96;
  int64_t statistics = pair == 2 && op.getSinks() ? 3 : 2;
  int64_t queryBytes =
      4 * (alignTo(dim, lanes) / pair + alignTo(valueDim, lanes) + statistics);
  int64_t keyBytes = 4 * (getRowSize(dim / pair) + getRowSize(valueDim) / pair +
                          getQueryTile());
  // With interleaved pairs the table has a cosine and a sine for each lane.
  auto isInterleaved = [](std::optional<RotationAttr> rotation) {
    return rotation && rotation->getPairing() == Pairing::Interleaved;
  };
  bool hasTwice = isInterleaved(op.getQueryRotation()) ||
                  isInterleaved(op.getKeyRotation());
  // The number of keys must not depend on the number of lanes, nor on the
  // rotations.
  int64_t slots = getQueryTile() + 1;
  if (keys != 0)
    slots = (op.getQueryRotation() ? getQuerySlots(op, target) : 0) +
            (op.getKeyRotation() ? 1 : 0);
  int64_t rest = 4 * slots * dim * (hasTwice ? 2 : 1);
  // `rows` cannot use the buffer of keys if that holds words, or fewer or
  // shorter rows.
  int64_t rowsBytes = 4 * getQueryTile() * getRowSize(std::max(dim, valueDim));
  auto haveRowsRoom = [&](int64_t number) {
    return pair == 1 && valueDim <= dim && getQueryTile() <= number;
  };
  SmallVector<int64_t> numbers{keys};
  if (keys == 0) {
    // The number of keys is a multiple of the score rows of both vector widths
    // (6 and 8), unless it is small.
    constexpr int64_t commonRows = 24;
    numbers.clear();
    for (int64_t count = scoreRows; count <= maxKeys; count += scoreRows)
      if (pair == 2 || count < commonRows || count % commonRows == 0)
        numbers.push_back(count);
  }
  double min = std::numeric_limits<double>::infinity();
  heads = 1;
  queries = getQueryTile();
  keys = numbers.front();
  // A task of several heads copies its keys once, and computes each query
  // position's rotation once.
  for (int64_t taskHeads : {4, 2, 1}) {
    int64_t step = taskHeads * getQueryTile();
    for (int64_t taskQueries = step;
         groupSize % taskHeads == 0 && taskQueries <= maxQueries;
         taskQueries += step)
      for (int64_t number : numbers) {
        double cost = 16.0 / taskQueries + 1.0 / number;
        int64_t size = taskQueries * queryBytes + number * keyBytes + rest +
                       (haveRowsRoom(number) ? 0 : rowsBytes);
        if (size > bytes || cost >= min)
          continue;
        min = cost;
        heads = taskHeads;
        queries = taskQueries;
        keys = number;
      }
  }
}

int64_t AttentionTiles::getQuerySlots(AttentionOp op,
                                      const VectorTarget &target) const {
  int64_t slots = lanes;
  for (DecodeRange range : getDecodeRanges(op, target))
    slots = std::max(slots, range.max);
  return slots;
}

int64_t AttentionTiles::getMaxStateSize(int64_t valueDim) const {
  int64_t lanesOfKey = getQueryLanes(kSumLanes);
  int64_t blocks = keyHeads * llvm::divideCeil(getQueriesPerHead(), lanesOfKey);
  return blocks * (lanesOfKey * valueDim + 2 * kSumLanes);
}

void AttentionTiles::setDecode(AttentionOp op, DecodeRange range,
                               int64_t groupSize, int64_t dim) {
  int64_t tokens = range.max;
  minTokens = range.min;
  // All query heads of a key head belong to one task if most lanes of a vector
  // then hold queries, because each task reads the keys again.
  heads = groupSize;
  bool areSplit =
      tokens == 1 && groupSize > kSumLanes && !op.hasRaggedQueries();
  for (int64_t max = kSumLanes; areSplit && max > kSumLanes / 2; --max)
    if (groupSize % max == 0) {
      heads = max;
      break;
    }
  // If key heads are contiguous, a task takes as many of them as fit: memory is
  // fast for whole rows only.
  if (areHeadsTogether(op) && heads == groupSize &&
      (tokens > 1 || groupSize <= kSumLanes)) {
    int64_t headFloats =
        static_cast<int64_t>(llvm::PowerOf2Ceil(groupSize)) * tokens * dim;
    int64_t all = getNumHeads(op.getKey(), op.getKeyHeadDim());
    auto fit = [&](int64_t count) {
      return all % count == 0 && count * headFloats <= kMaxDecodeFloats;
    };
    for (keyHeads = all; keyHeads > 1 && !fit(keyHeads);)
      --keyHeads;
    heads *= keyHeads;
  }
  queries = heads * tokens;
  constexpr int64_t maxVectors = 16;
  int64_t bytes =
      dim *
      getElementTypeOrSelf(op.getKey().getType()).getIntOrFloatBitWidth() / 8;
  int64_t step = getWeightSums();
  keys = step * std::clamp<int64_t>(kPageBytes / bytes / step, 1, maxVectors);
}

int64_t AttentionTiles::getDecodeBytes(AttentionOp op) const {
  int64_t dim = cast<ShapedType>(op.getKey().getType()).getShape().back();
  int64_t valueDim =
      cast<ShapedType>(op.getValue().getType()).getShape().back();
  int64_t lanesOfKey = getQueryLanes(kSumLanes);
  int64_t blocks = llvm::divideCeil(getQueriesPerHead(), lanesOfKey);
  int64_t floats = keyHeads * blocks * lanesOfKey * getRowSize(dim) +
                   keys * lanesOfKey * (kSumLanes / 2 + 1 + blocks) +
                   getMaxStateSize(valueDim) * (maxSplits > 1 ? 2 : 1);
  if (op.getKeyRotation() || op.getKeyNorm())
    floats += alignTo(keys, 8) * getRowSize(dim);
  // The tables hold a cosine and a sine of each channel, for the queries of a
  // register tile and for one key.
  if (op.getQueryRotation())
    floats += 2 * vectors * kSumLanes * dim;
  if (op.getKeyRotation())
    floats += 2 * dim;
  return 4 * floats;
}

void AttentionTiles::setSplits(AttentionOp op) {
  // Each token may be a task of its own.
  if (op.hasRaggedQueries())
    return;
  constexpr int64_t maxTasks = 8;
  int64_t maxFloats = getSharedBytes(op) / 4;
  int64_t tasks = getNumHeads(op.getQuery(), op.getQueryHeadDim()) / heads;
  int64_t valueDim =
      cast<ShapedType>(op.getValue().getType()).getShape().back();
  maxSplits = std::max<int64_t>(
      1, std::min(maxTasks / tasks,
                  maxFloats / (tasks * getMaxStateSize(valueDim))));
}

void AttentionTiles::fitDecode(AttentionOp op, int64_t groupSize,
                               int64_t bytes) {
  setSplits(op);
  int64_t tokens = getTokens();
  auto setHeads = [&](int64_t count, int64_t newKeyHeads) {
    heads = count;
    keyHeads = newKeyHeads;
    queries = heads * tokens;
    int64_t step = getWeightSums();
    keys = std::max(keys / step, int64_t(1)) * step;
  };
  auto isTooMuch = [&] { return getDecodeBytes(op) > bytes; };
  // Shrinks the tile in the order of increasing cost: first gives up whole rows
  // of key heads, then KV splits, which serve idle threads, then the single
  // read of the keys for all heads.
  int64_t all = getNumHeads(op.getKey(), op.getKeyHeadDim());
  for (int64_t count = keyHeads - 1; count > 0 && isTooMuch(); --count)
    if (all % count == 0) {
      setHeads(count * groupSize, count);
      setSplits(op);
    }
  if (isTooMuch())
    maxSplits = 1;
  for (int64_t count = heads - 1; count > 0 && isTooMuch(); --count) {
    if (groupSize % count != 0)
      continue;
    setHeads(count, /*newKeyHeads=*/1);
    setSplits(op);
    if (isTooMuch())
      maxSplits = 1;
  }
  for (int64_t step = getWeightSums(); keys > step && isTooMuch();)
    keys -= step;
}

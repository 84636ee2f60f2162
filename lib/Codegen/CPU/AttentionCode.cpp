//===- AttentionCode.cpp - tiles and buffers of attention -----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionCode.h"
#include "AttentionTileSteps.h"

#include "posenc/ABI/CInterface.h"
#include "posenc/Numerics/ElementwiseBuilder.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

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

static int64_t alignTo(int64_t size, int64_t multiple) {
  return (size + multiple - 1) / multiple * multiple;
}

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
    return usesStackedSteps(op, target, {first, maxTokens});
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
  if (range && usesStackedSteps(op, target, *range)) {
    tiles.setStackedSteps(op, *range, groupSize, bytes);
    return tiles;
  }
  if (range) {
    tiles.setDecode(op, *range, groupSize, std::max(dim, valueDim));
    tiles.fitDecode(op, groupSize, bytes);
    return tiles;
  }
  if (usesTileSteps(op, target)) {
    tiles.setTileSteps(op, target, groupSize, bytes);
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

/// Whether two ops can use the same buffers.
static bool areAlike(AttentionOp a, AttentionOp b, const VectorTarget &target) {
  if (!llvm::equal(a->getOperandTypes(), b->getOperandTypes()) ||
      isAlwaysDecode(a, target) != isAlwaysDecode(b, target))
    return false;
  return getDecodeRanges(a, target).empty() ||
         (a.getQueryHeadDim() == b.getQueryHeadDim() &&
          a.getKeyHeadDim() == b.getKeyHeadDim() &&
          a.getQueryRotation() == b.getQueryRotation() &&
          a.getKeyRotation() == b.getKeyRotation() &&
          !a.getKeyNorm() == !b.getKeyNorm());
}

AttentionScratch::AttentionScratch(ArrayRef<AttentionOp> operations,
                                   const VectorTarget &target) {
  llvm::SmallDenseMap<Operation *, SmallVector<AttentionOp>> kinds;
  for (AttentionOp op : operations) {
    Operation *function = op->getParentOfType<FunctionOpInterface>();
    if (llvm::any_of(kinds[function], [&](AttentionOp other) {
          return areAlike(op, other, target);
        }))
      continue;
    kinds[function].push_back(op);
    ++numShapes[function];
    for (DecodeRange range : getDecodeRanges(op, target)) {
      constexpr int64_t enough = int64_t{1} << 30;
      if (AttentionTiles::get(op, target, enough, range).maxSplits == 1)
        continue;
      int64_t &bytes = sharedBytes[function];
      bytes = std::max(bytes, getSharedBytes(op));
    }
  }
}

int64_t AttentionScratch::getMaxBytes(AttentionOp op,
                                      const VectorTarget &target,
                                      bool isDecode) const {
  // Threads may have stacks of 512 KiB, and the L2 cache may be as small. CPUs
  // with AMX have larger caches; only the tiles whose sizes change no bit may
  // follow from the target.
  bool hasTileSteps = !isDecode && usesTileSteps(op, target);
  int64_t functionBytes = hasTileSteps ? target.attentionTileBytes : 392 << 10;
  Operation *function = op->getParentOfType<FunctionOpInterface>();
  int64_t shapes = numShapes.lookup(function);
  int64_t bytes = (functionBytes - sharedBytes.lookup(function)) / shapes;
  // The decode kernel's buffers fit in those of the prefill kernel, unless
  // these are small.
  if (shapes == 1 || isAlwaysDecode(op, target) ||
      getDecodeRanges(op, target).empty())
    return bytes;
  return isDecode ? bytes / 4 : bytes - bytes / 4;
}

Value AttentionScratch::allocate(ImplicitLocOpBuilder &builder, Operation *op,
                                 ArrayRef<int64_t> shape, bool isShared) {
  auto type = MemRefType::get(shape, builder.getF32Type());
  auto getSize = [](const Buffer &buffer) {
    return cast<MemRefType>(buffer.memory.getType()).getNumElements();
  };
  Block &entryBlock =
      op->getParentOfType<FunctionOpInterface>().getFunctionBody().front();
  Buffer *larger = nullptr;
  for (Buffer &buffer : buffers) {
    if (buffer.isUsed || buffer.memory.getParentBlock() != &entryBlock ||
        buffer.isShared != isShared)
      continue;
    if (buffer.memory.getType() == type) {
      buffer.isUsed = true;
      buffer.op = op;
      return buffer.memory;
    }
    if (buffer.op == op && getSize(buffer) >= type.getNumElements() &&
        (!larger || getSize(buffer) < getSize(*larger)))
      larger = &buffer;
  }
  OpBuilder::InsertionGuard guard(builder);
  if (larger) {
    larger->isUsed = true;
    builder.setInsertionPointAfterValue(larger->memory);
    SmallVector<int64_t> strides = type.getStridesAndOffset().first;
    return memref::ReinterpretCastOp::create(builder, type, larger->memory,
                                             /*offset=*/0, shape, strides);
  }
  builder.setInsertionPointToStart(&entryBlock);
  auto memory =
      memref::AllocaOp::create(builder, type, builder.getI64IntegerAttr(64));
  if (isShared)
    memory->setAttr(PosencDialect::kSharedBufferAttrName,
                    builder.getUnitAttr());
  buffers.push_back({memory, op, true, isShared});
  return memory;
}

AttentionCode::AttentionCode(ImplicitLocOpBuilder &builder, AttentionOp op,
                             const VectorTarget &target,
                             AttentionScratch &scratch,
                             std::optional<DecodeRange> range)
    : op(op), tiles(AttentionTiles::get(
                  op, target,
                  scratch.getMaxBytes(op, target, range.has_value()), range)),
      target(target),
      dim(cast<MemRefType>(op.getKey().getType()).getShape().back()),
      valueDim(cast<MemRefType>(op.getValue().getType()).getShape().back()),
      hasBF16Dots(tiles.hasTileSteps() ||
                  (!range && usesBF16Dots(op, target))) {
  scratch.reset();
  auto allocate = [&](ArrayRef<int64_t> shape) {
    return scratch.allocate(builder, op, shape);
  };
  if (tiles.hasTileSteps()) {
    allocateTileSteps(*this, builder, scratch);
    return;
  }
  int64_t queryTile = tiles.getQueryTile();
  int64_t numKeys = alignTo(tiles.keys, tiles.scoreRows);
  int64_t pair = getDotWidth();
  keys = allocate({numKeys, getRowSize(dim / pair)});
  if (range) {
    int64_t numRows = tiles.getBlocks() * tiles.getQueryLanes();
    rows = allocate({numRows, getRowSize(dim)});
    decodeAcc = allocate({numRows, valueDim});
    if (tiles.maxSplits > 1)
      mergedAcc = allocate({numRows, valueDim});
    int64_t numScores = tiles.keys * tiles.getQueryLanes();
    decodeProducts = allocate({numScores * kSumLanes / 2});
    decodeScores = allocate({numScores});
    decodeWeights = allocate({tiles.getBlocksPerHead() * numScores});
    decodeState =
        allocate({tiles.getStateVectors() * tiles.getBlocks(), tiles.lanes});
    if (tiles.maxSplits == 1)
      return;
    mergedState =
        allocate({tiles.getStateVectors() * tiles.getBlocks(), tiles.lanes});
    partials = scratch.allocate(builder, op, getSharedBytes(op) / 4,
                                /*isShared=*/true);
    return;
  }
  // `rows` is used before the first and after the last tile of keys, so it can
  // share their buffer.
  rows = !hasBF16Dots && valueDim <= dim && queryTile <= numKeys
             ? keys
             : allocate({queryTile, getRowSize(std::max(dim, valueDim))});
  queries = allocate(
      {getNumQueryTiles(), alignTo(dim, tiles.lanes) / pair, queryTile});
  acc =
      allocate({getNumQueryTiles(), alignTo(valueDim, tiles.lanes), queryTile});
  scores = allocate({numKeys, queryTile});
  values = allocate({numKeys / pair, getRowSize(valueDim)});
  if (int64_t count = getRelativeValues(op).size())
    relativeValues =
        allocate({count, alignTo(numKeys + queryTile - 1, tiles.lanes)});
  rowMax = allocate({getNumQueryTiles(), queryTile});
  rowSum = allocate({getNumQueryTiles(), queryTile});
  if (hasBF16Dots && hasExactSums())
    exactSum = allocate({getNumQueryTiles(), queryTile});
}

VectorType AttentionCode::getVectorType() const {
  return VectorType::get({tiles.lanes}, Float32Type::get(op->getContext()));
}

int64_t AttentionCode::getHeadTasks() const {
  AttentionOp attention = op;
  return getNumHeads(attention.getQuery(), attention.getQueryHeadDim()) /
         tiles.heads;
}

bool AttentionCode::hasOwnScores() const {
  AttentionOp attention = op;
  Value mask = attention.getMask();
  return !attention.getScore().empty() ||
         (mask && !getElementTypeOrSelf(mask.getType()).isInteger(1));
}

double AttentionCode::getExponentScale() const {
  AttentionOp attention = op;
  // exp(x) = 2^(x * log2(e)).
  return attention.getScoreScale() *
         (hasOwnScores() ? 1 : llvm::numbers::log2e);
}

bool AttentionCode::hasOwnPairs() const {
  AttentionOp attention = op;
  return hasOwnScores() || attention.getMask() || !attention.getWhere().empty();
}

bool AttentionCode::loadsPairElements() const {
  AttentionOp attention = op;
  auto hasLoads = [](Region &region) {
    return !region.empty() && !region.front().getOps<memref::LoadOp>().empty();
  };
  return attention.getMask() || hasLoads(attention.getScore()) ||
         hasLoads(attention.getWhere());
}

bool AttentionCode::hasExactSums() const {
  AttentionOp attention = op;
  return attention.getSinks() || attention.getLogSumInit();
}

bool AttentionCode::hasMasks() const {
  AttentionOp attention = op;
  return hasOwnPairs() || attention.getCausal() || attention.getWindowLeft() ||
         attention.getWindowRight();
}

//===----------------------------------------------------------------------===//
// Helpers
//===----------------------------------------------------------------------===//

AttentionBlock mlir::posenc::emitQueryBlock(ImplicitLocOpBuilder &builder,
                                            const AttentionCode &code,
                                            const AttentionTask &task,
                                            Value head, Value number,
                                            Value &count) {
  const AttentionTiles &tiles = code.tiles;
  Value first = mulIndex(builder, number, tiles.getQueryTile());
  count = minIndex(builder, createIndex(builder, tiles.getQueryTile()),
                   subIndex(builder, task.numTokens, first));
  AttentionBlock block;
  block.batch = task.batch;
  block.queryStart = task.queryStart;
  block.queryHead = addIndex(builder, task.queryHead, head);
  block.queryTile = addIndex(
      builder, mulIndex(builder, head, tiles.getQueryTilesPerHead()), number);
  block.token = addIndex(builder, task.firstToken, first);
  block.position = addIndex(builder, task.firstPosition, first);
  Value last = addIndex(builder, count, -1);
  block.lastToken = addIndex(builder, block.token, last);
  block.lastPosition = addIndex(builder, block.position, last);
  return block;
}

Value mlir::posenc::createSplat(ImplicitLocOpBuilder &builder, VectorType type,
                                double value) {
  return arith::ConstantOp::create(
      builder, DenseElementsAttr::get(
                   type, builder.getFloatAttr(type.getElementType(), value)));
}

Value mlir::posenc::broadcast(ImplicitLocOpBuilder &builder, VectorType type,
                              Value scalar) {
  return vector::BroadcastOp::create(builder, type, scalar);
}

Value mlir::posenc::loadVector(ImplicitLocOpBuilder &builder, VectorType type,
                               Value memref, ValueRange indices) {
  return vector::LoadOp::create(builder, type, memref, indices);
}

void mlir::posenc::storeVector(ImplicitLocOpBuilder &builder, Value vector,
                               Value memref, ValueRange indices) {
  vector::StoreOp::create(builder, vector, memref, indices);
}

ValueRange mlir::posenc::createLoop(
    ImplicitLocOpBuilder &builder, Value from, Value to, int64_t step,
    ValueRange init, function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  auto loop =
      scf::ForOp::create(builder, from, to, createIndex(builder, step), init);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> next =
      body(loop.getInductionVar(), loop.getRegionIterArgs());
  if (!init.empty())
    scf::YieldOp::create(builder, next);
  return loop.getResults();
}

ValueRange mlir::posenc::createRolledLoop(
    ImplicitLocOpBuilder &builder, Value from, Value to, int64_t step,
    ValueRange init, function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  ValueRange results = createLoop(builder, from, to, step, init, body);
  MLIRContext *context = builder.getContext();
  LLVM::LoopUnrollAttr unroll = LLVM::LoopUnrollAttr::get(
      context, /*disable=*/builder.getBoolAttr(true), {}, {}, {}, {}, {}, {});
  results.front().getDefiningOp()->setAttr(
      "loop_annotation",
      LLVM::LoopAnnotationAttr::get(context, {}, {}, {}, unroll, {}, {}, {}, {},
                                    {}, {}, {}, {}, {}, {}, {}));
  return results;
}

void mlir::posenc::createLoop(ImplicitLocOpBuilder &builder, Value from,
                              Value to, int64_t step,
                              function_ref<void(Value)> body) {
  createLoop(builder, from, to, step, {}, [&](Value index, ValueRange) {
    body(index);
    return SmallVector<Value>();
  });
}

void mlir::posenc::emitIf(ImplicitLocOpBuilder &builder, Value condition,
                          function_ref<void()> then,
                          function_ref<void()> otherwise) {
  auto branch =
      scf::IfOp::create(builder, condition,
                        /*withElseRegion=*/static_cast<bool>(otherwise));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  then();
  if (!otherwise)
    return;
  builder.setInsertionPointToStart(branch.elseBlock());
  otherwise();
}

SmallVector<Value> mlir::posenc::transpose(ImplicitLocOpBuilder &builder,
                                           SmallVector<Value> vectors) {
  int64_t count = vectors.size();
  SmallVector<int64_t> low, high;
  for (int64_t i = 0; i < count / 2; ++i) {
    llvm::append_values(low, i, count + i);
    llvm::append_values(high, count / 2 + i, count + count / 2 + i);
  }
  // Each round exchanges one bit of the vector index with one bit of the lane
  // index.
  for (int64_t round = 1; round < count; round *= 2) {
    SmallVector<Value> next;
    for (int64_t i = 0; i < count / 2; ++i)
      for (ArrayRef<int64_t> mask : {ArrayRef(low), ArrayRef(high)})
        next.push_back(vector::ShuffleOp::create(builder, vectors[i],
                                                 vectors[i + count / 2], mask));
    vectors = std::move(next);
  }
  return vectors;
}

Value mlir::posenc::loadScale(ImplicitLocOpBuilder &builder, AttentionOp op,
                              Value scales, ValueRange keyIndices) {
  if (!scales)
    return {};
  SmallVector<Value> at{keyIndices[op.getKeyHeadDim()],
                        keyIndices[op.getKeyTokenDim()]};
  if (!op.hasRaggedKeys())
    at.insert(at.begin(), keyIndices.front());
  for (auto [dim, size] :
       llvm::enumerate(cast<MemRefType>(scales.getType()).getShape()))
    if (size == 1)
      at[dim] = createIndex(builder, 0);
  return memref::LoadOp::create(builder, scales, at);
}

SmallVector<Value> mlir::posenc::getRowIndices(Value batch, Value head,
                                               Value token, unsigned headDim) {
  SmallVector<Value> at{token};
  if (batch)
    at.insert(at.begin(), batch);
  at.insert(at.begin() + headDim, head);
  return at;
}

SmallVector<Value> mlir::posenc::getQueryIndices(ImplicitLocOpBuilder &builder,
                                                 AttentionOp op, Value batch,
                                                 Value start, Value head,
                                                 Value token) {
  if (start)
    return getRowIndices(/*batch=*/nullptr, head,
                         addIndex(builder, start, token), op.getQueryHeadDim());
  return getRowIndices(batch, head, token, op.getQueryHeadDim());
}

SmallVector<Value> mlir::posenc::getKeyIndices(ImplicitLocOpBuilder &builder,
                                               AttentionOp op,
                                               const AttentionTask &task,
                                               Value key) {
  Value batch = task.batch;
  if (task.keyStart)
    return getRowIndices(/*batch=*/nullptr, task.keyHead,
                         addIndex(builder, task.keyStart, key),
                         op.getKeyHeadDim());
  if (Value table = op.getBlockTable()) {
    Value size =
        getDimSize(builder, builder.getLoc(), op.getKey(), op.getKeyTokenDim());
    PagedKey found = emitPagedKey(builder, table, batch, key, size);
    batch = found.page;
    key = found.slot;
  }
  return getRowIndices(batch, task.keyHead, key, op.getKeyHeadDim());
}

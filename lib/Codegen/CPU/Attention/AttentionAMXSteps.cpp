//===- AttentionAMXSteps.cpp - pipelined bf16 attention with AMX ----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionAMXSteps.h"

#include "posenc/Numerics/BF16Weights.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <limits>

using namespace mlir;
using namespace mlir::posenc;

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

int64_t mlir::posenc::getRowParts(AttentionOp op) {
  return getNumParts(
             cast<ShapedType>(op.getKey().getType()).getShape().back()) *
         (keepsRemainders(op) ? 3 : 1);
}

void AttentionTiles::setAMXSteps(AttentionOp op, const VectorTarget &target,
                                 int64_t groupSize, int64_t bytes) {
  auto getDim = [](Value tensor) {
    return cast<ShapedType>(tensor.getType()).getShape().back();
  };
  int64_t dim = getDim(op.getKey());
  int64_t channels = getRowParts(op);
  int64_t columns = getNumParts(getDim(op.getValue()));
  constexpr int64_t tile = 4 * kTileRows * kTileRows;
  int64_t tables = (op.getQueryRotation() ? getQuerySlots(op, target) : 0) +
                   (op.getKeyRotation() ? 1 : 0);
  int64_t numSums = op.getSinks() || op.getLogSumInit() ? 2 : 1;
  // Scores, sums and largest scores of a step, a row, and 16 rows of keys.
  int64_t rest = 8 * tile + (2 * numSums + 2) * tile + 4 * getRowSize(dim) +
                 4 * kTileRows * getRowSize(channels * kTileRows) +
                 4 * tables * dim * 2;
  int64_t queryTileBytes =
      tile * (2 * channels + 4 * columns + 2 * numSums) + 4 * kStepKeys;
  // The smallest tiles, unless larger ones fit. Minimizes cycles for each step
  // of a query tile, beyond those of its products: a share of copying 32 keys,
  // of the steps before and after the keys of a task, and of loading and
  // storing sums. None of the sizes changes a bit. A task of more heads is
  // better, also for up to a quarter of the cost: it copies the keys of a short
  // sequence once for all of them.
  blockSteps = heads = 1;
  keys = queries = kStepKeys;
  double min = std::numeric_limits<double>::infinity();
  constexpr int64_t maxBlockSteps = 8, maxBlocks = 4;
  for (int64_t steps = 1; steps <= std::min(columns, maxBlockSteps); ++steps) {
    if (columns % steps != 0)
      continue;
    for (int64_t blocks = 1; blocks <= maxBlocks; ++blocks)
      for (int64_t taskHeads = groupSize; taskHeads > 0; --taskHeads) {
        if (groupSize % taskHeads != 0)
          continue;
        int64_t maxCount =
            std::max<int64_t>(target.attentionQueries / kStepKeys, taskHeads);
        for (int64_t count = taskHeads; count <= maxCount; count += taskHeads) {
          int64_t size =
              rest + count * queryTileBytes +
              2 * tile * (blocks * steps * (channels + columns) + 2 * steps);
          double copied = 480.0 * (channels + columns);
          double ends = 64.0 * (channels + steps * columns);
          double share = static_cast<double>(taskHeads) / groupSize;
          double cost = (copied / count + ends / (count * blocks * steps)) *
                            (1.25 - 0.25 * share) +
                        256.0 * columns / steps;
          if (size > bytes || cost >= min)
            continue;
          min = cost;
          blockSteps = steps;
          keys = blocks * steps * kStepKeys;
          heads = taskHeads;
          queries = count * kStepKeys;
        }
      }
  }
}

void AttentionTiles::setStackedAMXSteps(AttentionOp op, DecodeRange range,
                                        int64_t groupSize, int64_t bytes) {
  auto getDim = [](Value tensor) {
    return cast<ShapedType>(tensor.getType()).getShape().back();
  };
  int64_t keyHeads =
      cast<ShapedType>(op.getKey().getType()).getDimSize(op.getKeyHeadDim());
  int64_t channels = getRowParts(op);
  int64_t columns = getNumParts(getDim(op.getValue()));
  minTokens = range.min;
  vectors = 1;
  constexpr int64_t tile = 4 * kTileRows * kTileRows;
  int64_t numSums = op.getSinks() || op.getLogSumInit() ? 2 : 1;
  constexpr int64_t maxTasks = 8;
  if (!op.hasRaggedQueries())
    maxSplits = std::max<int64_t>(1, maxTasks / keyHeads);
  // Two steps are enough: with more, LLVM computes addresses again and again.
  blockSteps = columns % 2 == 0 ? 2 : 1;
  // The packed keys and values stay in the L1 cache, and a tile does not begin
  // long before a short window.
  constexpr int64_t packedBytes = 32 << 10, shortWindow = 512;
  keys = blockSteps * kStepKeys;
  int64_t keyBytes = 4 * kTileRows * (channels + columns);
  if (op.getWindowLeft().value_or(shortWindow) >= shortWindow)
    while (keys < kChunkKeys && 2 * keys * keyBytes <= packedBytes)
      keys *= 2;
  auto getBytes = [&] {
    int64_t queryTiles = llvm::divideCeil(heads * range.max, kTileRows);
    int64_t accTiles = 2 * columns * (maxSplits > 1 ? 2 : 1);
    return queryTiles * tile * (channels + accTiles + numSums + 1) +
           keys * keyBytes + tile * (2 * blockSteps + 6 + numSums) +
           4 * kTileRows * getRowSize(channels * kTileRows);
  };
  heads = groupSize;
  if (getBytes() > bytes)
    maxSplits = 1;
  for (int64_t count = groupSize - 1; count > 0 && getBytes() > bytes; --count)
    if (groupSize % count == 0)
      heads = count;
  queries = heads * range.max;
}

//===----------------------------------------------------------------------===//
// Tasks
//===----------------------------------------------------------------------===//

namespace {
/// The steps of a query tile in a tile of keys, numbered in it: those of the
/// blocks from `firstBlock` on, before `endStep`. There is at least one.
struct StepRange {
  Value firstBlock, endStep;
};

/// Emits the steps of a task for one tile of keys.
class StepEmitter {
public:
  StepEmitter(ImplicitLocOpBuilder &builder, const AttentionCode &code,
              const AttentionTask &task)
      : builder(builder), code(code), task(task), zero(createIndex(builder, 0)),
        blockSteps(code.tiles.blockSteps) {}

  Value getNumQueryTiles() {
    return code.tiles.areHeadsStacked()
               ? task.numQueryTiles
               : mulIndex(builder, task.numQueryTiles, code.tiles.heads);
  }
  /// Returns query tile `number` of the task, heads first, and sets `count` to
  /// its number of tokens.
  AttentionBlock getBlock(Value number, Value &count);
  /// Emits all steps for the `count` keys from `firstKey` on. `isFirst` (i1):
  /// whether the task has no keys before; `isUnsafe` as in AttentionBlock.
  /// The decode kernel prefetches `nextCount` keys from `nextKey` on.
  void emit(Value firstKey, Value count, Value isFirst, Value isUnsafe,
            MaskBounds &bounds, Value nextKey, Value nextCount);

private:
  StepRange getRange(const AttentionBlock &block);
  int64_t getRows() const { return code.tiles.getQueryTile(); }
  /// Returns one of two buffers, the second if `number` is 1.
  Value choose(const Value (&buffers)[2], Value number) {
    Value isSecond =
        arith::CmpIOp::create(builder, arith::CmpIPredicate::ne, number, zero);
    return arith::SelectOp::create(builder, isSecond, buffers[1], buffers[0]);
  }
  TileProduct getScores(Value queryTile, Value stepInTile, Value scores);
  /// Returns the products of the weights and values of a block for columns
  /// number `slot` of `blockSteps`.
  SmallVector<TileProduct> getWeighted(Value weights, Value queryTile,
                                       Value block, Value slot);
  void emitProducts(ArrayRef<TileProduct> some,
                    ArrayRef<TileProduct> others = {});
  void emitWeightedFrom(Value weights, Value queryTile, Value block,
                        Value firstSlot);
  void emitStep(const AMXStep &step, Value nextTile, Value nextStep,
                Value tileBefore, Value blockBefore, Value isStart);
  /// Stores 0 to the weights of a block from step `from` on.
  void emitNoWeights(Value weights, Value from);

  ImplicitLocOpBuilder &builder;
  const AttentionCode &code;
  const AttentionTask &task;
  Value zero, firstKey, keyCount;
  int64_t blockSteps;
};
} // namespace

AttentionBlock StepEmitter::getBlock(Value number, Value &count) {
  int64_t heads = code.tiles.heads;
  if (code.tiles.areHeadsStacked())
    return emitStackedBlock(builder, code, task, number, count);
  Value head = remIndex(builder, number, heads);
  Value tile = divIndex(builder, number, heads);
  return emitQueryBlock(builder, code, task, head, tile, count);
}

StepRange StepEmitter::getRange(const AttentionBlock &block) {
  PositionMask mask(code.op);
  Value one = createIndex(builder, 1);
  Value end = subIndex(
      builder, mask.emitEndKey(builder, block.lastPosition, task.numKeys),
      firstKey);
  Value keys = maxIndex(builder, one, minIndex(builder, keyCount, end));
  StepRange range;
  range.endStep = builder.createOrFold<arith::CeilDivUIOp>(
      keys, createIndex(builder, kStepKeys));
  Value first = maxIndex(
      builder, zero,
      subIndex(builder, mask.emitFirstKey(builder, block.position), firstKey));
  range.firstBlock = minIndex(
      builder, divIndex(builder, first, blockSteps * kStepKeys),
      divIndex(builder, addIndex(builder, range.endStep, -1), blockSteps));
  return range;
}

TileProduct StepEmitter::getScores(Value queryTile, Value stepInTile,
                                   Value scores) {
  return {getTilesOfBlock(builder, code.steps.queries, queryTile,
                          /*isRowMajor=*/false),
          getTilesOfBlock(builder, code.steps.keys, stepInTile,
                          /*isRowMajor=*/true),
          getTilesOfBlock(builder, scores, {}, /*isRowMajor=*/true),
          getRowParts(code.op), /*accumulates=*/false};
}

SmallVector<TileProduct> StepEmitter::getWeighted(Value weights,
                                                  Value queryTile, Value block,
                                                  Value slot) {
  SmallVector<TileProduct> products;
  int64_t parts = getNumParts(code.valueDim) / blockSteps;
  for (int64_t i = 0; i < parts; ++i) {
    Value part = addIndex(builder, mulIndex(builder, slot, parts), i);
    products.push_back(
        {getTilesOfBlock(builder, weights, {}, /*isRowMajor=*/false),
         getTilesOfBlock(builder, code.steps.values, {block, part},
                         /*isRowMajor=*/true),
         getTilesOfBlock(builder, code.steps.acc, {queryTile, part},
                         /*isRowMajor=*/true),
         blockSteps, /*accumulates=*/true});
  }
  return products;
}

void StepEmitter::emitProducts(ArrayRef<TileProduct> some,
                               ArrayRef<TileProduct> others) {
  if (code.tiles.getQueryTile() == kTileRows)
    return emitRowTileProducts(builder, some, others);
  for (ArrayRef<TileProduct> list : {some, others})
    for (const TileProduct &product : list)
      emitTileProducts(builder, product.a, product.b, product.result,
                       product.depth, product.accumulates);
}

void StepEmitter::emitWeightedFrom(Value weights, Value queryTile, Value block,
                                   Value firstSlot) {
  createLoop(builder, firstSlot, createIndex(builder, blockSteps), 1,
             [&](Value slot) {
               emitProducts(getWeighted(weights, queryTile, block, slot));
             });
}

void StepEmitter::emitNoWeights(Value weights, Value from) {
  Value none = createSplat(builder, code.getVectorType(), 0);
  createLoop(builder, from, createIndex(builder, blockSteps), 1,
             [&](Value slot) {
               for (int64_t row = 0; row < getRows(); ++row)
                 storeVector(builder, none, weights,
                             {slot, createIndex(builder, row / kTileRows),
                              createIndex(builder, row % kTileRows), zero});
             });
}

void StepEmitter::emitStep(const AMXStep &step, Value nextTile, Value nextStep,
                           Value tileBefore, Value blockBefore, Value isStart) {
  auto compare = [&](arith::CmpIPredicate predicate, Value a,
                     Value b) -> Value {
    return arith::CmpIOp::create(builder, predicate, a, b);
  };
  PositionMask mask(code.op);
  const AttentionBlock &block = step.block;
  Value endOfAll = mask.emitEndKey(builder, block.position, step.numKeys);
  Value isPartial = compare(arith::CmpIPredicate::slt, endOfAll,
                            addIndex(builder, step.firstKey, kStepKeys));
  if (mask.getLeft())
    isPartial = arith::OrIOp::create(
        builder, isPartial,
        compare(arith::CmpIPredicate::sgt,
                mask.emitFirstKey(builder, block.lastPosition), step.firstKey));
  AttentionOp op = code.op;
  Value isHidden =
      arith::ConstantIntOp::create(builder, op.getWhere().empty() ? 0 : 1, 1);
  if (step.seesAll)
    isHidden = compare(arith::CmpIPredicate::eq, step.seesAll,
                       arith::ConstantIntOp::create(builder, 0, 1));
  isPartial = builder.createOrFold<arith::OrIOp>(isPartial, isHidden);
  AMXStep scored = step;
  if (code.loadsPairElements()) {
    auto pairs = scf::IfOp::create(builder, isPartial, /*withElseRegion=*/true);
    for (bool isMasked : {true, false}) {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(isMasked ? pairs.thenBlock()
                                                : pairs.elseBlock());
      AMXStep inner = step;
      inner.isMasked = isMasked;
      emitPairScores(builder, code, inner);
    }
    scored.hasPairScores = true;
  }
  {
    auto start = scf::IfOp::create(builder, isStart, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(start.thenBlock());
    emitFirstOffsets(builder, code, scored);
  }
  // The straight line of a step. Returns OR of the bits of its sums.
  auto emitLine = [&](bool isMasked) -> Value {
    auto distinct = memref::DistinctObjectsOp::create(
        builder, ValueRange{step.scores, step.nextScores, step.weights,
                            step.weightsBefore});
    AMXStep inner = scored;
    inner.scores = distinct.getResult(0);
    inner.weights = distinct.getResult(2);
    inner.isMasked = isMasked;
    emitProducts(
        getScores(nextTile, nextStep, distinct.getResult(1)),
        getWeighted(distinct.getResult(3), tileBefore, blockBefore, step.slot));
    Value bits = arith::ConstantOp::create(
        builder,
        builder.getZeroAttr(code.getVectorType().clone(builder.getI32Type())));
    for (int64_t row = 0; row < getRows(); ++row)
      bits =
          emitWeightItem(builder, code, inner, createIndex(builder, row), bits);
    return bits;
  };
  Value bits;
  if (scored.hasPairScores) {
    bits = emitLine(/*isMasked=*/false);
  } else {
    auto type = code.getVectorType().clone(builder.getI32Type());
    auto choice = scf::IfOp::create(builder, TypeRange(type), isPartial,
                                    /*withElseRegion=*/true);
    for (bool isMasked : {true, false}) {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(isMasked ? choice.thenBlock()
                                                : choice.elseBlock());
      // Fences for the compiler only, of which no instruction is left. LLVM
      // would load the tiles that both branches start with before the branch,
      // and spill them.
      LLVM::FenceOp::create(builder,
                            isMasked ? LLVM::AtomicOrdering::acquire
                                     : LLVM::AtomicOrdering::release,
                            "singlethread");
      scf::YieldOp::create(builder, emitLine(isMasked));
    }
    bits = choice.getResult(0);
  }
  ElementwiseBuilder b(builder, builder.getLoc(), bits);
  Value isLarge =
      arith::CmpIOp::create(builder, arith::CmpIPredicate::ne,
                            b.andi(bits, b.i32(kLargeSumBit)), b.i32(0));
  auto raise = scf::IfOp::create(
      builder,
      vector::ReductionOp::create(builder, vector::CombiningKind::OR, isLarge),
      /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(raise.thenBlock());
  emitRaise(builder, code, scored,
            compare(arith::CmpIPredicate::eq, tileBefore, block.queryTile));
}

void StepEmitter::emit(Value first, Value count, Value isFirst, Value isUnsafe,
                       MaskBounds &bounds, Value nextKey, Value nextCount) {
  firstKey = first;
  keyCount = count;
  Value one = createIndex(builder, 1);
  Value numQueryTiles = getNumQueryTiles();
  Value lastTile = addIndex(builder, numQueryTiles, -1);
  auto flip = [&](Value number) { return subIndex(builder, one, number); };
  auto firstStep = [&](const StepRange &range) {
    return mulIndex(builder, range.firstBlock, blockSteps);
  };
  Value unused;
  // Each step prefetches as many keys of the next tile. A burst would wait for
  // the miss buffers of the cache.
  int64_t stepsOfTile = code.tiles.keys / kStepKeys;
  Value perStep = builder.createOrFold<arith::CeilDivUIOp>(
      createIndex(builder, kStepKeys), numQueryTiles);
  AttentionBlock firstBlock = getBlock(zero, unused);
  emitProducts(getScores(firstBlock.queryTile, firstStep(getRange(firstBlock)),
                         code.steps.scores[0]));
  // The block before the first one has no weights.
  emitNoWeights(code.steps.weights[1], zero);
  // Carried: the number of the buffer of scores, that of the weights of the
  // next block, and the query tile and block of the one before.
  SmallVector<Value> init{zero, zero, firstBlock.queryTile, zero};
  auto emitTile = [&](Value number, ValueRange carried) -> SmallVector<Value> {
    AttentionBlock block = getBlock(number, unused);
    StepRange range = getRange(block);
    AttentionBlock nextTile = getBlock(
        minIndex(builder, lastTile, addIndex(builder, number, 1)), unused);
    Value nextFirst = firstStep(getRange(nextTile));
    TileMask part = bounds.emitPart(
        builder,
        {block.batch, block.queryHead,
         addIndex(builder, block.queryHead,
                  code.tiles.areHeadsStacked() ? code.tiles.heads - 1 : 0),
         block.position, block.lastPosition, firstKey,
         addIndex(builder, firstKey, addIndex(builder, count, -1))});
    Value start = firstStep(range);
    auto emitBlock = [&](Value blockNumber,
                         ValueRange outer) -> SmallVector<Value> {
      Value weights = choose(code.steps.weights, outer[1]);
      Value weightsBefore = choose(code.steps.weights, flip(outer[1]));
      Value firstOfBlock = mulIndex(builder, blockNumber, blockSteps);
      Value numSteps = minIndex(builder, createIndex(builder, blockSteps),
                                subIndex(builder, range.endStep, firstOfBlock));
      auto emitSlot = [&](Value slot, ValueRange inner) -> SmallVector<Value> {
        AMXStep step;
        step.block = block;
        step.scores = choose(code.steps.scores, inner[0]);
        step.nextScores = choose(code.steps.scores, flip(inner[0]));
        step.weights = weights;
        step.weightsBefore = weightsBefore;
        step.slot = slot;
        step.numKeys = task.numKeys;
        step.seesAll = part.isAll;
        Value number = addIndex(builder, firstOfBlock, slot);
        step.firstKey =
            addIndex(builder, firstKey, mulIndex(builder, number, kStepKeys));
        Value next = addIndex(builder, number, 1);
        Value isSame = arith::CmpIOp::create(builder, arith::CmpIPredicate::slt,
                                             next, range.endStep);
        Value isStart = arith::AndIOp::create(
            builder, isFirst,
            arith::CmpIOp::create(builder, arith::CmpIPredicate::eq, number,
                                  start));
        if (code.tiles.areHeadsStacked()) {
          Value ordinal = addIndex(
              builder, mulIndex(builder, block.queryTile, stepsOfTile), number);
          Value from = builder.createOrFold<arith::MulIOp>(ordinal, perStep);
          createLoop(
              builder, from,
              minIndex(builder, nextCount, addIndex(builder, from, perStep)), 1,
              [&](Value row) {
                prefetchKey(builder, code, task,
                            addIndex(builder, nextKey, row));
              });
        }
        emitStep(step,
                 arith::SelectOp::create(builder, isSame, block.queryTile,
                                         nextTile.queryTile),
                 arith::SelectOp::create(builder, isSame, next, nextFirst),
                 outer[2], outer[3], isStart);
        return {flip(inner[0])};
      };
      Value parity =
          createLoop(builder, zero, numSteps, 1, outer[0], emitSlot)[0];
      emitWeightedFrom(weightsBefore, outer[2], outer[3], numSteps);
      emitNoWeights(weights, numSteps);
      Value nextWeights = flip(outer[1]);
      auto unsafe = scf::IfOp::create(builder, isUnsafe,
                                      /*withElseRegion=*/false);
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(unsafe.thenBlock());
      Value inTile = mulIndex(builder, firstOfBlock, kStepKeys);
      emitUnsafeValues(builder, code, task, block.queryTile, weights,
                       addIndex(builder, firstKey, inTile),
                       minIndex(builder, subIndex(builder, keyCount, inTile),
                                mulIndex(builder, numSteps, kStepKeys)));
      return {parity, nextWeights, block.queryTile, blockNumber};
    };
    return llvm::to_vector(
        createLoop(builder, range.firstBlock,
                   builder.createOrFold<arith::CeilDivUIOp>(
                       range.endStep, createIndex(builder, blockSteps)),
                   1, carried, emitBlock));
  };
  ValueRange last = createLoop(builder, zero, numQueryTiles, 1, init, emitTile);
  emitWeightedFrom(choose(code.steps.weights, flip(last[1])), last[2], last[3],
                   zero);
}

void mlir::posenc::emitAMXStepsTask(ImplicitLocOpBuilder &builder,
                                    const AttentionCode &code,
                                    const AttentionRows &queryRows,
                                    const AttentionRows &keyRows,
                                    const AttentionTask &task, Value begin,
                                    Value end, Value split) {
  // In the decode kernel, tiles begin at multiples of their size, as chunks do.
  bool isStacked = code.tiles.areHeadsStacked();
  Value blockKeys = createIndex(
      builder, isStacked ? code.tiles.keys : code.tiles.blockSteps * kStepKeys);
  begin = builder.createOrFold<arith::SubIOp>(
      begin, builder.createOrFold<arith::RemUIOp>(begin, blockKeys));
  emitQueryTiles(builder, code, queryRows, task);
  StepEmitter steps(builder, code, task);
  AttentionOp op = code.op;
  MaskBounds bounds(op.getWhere());
  int64_t numSplits = code.tiles.maxSplits;
  Value firstOfAll = begin;
  if (split) {
    // The chunk after that of `begin` by as many as the split is ahead.
    Value chunk = divIndex(builder, begin, kChunkKeys);
    Value ahead =
        remIndex(builder,
                 subIndex(builder, addIndex(builder, split, numSplits),
                          remIndex(builder, chunk, numSplits)),
                 numSplits);
    Value other =
        mulIndex(builder, addIndex(builder, chunk, ahead), kChunkKeys);
    firstOfAll = maxIndex(builder, begin, other);
  }
  createLoop(builder, firstOfAll, end, code.tiles.keys, [&](Value firstKey) {
    OpBuilder::InsertionGuard inSplit(builder);
    Value nextKey = addIndex(builder, firstKey, code.tiles.keys);
    if (split) {
      auto isOfSplit = [&](Value key) -> Value {
        Value owner =
            remIndex(builder, divIndex(builder, key, kChunkKeys), numSplits);
        return arith::CmpIOp::create(builder, arith::CmpIPredicate::eq, owner,
                                     split);
      };
      Value nextChunk =
          addIndex(builder, nextKey, (numSplits - 1) * kChunkKeys);
      nextKey = arith::SelectOp::create(builder, isOfSplit(nextKey), nextKey,
                                        nextChunk);
      auto branch = scf::IfOp::create(builder, isOfSplit(firstKey),
                                      /*withElseRegion=*/false);
      builder.setInsertionPointToStart(branch.thenBlock());
    }
    Value nextCount = minIndex(builder, createIndex(builder, code.tiles.keys),
                               subIndex(builder, end, nextKey));
    Value count = minIndex(builder, createIndex(builder, code.tiles.keys),
                           subIndex(builder, end, firstKey));
    TileMask mask =
        bounds.emit(builder, getPairTile(builder, code, task, task.numTokens,
                                         firstKey, count));
    reportMaskBounds(op, "convert-posenc-attention-to-vector", bounds, mask);
    OpBuilder::InsertionGuard guard(builder);
    if (mask.isAny) {
      auto isVisible = scf::IfOp::create(builder, mask.isAny,
                                         /*withElseRegion=*/false);
      builder.setInsertionPointToStart(isVisible.thenBlock());
    }
    Value isUnsafe =
        emitKeyTiles(builder, code, keyRows, task, firstKey, count);
    Value isFirst = arith::CmpIOp::create(builder, arith::CmpIPredicate::eq,
                                          firstKey, firstOfAll);
    steps.emit(firstKey, count, isFirst, isUnsafe, bounds, nextKey, nextCount);
  });
  if (split)
    return;
  createLoop(builder, createIndex(builder, 0), steps.getNumQueryTiles(), 1,
             [&](Value number) {
               Value count;
               AttentionBlock block = steps.getBlock(number, count);
               emitTileResults(builder, code, block, count);
             });
}

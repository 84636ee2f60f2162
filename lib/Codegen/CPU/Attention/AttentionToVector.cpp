//===- AttentionToVector.cpp - posenc.attention to vectors ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionAMXSteps.h"
#include "AttentionCode.h"

#include "posenc/Codegen/Passes.h"
#include "posenc/IR/Remarks.h"
#include "posenc/Transforms/MaskBounds.h"
#include "posenc/Transforms/VectorizableAttention.h"

#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_CONVERTPOSENCATTENTIONTOVECTORPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

#define DEBUG_TYPE "convert-posenc-attention-to-vector"

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

/// Emits one step of the online softmax: a register tile of queries and the
/// buffered tile of keys. `prefetch` is passed to emitValues.
static void emitQueryTile(ImplicitLocOpBuilder &builder,
                          const AttentionCode &code, AttentionBlock block,
                          Value numKeys, Value count, MaskBounds &bounds,
                          function_ref<void(Value)> prefetch) {
  AttentionOp op = code.op;
  auto toRow = [&](Value key) {
    return subIndex(builder, key, block.firstKey);
  };
  auto compare = [&](arith::CmpIPredicate predicate, Value a, Value b) {
    return Value(arith::CmpIOp::create(builder, predicate, a, b));
  };
  // The keys that any query sees, and those that all queries see.
  PositionMask positions(op);
  Value zero = createIndex(builder, 0);
  Value step = createIndex(builder, code.tiles.scoreRows);
  Value firstOfAny = maxIndex(
      builder, zero, toRow(positions.emitFirstKey(builder, block.position)));
  block.firstRow = builder.createOrFold<arith::SubIOp>(
      firstOfAny, builder.createOrFold<arith::RemUIOp>(firstOfAny, step));
  block.endRow = minIndex(
      builder, count,
      toRow(positions.emitEndKey(builder, block.lastPosition, numKeys)));
  Value firstOfAll = toRow(positions.emitFirstKey(builder, block.lastPosition));
  Value endOfAll =
      toRow(positions.emitEndKey(builder, block.position, numKeys));

  auto isAny = scf::IfOp::create(
      builder, compare(arith::CmpIPredicate::slt, block.firstRow, block.endRow),
      /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(isAny.thenBlock());
  TileMask mask = bounds.emitPart(
      builder,
      {block.batch, block.queryHead, block.queryHead, block.position,
       block.lastPosition, block.firstKey,
       addIndex(builder, block.firstKey, addIndex(builder, count, -1))});
  if (mask.isAny) {
    auto isVisible = scf::IfOp::create(builder, mask.isAny,
                                       /*withElseRegion=*/false);
    builder.setInsertionPointToStart(isVisible.thenBlock());
  }
  emitRelativeValues(builder, code, block);
  Value rest = arith::RemUIOp::create(builder, block.endRow, step);
  Value isPartial = compare(arith::CmpIPredicate::ne, rest, zero);
  isPartial = arith::OrIOp::create(
      builder, isPartial,
      compare(arith::CmpIPredicate::slt, endOfAll, block.endRow));
  isPartial = arith::OrIOp::create(
      builder, isPartial,
      compare(arith::CmpIPredicate::sgt, firstOfAll, block.firstRow));
  if (mask.isAll)
    isPartial = arith::OrIOp::create(
        builder, isPartial,
        compare(arith::CmpIPredicate::eq, mask.isAll,
                arith::ConstantIntOp::create(builder, 0, 1)));
  SmallVector<Type> types(code.tiles.vectors, code.getVectorType());
  auto scores = scf::IfOp::create(builder, types, isPartial,
                                  /*withElseRegion=*/true);
  for (bool partial : {true, false}) {
    OpBuilder::InsertionGuard inner(builder);
    builder.setInsertionPointToStart(partial ? scores.thenBlock()
                                             : scores.elseBlock());
    scf::YieldOp::create(builder, emitScores(builder, code, block, partial,
                                             partial || !mask.isAll));
  }
  emitValues(builder, code, block,
             emitSoftmax(builder, code, block, scores.getResults()), prefetch);
}

/// Calls `body` for each register tile of a task, with its indices and the
/// number of lanes that hold tokens.
static void
forEachQueryTile(ImplicitLocOpBuilder &builder, const AttentionCode &code,
                 const AttentionTask &task,
                 function_ref<void(AttentionBlock, Value count)> body) {
  Value zero = createIndex(builder, 0);
  createLoop(
      builder, zero, createIndex(builder, code.tiles.heads), 1,
      [&](Value head) {
        createLoop(builder, zero, task.numQueryTiles, 1, [&](Value number) {
          Value count;
          AttentionBlock block =
              emitQueryBlock(builder, code, task, head, number, count);
          body(block, count);
        });
      });
}

//===----------------------------------------------------------------------===//
// Tasks
//===----------------------------------------------------------------------===//

static Value emitKeyHead(ImplicitLocOpBuilder &builder, AttentionOp op,
                         Value queryHead) {
  auto getHeads = [](Value tensor, unsigned dim) {
    return cast<ShapedType>(tensor.getType()).getDimSize(dim);
  };
  int64_t groupSize = getHeads(op.getQuery(), op.getQueryHeadDim()) /
                      getHeads(op.getKey(), op.getKeyHeadDim());
  return builder.createOrFold<arith::DivUIOp>(queryHead,
                                              createIndex(builder, groupSize));
}

/// Emits the number of tokens of a task of the prefill kernel. With AMX it
/// decreases where few sequences and heads would leave threads without work: a
/// task packs keys for all its queries, so large tasks are the faster ones.
static Value emitTaskTokens(ImplicitLocOpBuilder &builder,
                            const AttentionCode &code, Value numSequences,
                            Value tokens) {
  const AttentionTiles &tiles = code.tiles;
  Value max = createIndex(builder, tiles.getTokens());
  int64_t step = tiles.getQueryTile();
  if (!tiles.hasAMXSteps() || tiles.getTokens() == step)
    return max;
  Value one = createIndex(builder, 1);
  Value others = maxIndex(builder, one,
                          mulIndex(builder, numSequences, code.getHeadTasks()));
  Value parts = builder.createOrFold<arith::CeilDivUIOp>(
      createIndex(builder, code.target.attentionTasks), others);
  Value size = builder.createOrFold<arith::CeilDivUIOp>(
      builder.createOrFold<arith::CeilDivUIOp>(tokens, parts),
      createIndex(builder, step));
  return minIndex(builder, max,
                  mulIndex(builder, maxIndex(builder, one, size), step));
}

/// Emits the number of query tiles of a task: of each head, or of all of them
/// if they are stacked.
static Value emitNumQueryTiles(ImplicitLocOpBuilder &builder,
                               const AttentionTiles &tiles, Value tokens) {
  if (tiles.areHeadsStacked())
    tokens = mulIndex(builder, tokens, tiles.heads);
  return builder.createOrFold<arith::CeilDivSIOp>(
      tokens, createIndex(builder, tiles.getQueryTile()));
}

/// Emits the indices of the task at an iteration over sequences, query heads
/// and tiles of `step` tokens; over the tiles of all sequences if queries are
/// ragged.
static AttentionTask emitTask(ImplicitLocOpBuilder &builder,
                              const AttentionCode &code, ValueRange indices,
                              Value step) {
  AttentionOp op = code.op;
  const AttentionTiles &tiles = code.tiles;
  Value tokens = getDimSize(builder, builder.getLoc(), op.getQuery(),
                            op.getQueryTokenDim());
  AttentionTask task;
  task.queryHead = mulIndex(builder, indices[1], tiles.heads);
  task.keyHead = emitKeyHead(builder, op, task.queryHead);
  Value batch = indices[0], tile = indices[2];
  if (op.hasRaggedQueries()) {
    RaggedTokens ragged(builder, op.getCuSeqlens()[0], tokens);
    RaggedTokens::Tile found = ragged.findTile(tile, step);
    batch = found.sequence;
    tile = found.number;
  }
  task.firstToken = builder.createOrFold<arith::MulIOp>(tile, step);
  static_cast<AttentionSequence &>(task) =
      emitSequence(builder, op, batch, tokens);
  task.numTokens = minIndex(
      builder, step, subIndex(builder, task.numQueries, task.firstToken));
  task.numQueryTiles = emitNumQueryTiles(builder, tiles, task.numTokens);
  task.firstPosition = task.emitPosition(builder, op, task.firstToken);
  return task;
}

/// Emits the range of keys that any query of a task sees.
static std::pair<Value, Value> emitKeyRange(ImplicitLocOpBuilder &builder,
                                            AttentionOp op,
                                            const AttentionTask &task) {
  Value lastPosition = addIndex(builder, task.firstPosition,
                                addIndex(builder, task.numTokens, -1));
  PositionMask mask(op);
  Value end = mask.emitEndKey(builder, lastPosition, task.numKeys);
  return {mask.emitFirstKey(builder, task.firstPosition), end};
}

namespace {
/// A decode kernel, and the i1 that selects it: null if it handles all query
/// counts.
struct DecodeVariant {
  AttentionCode code;
  Value isTaken;
  /// The number of tasks among which the KV splits of a head are divided.
  Value numSplitTasks;
};
} // namespace

/// Emits the merge of KV splits for each decode kernel.
static void emitMerges(ImplicitLocOpBuilder &builder,
                       ArrayRef<DecodeVariant> codes) {
  Value zero = createIndex(builder, 0), one = createIndex(builder, 1);
  SmallVector<Value> sizes;
  for (const DecodeVariant &variant : codes) {
    AttentionOp op = variant.code.op;
    Value isAlone = arith::CmpIOp::create(builder, arith::CmpIPredicate::eq,
                                          variant.numSplitTasks, one);
    Value batch = getDimSize(builder, builder.getLoc(), op.getQuery(), 0);
    Value size = arith::SelectOp::create(builder, isAlone, zero, batch);
    if (variant.isTaken)
      size = arith::SelectOp::create(builder, variant.isTaken, size, zero);
    sizes.push_back(size);
  }
  // Emits a separate loop, even for one iteration, since the merge must run
  // after all tasks.
  auto after =
      scf::ExecuteRegionOp::create(builder, TypeRange(), builder.getUnitAttr());
  builder.setInsertionPointToStart(&after.getRegion().emplaceBlock());
  for (auto [variant, size] : llvm::zip_equal(codes, sizes)) {
    const AttentionCode &code = variant.code;
    Value step = createIndex(builder, code.tiles.getTokens());
    createLoop(builder, zero, size, 1, [&](Value sequence) {
      createLoop(builder, zero, createIndex(builder, code.getHeadTasks()), 1,
                 [&](Value heads) {
                   AttentionTask task =
                       emitTask(builder, code, {sequence, heads, zero}, step);
                   if (code.tiles.hasAMXSteps())
                     return emitTileMerge(builder, code, task);
                   auto [begin, end] = emitKeyRange(builder, code.op, task);
                   emitMerge(builder, code, task, begin, end);
                 });
    });
  }
  scf::YieldOp::create(builder);
}

/// Emits a task of a decode kernel for the sequence and the heads of `task`.
static void emitDecodeTask(ImplicitLocOpBuilder &builder,
                           const DecodeVariant &variant,
                           const AttentionRows &queryRows,
                           const AttentionRows &keyRows,
                           const AttentionTask &task, Value splitTask) {
  const AttentionCode &code = variant.code;
  auto [begin, end] = emitKeyRange(builder, code.op, task);
  if (code.tiles.hasAMXSteps())
    return emitTileDecode(builder, code, queryRows, keyRows, task, begin, end,
                          splitTask, variant.numSplitTasks);
  emitDecode(builder, code, queryRows, keyRows, task, begin, end, splitTask,
             variant.numSplitTasks);
}

/// Emits a task of a decode kernel.
static void emitDecodeTask(ImplicitLocOpBuilder &builder,
                           const DecodeVariant &variant,
                           const AttentionRows &queryRows,
                           const AttentionRows &keyRows, ValueRange indices) {
  const AttentionCode &code = variant.code;
  SmallVector<Value> at(indices);
  Value splitTask = std::exchange(at[2], createIndex(builder, 0));
  AttentionTask task =
      emitTask(builder, code, at, createIndex(builder, code.tiles.getTokens()));
  emitDecodeTask(builder, variant, queryRows, keyRows, task, splitTask);
}

/// Emits a task of the prefill kernel.
static void emitPrefillTask(ImplicitLocOpBuilder &builder,
                            const AttentionCode &code,
                            const AttentionRows &queryRows,
                            const AttentionRows &keyRows,
                            const AttentionTask &task) {
  AttentionOp op = code.op;
  const AttentionTiles &tiles = code.tiles;
  std::pair<Value, Value> range = emitKeyRange(builder, op, task);
  Value begin = range.first, end = range.second;
  if (tiles.hasAMXSteps())
    return emitAMXStepsTask(builder, code, queryRows, keyRows, task, begin,
                            end);
  // Tiles begin at multiples of their size, so the order in which a query adds
  // its keys does not depend on the first query of the task. The tiles of bf16
  // dot products are too large for this: many keys of the first would be
  // masked.
  if (op.getWindowLeft() && !code.hasBF16Dots)
    begin = builder.createOrFold<arith::SubIOp>(
        begin, builder.createOrFold<arith::RemUIOp>(
                   begin, createIndex(builder, tiles.keys)));
  emitQueries(builder, code, queryRows, task);
  emitStart(builder, code, task);
  MaskBounds bounds(op.getWhere());
  createLoop(builder, begin, end, tiles.keys, [&](Value firstKey) {
    Value count = minIndex(builder, createIndex(builder, tiles.keys),
                           subIndex(builder, end, firstKey));
    TileMask mask =
        bounds.emit(builder, getPairTile(builder, code, task, task.numTokens,
                                         firstKey, count));
    reportMaskBounds(op, DEBUG_TYPE, bounds, mask);
    OpBuilder::InsertionGuard guard(builder);
    if (mask.isAny) {
      auto isVisible = scf::IfOp::create(builder, mask.isAny,
                                         /*withElseRegion=*/false);
      builder.setInsertionPointToStart(isVisible.thenBlock());
    }
    emitKeys(builder, code, keyRows, task, firstKey, count);
    Value isUnsafe;
    if (code.hasMasks())
      isUnsafe = emitIsUnsafe(builder, code, count);
    forEachQueryTile(builder, code, task, [&](AttentionBlock block, Value) {
      block.firstKey = firstKey;
      block.isUnsafe = isUnsafe;
      // Prefetches between products gain 5 % in f32 with AVX-512. They cost 3 %
      // with AVX2, and gain nothing with bf16 dot products.
      bool isSpread = code.target.vectorBytes == 64 && !code.hasBF16Dots;
      auto prefetch = [&](Value columns) {
        if (code.target.attentionPrefetch && isSpread == bool(columns))
          prefetchKeys(builder, code, task, block.queryTile, columns,
                       addIndex(builder, firstKey, tiles.keys), end);
      };
      prefetch(/*columns=*/nullptr);
      emitQueryTile(builder, code, block, task.numKeys, count, bounds,
                    prefetch);
    });
  });
  forEachQueryTile(builder, code, task, [&](AttentionBlock block, Value count) {
    emitResults(builder, code, block, count);
  });
}

/// Emits a task for ragged queries, which runs a decode kernel or the prefill
/// kernel by the length of its sequence.
static void emitRaggedTask(ImplicitLocOpBuilder &builder,
                           const AttentionCode &prefill,
                           ArrayRef<DecodeVariant> codes,
                           const AttentionRows &queryRows,
                           const AttentionRows &keyRows, ValueRange indices,
                           Value taskTokens) {
  AttentionTask task = emitTask(builder, prefill, indices, taskTokens);
  auto compare = [&](arith::CmpIPredicate predicate, Value a, int64_t b) {
    return Value(
        arith::CmpIOp::create(builder, predicate, a, createIndex(builder, b)));
  };
  auto startIf = [&](Value condition) {
    auto branch =
        scf::IfOp::create(builder, condition, /*withElseRegion=*/true);
    builder.setInsertionPointToStart(branch.thenBlock());
    return branch;
  };
  // A sequence may have one tile more than it needs; that tile is skipped.
  startIf(compare(arith::CmpIPredicate::sgt, task.numTokens, 0));
  Value isFirst = compare(arith::CmpIPredicate::eq, task.firstToken, 0);
  for (const DecodeVariant &variant : codes) {
    const AttentionTiles &tiles = variant.code.tiles;
    Value less = addIndex(builder, task.numQueries, -tiles.minTokens);
    scf::IfOp branch = startIf(compare(arith::CmpIPredicate::ule, less,
                                       tiles.getTokens() - tiles.minTokens));
    // A decode kernel does the work of several prefill tasks in one of them,
    // which differs from sequence to sequence. It takes all tokens of a
    // sequence, even if prefill tasks take fewer.
    int64_t tasks = tiles.heads / prefill.tiles.heads;
    Value number = createIndex(builder, tasks);
    auto isMine = [&](Value index) {
      return builder.createOrFold<arith::RemUIOp>(index, number);
    };
    startIf(arith::AndIOp::create(
        builder, isFirst,
        arith::CmpIOp::create(builder, arith::CmpIPredicate::eq,
                              isMine(indices[1]), isMine(indices[2]))));
    AttentionTask all = task;
    all.numTokens = task.numQueries;
    all.numQueryTiles = emitNumQueryTiles(builder, tiles, all.numTokens);
    all.queryHead = mulIndex(
        builder, builder.createOrFold<arith::DivUIOp>(indices[1], number),
        tiles.heads);
    all.keyHead = emitKeyHead(builder, prefill.op, all.queryHead);
    emitDecodeTask(builder, variant, queryRows, keyRows, all,
                   /*splitTask=*/nullptr);
    builder.setInsertionPointToStart(branch.elseBlock());
  }
  emitPrefillTask(builder, prefill, queryRows, keyRows, task);
}

/// Reports the kernels of an attention and their tiles.
static void reportKernels(AttentionOp op,
                          const std::optional<AttentionCode> &prefill,
                          ArrayRef<DecodeVariant> codes) {
  if (prefill)
    reportChoice(op, DEBUG_TYPE,
                 llvm::formatv("prefill kernel: {0} queries of {1} heads and "
                               "{2} keys per tile, {3}",
                               prefill->tiles.getTokens(), prefill->tiles.heads,
                               prefill->tiles.keys,
                               prefill->tiles.hasAMXSteps() ? "pipelined AMX"
                               : prefill->hasBF16Dots ? "bf16 dot products"
                                                      : "f32 FMA"));
  for (const DecodeVariant &variant : codes) {
    const AttentionTiles &tiles = variant.code.tiles;
    reportChoice(op, DEBUG_TYPE,
                 llvm::formatv("decode kernel for {0} to {1} queries: {2} "
                               "query heads of {3} key heads per task, {4} "
                               "keys per tile, up to {5} KV splits{6}",
                               tiles.minTokens, tiles.getTokens(), tiles.heads,
                               tiles.keyHeads, tiles.keys, tiles.maxSplits,
                               tiles.hasAMXSteps() ? ", pipelined AMX" : ""));
  }
}

static void convertAttention(AttentionOp op, const VectorTarget &target,
                             AttentionScratch &scratch) {
  ImplicitLocOpBuilder builder(op.getLoc(), op);
  auto getSize = [&](Value tensor, int64_t dim) {
    return getDimSize(builder, builder.getLoc(), tensor, dim);
  };
  Value tokens = getSize(op.getQuery(), op.getQueryTokenDim());
  // Decode kernels use parts of the prefill kernel's buffers.
  std::optional<AttentionCode> prefill;
  if (!isAlwaysDecode(op, target))
    prefill.emplace(builder, op, target, scratch, std::nullopt);
  SmallVector<DecodeVariant, 2> codes;
  for (DecodeRange variant : getDecodeRanges(op, target))
    codes.push_back(
        {AttentionCode(builder, op, target, scratch, variant), {}, {}});
  reportKernels(op, prefill, codes);
  const AttentionCode &first = prefill ? *prefill : codes.front().code;
  AttentionRows queryRows(builder, first, /*isKey=*/false,
                          first.tiles.getQuerySlots(op, target));
  AttentionRows keyRows(builder, first, /*isKey=*/true, /*numSlots=*/1);

  SmallVector<OpFoldResult> sizes{getSize(op.getQuery(), 0)};
  Value taskTokens;
  if (prefill) {
    if (op.hasRaggedQueries())
      sizes[0] = builder.getIndexAttr(1);
    taskTokens = emitTaskTokens(
        builder, *prefill,
        getValueOrCreateConstantIndexOp(builder, builder.getLoc(), sizes[0]),
        tokens);
    sizes.push_back(builder.getIndexAttr(prefill->getHeadTasks()));
    sizes.push_back(
        builder.createOrFold<arith::CeilDivUIOp>(tokens, taskTokens));
    if (op.hasRaggedQueries())
      sizes[2] = RaggedTokens(builder, op.getCuSeqlens()[0], tokens)
                     .getNumTiles(taskTokens);
  }
  if (op.hasRaggedQueries()) {
    llvm::erase_if(codes, [&](const DecodeVariant &variant) {
      return variant.code.tiles.heads % prefill->tiles.heads != 0;
    });
  }
  for (DecodeVariant &variant : codes) {
    const AttentionCode &code = variant.code;
    variant.numSplitTasks = createIndex(builder, 1);
    if (op.hasRaggedQueries())
      continue;
    if (code.tiles.maxSplits > 1)
      variant.numSplitTasks =
          code.tiles.hasAMXSteps()
              ? emitNumTileSplitTasks(
                    builder, code, tokens,
                    emitNumQueryTiles(builder, code.tiles, tokens))
              : emitNumSplitTasks(builder, code);
    OpFoldResult heads = builder.getIndexAttr(code.getHeadTasks());
    if (!prefill) {
      llvm::append_values(sizes, heads, OpFoldResult(variant.numSplitTasks));
      continue;
    }
    variant.isTaken = arith::CmpIOp::create(
        builder, arith::CmpIPredicate::ule,
        subIndex(builder, tokens, createIndex(builder, code.tiles.minTokens)),
        createIndex(builder, code.tiles.getTokens() - code.tiles.minTokens));
    auto choose = [&](OpFoldResult decodeValue,
                      OpFoldResult prefillValue) -> OpFoldResult {
      Location loc = builder.getLoc();
      return arith::SelectOp::create(
                 builder, variant.isTaken,
                 getValueOrCreateConstantIndexOp(builder, loc, decodeValue),
                 getValueOrCreateConstantIndexOp(builder, loc, prefillValue))
          .getResult();
    };
    sizes[1] = choose(heads, sizes[1]);
    sizes[2] = choose(variant.numSplitTasks, sizes[2]);
  }
  auto forall = scf::ForallOp::create(builder, sizes, /*outputs=*/ValueRange(),
                                      /*mapping=*/std::nullopt);
  // Decode writes little and reads much, so its tasks are counted by input
  // bytes.
  forall->setAttr(PosencDialect::kTasksByAttrName,
                  TasksByAttr::get(builder.getContext(), TasksBy::Inputs));
  builder.setInsertionPointToStart(forall.getBody());
  SmallVector<Value> indices(forall.getInductionVars());
  if (op.hasRaggedQueries())
    return emitRaggedTask(builder, *prefill, codes, queryRows, keyRows, indices,
                          taskTokens);
  for (const DecodeVariant &variant : codes) {
    if (!variant.isTaken) {
      emitDecodeTask(builder, variant, queryRows, keyRows, indices);
      continue;
    }
    auto branch =
        scf::IfOp::create(builder, variant.isTaken, /*withElseRegion=*/true);
    builder.setInsertionPointToStart(branch.thenBlock());
    emitDecodeTask(builder, variant, queryRows, keyRows, indices);
    builder.setInsertionPointToStart(branch.elseBlock());
  }
  if (prefill)
    emitPrefillTask(builder, *prefill, queryRows, keyRows,
                    emitTask(builder, *prefill, indices, taskTokens));
  llvm::erase_if(codes, [](const DecodeVariant &variant) {
    return variant.code.tiles.maxSplits == 1;
  });
  if (codes.empty())
    return;
  builder.setInsertionPointAfter(forall);
  emitMerges(builder, codes);
}

namespace {
struct ConvertPosencAttentionToVector final
    : mlir::posenc::impl::ConvertPosencAttentionToVectorPassBase<
          ConvertPosencAttentionToVector> {
  using Base::Base;
  friend struct mlir::posenc::VectorTarget;

  void runOnOperation() override {
    SmallVector<AttentionOp> operations;
    getOperation().walk([&](AttentionOp op) { operations.push_back(op); });
    VectorTarget target = VectorTarget::get(*this);
    target.hasBF16Dots = bf16Dots;
    target.hasAMXBF16 = amxBF16;
    SmallVector<AttentionOp> convertible;
    for (AttentionOp op : operations) {
      if (std::optional<std::string> reason = getVectorUnsupportedReason(op)) {
        reportMissed(op, DEBUG_TYPE, *reason);
        continue;
      }
      convertible.push_back(op);
    }
    AttentionScratch scratch(convertible, target);
    for (AttentionOp op : convertible) {
      if (failed(checkConvertible(op, target)))
        return signalPassFailure();
      convertAttention(op, target, scratch);
      op.erase();
    }
  }
};
} // namespace

//===- DecodeAttention.cpp - attention kernels for few queries ------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DecodeAttention.h"

#include "GPU/Launch/DeviceFacts.h"
#include "GpuAttention.h"
#include "MergeSplits.h"
#include "ThreadSoftmax.h"
#include "WarpgroupBuilder.h"

#include "posenc/IR/CreateIndex.h"
#include "posenc/Transforms/AttentionNest.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::posenc;

std::optional<GpuAttentionTiles>
mlir::posenc::getDecodeTiles(const AttentionNestParts &nest) {
  scf::ForallOp loops = nest.loops;
  OnlineAttentionOp tile = nest.tile;
  if (loops.getRank() != kLoopsWithSplits)
    return std::nullopt;
  auto shape = cast<ShapedType>(tile.getQuery().getType()).getShape();
  int64_t rows = shape[0] * shape[1];
  GpuAttentionSizes sizes = getAttentionSizes(tile);
  return loops->hasAttr(PosencDialect::kChipAttrName)
             ? chooseRingTiles(sizes, rows)
             : chooseDecodeTiles(sizes, rows);
}

void DecodeAttention::syncTiles() { NVVM::SyncWarpOp::create(b, b.i32(-1)); }

SharedAddress DecodeAttention::getQuery(Value row, Value channel) {
  SharedAddress address = AttentionKernel::getQuery(row, channel);
  address.base = b.add(address.base, b.mul(warp, getQueryBytes()));
  return address;
}

/// Returns the tiles of a split. Those of all splits of a run, one after the
/// other, take the warp's stages in turn.
AttentionKernel::TileRange DecodeAttention::getTileRange() {
  TileRange range = AttentionKernel::getTileRange();
  Value first = b.mul(warp, tiles.stages);
  range.firstStage = progress.front();
  range.sumOfStages = b.add(b.mul(first, 2), 1);
  range.endOfLoads = endOfRun;
  range.isLoaded = endOfRun != nullptr;
  return range;
}

void DecodeAttention::takeLoads() {
  if (endOfRun)
    reader.getScalars() = scalarsOfRun;
}

void DecodeAttention::endTiles(Value stage) { progress.front() = stage; }

//===----------------------------------------------------------------------===//
// KV splits of warps
//===----------------------------------------------------------------------===//

/// Maps the loops over sequences, heads and tiles of queries, and clones the
/// scalars that do not depend on the split.
void DecodeAttention::takeTask(Value number, Value head) {
  scf::ForallOp loops = nest.loops;
  Value tilesOfQueries = b.toI32(gridSizes[kQueryTile]);
  Value sequence = b.createOrFold<arith::DivUIOp>(number, tilesOfQueries),
        tile = b.createOrFold<arith::RemUIOp>(number, tilesOfQueries);
  reader.getScalars().map(
      ArrayRef(loops.getInductionVars()).take_front(kSplit),
      ValueRange{b.toIndex(sequence), b.toIndex(head), b.toIndex(tile)});
  reader.cloneInvariantScalars(cast<LoopLikeOpInterface>(*loops));
}

/// Clones the scalars of a split, an index, of the task.
void DecodeAttention::takeSplit(Value split) {
  scf::ForallOp loops = nest.loops;
  reader.getScalars().map(loops.getInductionVars()[kSplit], split);
  reader.cloneScalars(*loops.getBody());
}

/// Emits the splits of each head of a task that have work: none without
/// queries, otherwise split 0, with the sums of no keys or of a sink, and those
/// with keys that a query sees by its position.
DecodeAttention::Splits DecodeAttention::findSplits(Value number) {
  Value none = b.i32(0), one = b.i32(1);
  Splits splits{one, one};
  reader.withScope([&] {
    takeTask(number, none);
    if (std::optional<Value> queries = getNumQueries(nest.outputs.front()))
      splits.count = b.select(b.compare(arith::CmpIPredicate::sgt, *queries,
                                        createIndex(b, b.getLoc(), 0)),
                              one, none);
    if (!hasSplits())
      return;
    // Splits bound the keys of the first and of the last one only on one side.
    scf::ForOp keys = nest.keys;
    Value begin, end;
    reader.withScope([&] {
      takeSplit(createIndex(b, b.getLoc(), 0));
      begin = b.toI32(reader.get(keys.getLowerBound()));
    });
    reader.withScope([&] {
      takeSplit(b.add(gridSizes[kSplit], -1));
      end = b.toI32(reader.get(keys.getUpperBound()));
    });
    SplitRange range = createSplitRange(b, begin, end, kKeysPerSplit);
    splits.second = range.begin;
    Value count = b.add(b.sub(range.end, range.begin), 1);
    splits.count = b.mul(splits.count, count);
  });
  return splits;
}

/// The same of a lane's task, of which there may be none.
DecodeAttention::Splits DecodeAttention::findOwnSplits(Value first) {
  Value number = b.add(first, lane);
  Type i32 = b.getI32Type();
  SmallVector<Value> found = b.emitIf(
      b.compare(arith::CmpIPredicate::ult, number, numTasks), {i32, i32},
      [&]() -> SmallVector<Value> {
        Splits splits = findSplits(number);
        return {splits.count, splits.second};
      },
      [&]() -> SmallVector<Value> { return {b.i32(0), b.i32(1)}; });
  return {found[0], found[1]};
}

/// Emits the inclusive prefix sum over the lanes of the warp.
Value DecodeAttention::addLanesBefore(Value value) {
  for (int64_t distance : {1, 2, 4, 8, 16}) {
    Value other = b.shuffle(value, b.sub(lane, b.i32(distance)));
    Value exists = b.compare(arith::CmpIPredicate::uge, lane, b.i32(distance));
    value = b.add(value, b.select(exists, other, b.i32(0)));
  }
  return value;
}

/// Emits the code of a warp. The splits with work of all tasks and heads are
/// one list, of which each warp of the grid takes as many one after the other.
/// The lanes look at 32 tasks together. There are fewer than 2^31 splits.
void DecodeAttention::emitGrid() {
  if (hasSplits())
    findDestinations();
  startWarp();
  numCopiers = GpuAttentionTiles::kWarp;
  constexpr int64_t kTasks = GpuAttentionTiles::kWarp;
  auto none = b.i32(0), step = b.i32(kTasks);
  auto ult = arith::CmpIPredicate::ult;
  numTasks = b.mul(b.toI32(gridSizes[0]), b.toI32(gridSizes[kQueryTile]));
  Value heads = b.toI32(gridSizes[1]);
  Value total =
      b.emitLoop(none, numTasks, step, none,
                 [&](Value task, ValueRange carried) -> SmallVector<Value> {
                   return {b.add(carried[0], findOwnSplits(task).count)};
                 })[0];
  total =
      b.mul(b.reduceLanes(total, [&](Value x, Value y) { return b.add(x, y); }),
            heads);
  Value blocks = b.toI32(gpu::GridDimOp::create(b, gpu::Dimension::x));
  Value block = b.toI32(gpu::BlockIdOp::create(b, gpu::Dimension::x));
  Value workers = b.mul(blocks, tiles.warps);
  Value worker = b.add(block, b.mul(blocks, warp));
  Value share = arith::DivUIOp::create(b, total, workers);
  Value rest = b.sub(total, b.mul(share, workers));
  Value begin =
      b.add(b.mul(worker, share), arith::MinUIOp::create(b, worker, rest));
  firstOfWarp = begin;
  Value isLonger = b.compare(ult, worker, rest);
  Value end = b.add(
      begin, b.add(share, arith::ExtUIOp::create(b, b.getI32Type(), isLonger)));
  // Few values are carried, as the loops over tiles have no registers for more:
  // the number of the next split, the first of 32 tasks, and the number of its
  // first split.
  SmallVector<Value> inits{begin, none, none};
  llvm::append_range(inits, progress);
  // Another stream may shorten sequences meanwhile, so that the splits end
  // before `end`.
  b.emitWhile(
      inits,
      [&](ValueRange all) {
        return b.both(b.compare(ult, all[0], end),
                      b.compare(ult, all[1], numTasks));
      },
      [&](ValueRange all) {
        Splits own = findOwnSplits(all[1]);
        Value count = b.mul(own.count, heads);
        Value ownEnd = b.add(all[2], addLanesBefore(count));
        Value lanes = b.ballot(b.compare(ult, all[0], ownEnd));
        return b.emitIf(
            b.compare(arith::CmpIPredicate::ne, lanes, none), all.getTypes(),
            [&] {
              Value first = b.countTrailingZeros(lanes);
              Task task{
                  b.add(all[1], first), b.shuffle(b.sub(ownEnd, count), first),
                  b.shuffle(own.count, first), b.shuffle(own.second, first)};
              progress = llvm::to_vector(all.drop_front(3));
              Value length = emitSplits(task, all[0], end);
              SmallVector<Value> after{b.add(all[0], length), all[1], all[2]};
              llvm::append_range(after, progress);
              return after;
            },
            [&] {
              SmallVector<Value> after{all[0], b.add(all[1], step),
                                       b.shuffle(ownEnd, b.i32(kTasks - 1))};
              llvm::append_range(after, all.drop_front(3));
              return after;
            });
      });
}

/// Emits the splits of the list of all from `number` on that come before `end`
/// and are consecutive splits of one head of the task. Returns their number.
Value DecodeAttention::emitSplits(const Task &task, Value number, Value end) {
  Value inTask = b.sub(number, task.begin);
  Value head = arith::DivUIOp::create(b, inTask, task.count);
  Value index = b.sub(inTask, b.mul(head, task.count));
  // Split 0 is followed by those with keys.
  Value isFirst = b.compare(arith::CmpIPredicate::eq, index, b.i32(0));
  Value split =
      b.select(isFirst, b.i32(0), b.add(b.add(index, -1), task.second));
  Value isAlone = b.both(
      isFirst, b.compare(arith::CmpIPredicate::ugt, task.second, b.i32(1)));
  Value length =
      arith::MinUIOp::create(b, b.sub(end, number), b.sub(task.count, index));
  length = b.select(isAlone, b.i32(1), length);
  originOfRun = b.sub(b.sub(number, index), firstOfWarp);
  secondOfRun = task.second;
  emitRun(task.number, head, split, length);
  return length;
}

/// Finds the warp and the rows of the thread. Hides from compilers that these
/// are those of the code before: addresses that follow from them would keep
/// registers in loops over tiles of keys.
void DecodeAttention::findThread() {
  thread = WarpgroupBuilder(b).readThread();
  warp = b.div(thread, GpuAttentionTiles::kWarp);
  rows.clear();
  findRows(b.i32(0), b.i32(0));
  copier = lane;
}

/// Emits `length` splits of a head, of which the first is `split`, one after
/// the other. While the results of one are computed and stored, tiles of the
/// next one are under way, unless `where` has bounds.
void DecodeAttention::emitRun(Value task, Value head, Value split,
                              Value length) {
  findThread();
  scf::ForOp keys = nest.keys;
  Value first = b.toIndex(split), end = b.toIndex(b.add(split, length));
  Value one = createIndex(b, b.getLoc(), 1);
  reader.withScope([&] {
    takeTask(task, head);
    reader.withScope([&] {
      takeSplit(b.sub(end, one));
      endOfRun = reader.get(keys.getUpperBound());
      // Tiles of a split have no keys beyond its end.
      scalarsOfRun = reader.getScalars();
    });
    reader.withScope([&] {
      takeSplit(first);
      if (hasBounds())
        endOfRun = nullptr;
      else
        startTiles();
      loadQueries(lane, GpuAttentionTiles::kWarp, b.i32(0), tiles.getRows());
    });
    syncTiles();
    takeMatrices();
    progress = b.emitLoop(first, end, one, progress,
                          [&](Value number, ValueRange carried) {
                            progress = llvm::to_vector(carried);
                            reader.withScope([&] {
                              takeSplit(number);
                              if (hasBounds())
                                startTiles();
                              State state = emitTiles(createState());
                              findThread();
                              if (hasSplits())
                                storeSplit(state, number);
                              else
                                storeResults(state);
                              // The next split overwrites tiles.
                              if (hasBounds())
                                syncTiles();
                            });
                            return progress;
                          });
  });
  // The next queries replace those that other lanes read.
  syncTiles();
}

void DecodeAttention::startTiles() {
  if (hasBounds())
    return;
  TileRange range = getTileRange();
  if (tiles.stages == 2)
    loadTileAt(range.begin, range.endOfLoads, range.firstStage);
}

void DecodeAttention::startWarp() {
  warp = b.div(thread, GpuAttentionTiles::kWarp);
  lane = b.rem(thread, GpuAttentionTiles::kWarp);
  progress = {b.mul(warp, tiles.stages)};
}

/// A block for each split, up to as many as the GPU holds at once, and as there
/// is memory for.
Value DecodeAttention::getNumBlocks() {
  Value blocks =
      limitBlocks(host, nest.loops, numTiles, getBlocksPerMultiprocessor());
  if (!hasSplits())
    return blocks;
  Location loc = b.getLoc();
  return host.createOrFold<arith::MinUIOp>(
      loc, blocks, createIndex(host, loc, kMaxSplitWarps / tiles.warps));
}

//===----------------------------------------------------------------------===//
// Results of KV splits
//===----------------------------------------------------------------------===//

/// Finds the destinations of splits, and passes their size.
void DecodeAttention::findDestinations() {
  for (const AttentionNestParts::Output &output : nest.outputs) {
    linalg::GenericOp compute = output.compute;
    (compute.getNumLoops() == 3 ? outputs : logSums) = output;
  }
  scf::ForallOp loops = nest.loops;
  auto argument = cast<BlockArgument>(logSums.getDestination());
  auto tensor = loops.getTiedOpOperand(argument)
                    ->get()
                    .getDefiningOp<bufferization::ToTensorOp>();
  Location loc = loops.getLoc();
  // A split has a pair of numbers for each row.
  auto type = cast<MemRefType>(tensor.getBuffer().getType());
  Value size = createIndex(host, loc, 1);
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    size = host.createOrFold<arith::MulIOp>(
        loc, size,
        host.createOrFold<memref::DimOp>(loc, tensor.getBuffer(), dim));
  numSplitRows = kernel.addIndex(
      host,
      host.createOrFold<arith::DivUIOp>(loc, size, createIndex(host, loc, 2)));
}

/// Adds the results of a split, whose number is an index, to the state of its
/// group, or, if another warp has the first split of that, stores them by
/// themselves.
void DecodeAttention::storeSplit(const State &state, Value number) {
  SmallVector<RowSums> sums = emitRowSums(state);
  ThreadSoftmax softmax(b, sum, /*unit=*/1);
  auto eq = arith::CmpIPredicate::eq, ne = arith::CmpIPredicate::ne;
  Value none = b.i32(0);
  Value split = b.toI32(number), inGroup = b.rem(split, kSplitsPerGroup);
  Value beginOfGroup = b.sub(split, inGroup);
  // The number among the head's splits with work of this one, and of the first
  // one of its group.
  auto getIndex = [&](Value isFirst, Value inHead) {
    return b.select(isFirst, none, b.add(b.sub(inHead, secondOfRun), 1));
  };
  Value index = getIndex(b.compare(eq, split, none), split);
  Value first = getIndex(b.compare(eq, beginOfGroup, none),
                         arith::MaxUIOp::create(b, beginOfGroup, secondOfRun));
  Value isOwn =
      b.compare(arith::CmpIPredicate::sge, b.add(originOfRun, first), none);
  Value isFolded = b.both(isOwn, b.compare(ne, index, first));
  Value hasEntry = b.both(isOwn, b.compare(ne, inGroup, none));
  // The rows of splits by themselves: as many as there are, or those of the
  // first splits of each warp.
  Value areAll =
      b.compare(arith::CmpIPredicate::ule, numSplitRows,
                createIndex(b, b.getLoc(), getMaxSplitRows(numRows)));
  Value blocks = b.toI32(gpu::GridDimOp::create(b, gpu::Dimension::x));
  Value block = b.toI32(gpu::BlockIdOp::create(b, gpu::Dimension::x));
  Value worker = b.add(block, b.mul(blocks, warp));
  Value ownRows = b.mul(
      b.add(b.mul(worker, kSplitsPerGroup - 1), b.add(originOfRun, index)),
      numRows);
  const GpuKernel::Tensor &to = reader.getTensor(outputs.getDestination()),
                          &entries = reader.getTensor(logSums.getDestination());
  Value groups =
      b.div(b.add(gridSizes[kSplit], kSplitsPerGroup - 1), kSplitsPerGroup);
  Value firstRow = b.mul(groups, to.strides[0]);
  Value group = b.toIndex(b.div(split, kSplitsPerGroup));
  Value isFirstLane = b.compare(eq, laneColumn, none);
  auto type = VectorType::get({2}, sum);
  llvm::MaybeAlign alignment(2 * sum.getWidth() / 8);
  auto load = [&](Value memref, Value offset) -> Value {
    return vector::LoadOp::create(b, type, memref, ValueRange(offset),
                                  /*nontemporal=*/false, alignment);
  };
  auto store = [&](ArrayRef<Value> values, Value memref, Value offset) {
    Value pair = vector::FromElementsOp::create(b, type, values);
    vector::StoreOp::create(b, pair, memref, ValueRange(offset),
                            /*nontemporal=*/false, alignment);
  };
  // Lanes read what another one has stored of the split before.
  syncTiles();
  for (int64_t i = 0; i < getNumRows(); ++i) {
    const Row &row = rows[i];
    Value exists = emitExists(logSums, row);
    SmallVector<Value> at = emitIndices(logSums, row),
                       inOutputs = emitIndices(outputs, row);
    Value entry = getOffset(b, b.getLoc(), at, entries.strides);
    at.front() = b.toIndex(beginOfGroup);
    Value entryOfGroup = getOffset(b, b.getLoc(), at, entries.strides);
    inOutputs.front() = group;
    Value ownRow = b.select(areAll, b.toI32(entry), b.add(ownRows, row.number));
    Value target =
        b.select(isOwn, getOffset(b, b.getLoc(), inOutputs, to.strides),
                 b.add(firstRow, b.mul(b.toIndex(ownRow), sizes.valueDim)));
    SmallVector<Value> channels, results;
    forEachPair(outputs, state, sums[i], i, [&](Value channel, Value pair) {
      channels.push_back(b.add(target, b.toIndex(channel)));
      for (int64_t j : {0, 1})
        results.push_back(vector::ExtractOp::create(b, pair, j));
    });
    SmallVector<Value> empty{softmax.number(softmax.start), softmax.number(0)};
    empty.append(results.size(), softmax.number(0));
    SmallVector<Value> before = b.emitIf(
        b.both(exists, isFolded), ValueRange(empty).getTypes(),
        [&] {
          SmallVector<Value> vectors{
              load(entries.memref, b.mul(entryOfGroup, 2))};
          for (Value offset : channels)
            vectors.push_back(load(to.memref, offset));
          SmallVector<Value> numbers;
          for (Value vector : vectors)
            for (int64_t j : {0, 1})
              numbers.push_back(vector::ExtractOp::create(b, vector, j));
          return numbers;
        },
        [&] { return empty; });
    Value logSum = emitResult(logSums, {}, sums[i]);
    SmallVector<Value> after =
        addSplit(softmax, logSum, results, /*exists=*/nullptr, before);
    // All lanes of the row have its maximum and sum.
    syncTiles();
    b.emitIf(exists, [&] {
      // A split by itself keeps the signs of its zeros, which the sum with an
      // empty state would lose.
      for (auto [j, offset] : llvm::enumerate(channels))
        store({b.select(isOwn, after[2 + 2 * j], results[2 * j]),
               b.select(isOwn, after[3 + 2 * j], results[2 * j + 1])},
              to.memref, offset);
      b.emitIf(isFirstLane, [&] {
        Value rowNumber = arith::SIToFPOp::create(b, sum, ownRow);
        store({b.select(isOwn, after[0], logSum),
               b.select(isOwn, after[1], rowNumber)},
              entries.memref, b.mul(b.select(isOwn, entryOfGroup, entry), 2));
        b.emitIf(hasEntry, [&] {
          store({empty[0], empty[1]}, entries.memref, b.mul(entry, 2));
        });
      });
    });
  }
}

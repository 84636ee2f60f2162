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
#include "WarpgroupBuilder.h"

#include "posenc/IR/CreateIndex.h"
#include "posenc/Transforms/AttentionNest.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::posenc;

std::optional<GpuAttentionTiles>
mlir::posenc::getDecodeTiles(const AttentionNestParts &nest) {
  scf::ForallOp loops = nest.loops;
  OnlineAttentionOp tile = nest.tile;
  if (loops.getRank() != kLoopsWithPieces)
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

/// Returns the tiles of a piece. Those of all pieces of a run, one after the
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
// Pieces of warps
//===----------------------------------------------------------------------===//

/// Maps the loops over sequences, heads and tiles of queries, and clones the
/// scalars that do not depend on the piece.
void DecodeAttention::takeTask(Value number, Value head) {
  scf::ForallOp loops = nest.loops;
  Value tilesOfQueries = b.toI32(gridSizes[kQueryTile]);
  Value sequence = b.createOrFold<arith::DivUIOp>(number, tilesOfQueries),
        tile = b.createOrFold<arith::RemUIOp>(number, tilesOfQueries);
  reader.getScalars().map(
      ArrayRef(loops.getInductionVars()).take_front(kPiece),
      ValueRange{b.toIndex(sequence), b.toIndex(head), b.toIndex(tile)});
  reader.cloneInvariantScalars(cast<LoopLikeOpInterface>(*loops));
}

/// Clones the scalars of a piece, an index, of the task.
void DecodeAttention::takePiece(Value piece) {
  scf::ForallOp loops = nest.loops;
  reader.getScalars().map(loops.getInductionVars()[kPiece], piece);
  reader.cloneScalars(*loops.getBody());
}

/// Emits the pieces of each head of a task that have work: none without
/// queries, otherwise piece 0, with the sums of no keys or of a sink, and those
/// with keys that a query sees by its position.
DecodeAttention::Pieces DecodeAttention::findPieces(Value number) {
  Value none = b.i32(0), one = b.i32(1);
  Pieces pieces{one, one};
  reader.withScope([&] {
    takeTask(number, none);
    if (std::optional<Value> queries = getNumQueries(nest.outputs.front()))
      pieces.count = b.select(b.compare(arith::CmpIPredicate::sgt, *queries,
                                        createIndex(b, b.getLoc(), 0)),
                              one, none);
    if (!hasPieces())
      return;
    // Pieces bound the keys of the first and of the last one only on one side.
    scf::ForOp keys = nest.keys;
    Value begin, end;
    reader.withScope([&] {
      takePiece(createIndex(b, b.getLoc(), 0));
      begin = b.toI32(reader.get(keys.getLowerBound()));
    });
    reader.withScope([&] {
      takePiece(b.add(gridSizes[kPiece], -1));
      end = b.toI32(reader.get(keys.getUpperBound()));
    });
    PieceRange range = createPieceRange(b, begin, end, kKeysPerPiece);
    pieces.second = range.begin;
    Value count = b.add(b.sub(range.end, range.begin), 1);
    pieces.count = b.mul(pieces.count, count);
  });
  return pieces;
}

/// The same of a lane's task, of which there may be none.
DecodeAttention::Pieces DecodeAttention::findOwnPieces(Value first) {
  Value number = b.add(first, lane);
  Type i32 = b.getI32Type();
  SmallVector<Value> found = b.emitIf(
      b.compare(arith::CmpIPredicate::ult, number, numTasks), {i32, i32},
      [&]() -> SmallVector<Value> {
        Pieces pieces = findPieces(number);
        return {pieces.count, pieces.second};
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

/// Emits the code of a warp. The pieces with work of all tasks and heads are
/// one list, of which each warp of the grid takes as many one after the other.
/// The lanes look at 32 tasks together. There are fewer than 2^31 pieces.
void DecodeAttention::emitGrid() {
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
                   return {b.add(carried[0], findOwnPieces(task).count)};
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
  Value isLonger = b.compare(ult, worker, rest);
  Value end = b.add(
      begin, b.add(share, arith::ExtUIOp::create(b, b.getI32Type(), isLonger)));
  // Few values are carried, as the loops over tiles have no registers for more:
  // the number of the next piece, the first of 32 tasks, and the number of its
  // first piece.
  SmallVector<Value> inits{begin, none, none};
  llvm::append_range(inits, progress);
  // Another stream may shorten sequences meanwhile, so that the pieces end
  // before `end`.
  b.emitWhile(
      inits,
      [&](ValueRange all) {
        return b.both(b.compare(ult, all[0], end),
                      b.compare(ult, all[1], numTasks));
      },
      [&](ValueRange all) {
        Pieces own = findOwnPieces(all[1]);
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
              Value length = emitPieces(task, all[0], end);
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

/// Emits the pieces of the list of all from `number` on that come before `end`
/// and are consecutive pieces of one head of the task. Returns their number.
Value DecodeAttention::emitPieces(const Task &task, Value number, Value end) {
  Value inTask = b.sub(number, task.begin);
  Value head = arith::DivUIOp::create(b, inTask, task.count);
  Value index = b.sub(inTask, b.mul(head, task.count));
  // Piece 0 is followed by those with keys.
  Value isFirst = b.compare(arith::CmpIPredicate::eq, index, b.i32(0));
  Value piece =
      b.select(isFirst, b.i32(0), b.add(b.add(index, -1), task.second));
  Value isAlone = b.both(
      isFirst, b.compare(arith::CmpIPredicate::ugt, task.second, b.i32(1)));
  Value length =
      arith::MinUIOp::create(b, b.sub(end, number), b.sub(task.count, index));
  length = b.select(isAlone, b.i32(1), length);
  emitRun(task.number, head, piece, length);
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

/// Emits `length` pieces of a head, of which the first is `piece`, one after
/// the other. While the results of one are computed and stored, tiles of the
/// next one are under way, unless `where` has bounds.
void DecodeAttention::emitRun(Value task, Value head, Value piece,
                              Value length) {
  findThread();
  scf::ForOp keys = nest.keys;
  Value first = b.toIndex(piece), end = b.toIndex(b.add(piece, length));
  Value one = createIndex(b, b.getLoc(), 1);
  reader.withScope([&] {
    takeTask(task, head);
    reader.withScope([&] {
      takePiece(b.sub(end, one));
      endOfRun = reader.get(keys.getUpperBound());
      // Tiles of a piece have no keys beyond its end.
      scalarsOfRun = reader.getScalars();
    });
    reader.withScope([&] {
      takePiece(first);
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
                              takePiece(number);
                              if (hasBounds())
                                startTiles();
                              State state = emitTiles(createState());
                              findThread();
                              storeResults(state);
                              // The next piece overwrites tiles.
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

/// A block for each piece, up to as many as the GPU holds at once.
Value DecodeAttention::getNumBlocks() {
  return limitBlocks(host, nest.loops, numTiles, getBlocksPerMultiprocessor());
}

//===- WarpgroupAttention.cpp - attention kernels for sm_90a --------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WarpgroupAttention.h"

#include "GPU/Launch/DeviceFacts.h"
#include "GpuAttention.h"
#include "TileCopies.h"

#include "posenc/IR/CreateIndex.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;
using namespace mlir::posenc;

/// Channels of a product.
static constexpr int64_t kContracted = 16;

static GpuAttentionTiles getTiles(const WarpgroupTiles &groups) {
  GpuAttentionTiles tiles;
  tiles.warps = 4 * groups.consumers;
  tiles.rowTiles = 1;
  tiles.keys = groups.keys;
  tiles.stages = groups.stages;
  tiles.valueParts = groups.valueParts;
  // Products of a part begin with a column.
  if (groups.valueParts > 1)
    tiles.valueUnit = kColumnChannels;
  return tiles;
}

/// Gives the producer registers of the consumers if it has few and finds boxes
/// of pages of a dynamic size, whose code takes up to 32.
static WarpgroupTiles getRegisters(WarpgroupTiles groups,
                                   const AttentionNestParts &nest) {
  constexpr int64_t kFew = 24, kMoved = 16;
  OnlineAttentionOp tile = nest.tile;
  if (groups.producerRegisters <= kFew && hasDynamicBoxes(tile.getKey())) {
    groups.producerRegisters += kMoved;
    groups.consumerRegisters -= kMoved / groups.consumers;
  }
  return groups;
}

WarpgroupAttention::WarpgroupAttention(OpBuilder &host,
                                       const AttentionNestParts &nest,
                                       const WarpgroupTiles &groups)
    : AttentionKernel(host, nest, getTiles(groups), groups.getThreads(),
                      /*isWide=*/true, "_attention_sm_90a"),
      groups(getRegisters(groups, nest)), w(b) {
  kernel.getFunction()->setAttr(PosencDialect::kChipAttrName,
                                ChipAttr::get(b.getContext(), kWarpgroupsChip));
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

SharedAddress WarpgroupAttention::getQuery(Value row, Value channel) {
  // The column of 64 channels, and the swizzled unit of 16 bytes in its row.
  Value column = b.mul(b.div(channel, kColumnChannels),
                       groups.getRows() * WarpgroupTiles::kRowBytes);
  Value unit = b.div(b.rem(channel, kColumnChannels), 8);
  unit = arith::XOrIOp::create(b, unit, b.rem(row, 8));
  Value inUnit = b.mul(b.rem(channel, 8), 2);
  return {b.add(b.add(baseOffset, column),
                b.add(b.mul(row, WarpgroupTiles::kRowBytes),
                      b.add(b.mul(unit, 16), inUnit)))};
}

void WarpgroupAttention::syncRows() {
  w.syncThreads(b.add(rowGroup, kFirstRowsBarrier),
                groups.valueParts * WarpgroupTiles::kThreads);
}

Value WarpgroupAttention::getBarrier(BarrierKind kind, Value stage) {
  int64_t offset = groups.getTileBytes(sizes) +
                   groups.stages * kind * WarpgroupTiles::kBarrierBytes;
  return b.add(b.add(base, offset),
               b.mul(stage, WarpgroupTiles::kBarrierBytes));
}

void WarpgroupAttention::initBarriers() {
  Value isFirst = b.compare(arith::CmpIPredicate::eq, thread, b.i32(0));
  b.emitIf(isFirst, [&] {
    for (int64_t stage = 0; stage < groups.stages; ++stage) {
      for (BarrierKind kind : {kKeysArrived, kValuesArrived})
        w.initBarrier(getBarrier(kind, b.i32(stage)), 1);
      for (BarrierKind kind : {kKeysRead, kValuesRead})
        w.initBarrier(getBarrier(kind, b.i32(stage)), 4 * groups.consumers);
    }
    w.publishBarriers();
  });
  b.barrier();
}

WarpgroupAttention::Stage WarpgroupAttention::getNext(const Stage &stage) {
  Value next = b.add(stage.number, 1);
  Value wraps = b.compare(arith::CmpIPredicate::eq, next, b.i32(groups.stages));
  Value flipped = arith::XOrIOp::create(b, stage.phase, b.i32(1));
  return {b.select(wraps, b.i32(0), next),
          b.select(wraps, flipped, stage.phase)};
}

WarpgroupAttention::Stage WarpgroupAttention::getStage(Value number) {
  return {b.rem(number, groups.stages), b.rem(b.div(number, groups.stages), 2)};
}

Value WarpgroupAttention::getNumber(const Stage &stage) {
  return b.add(b.mul(stage.phase, groups.stages), stage.number);
}

//===----------------------------------------------------------------------===//
// Producer
//===----------------------------------------------------------------------===//

bool WarpgroupAttention::hasSeveralBoxes(const Copies &copies) const {
  return getBoxRows(copies.tensor, groups.keys) < groups.keys;
}

/// Waits for a stage, and expects the tile whose scalars have been cloned. One
/// thread runs this code.
void WarpgroupAttention::expectTile(const Copies &copies, const Stage &stage,
                                    Value key) {
  w.waitFor(getBarrier(copies.read, stage.number),
            arith::XOrIOp::create(b, stage.phase, b.i32(1)));
  if (hasHeaders() && copies.arrived == kKeysArrived)
    b.store(createHeader(key), getHeader(stage.number), 4);
  w.expectBytes(getBarrier(copies.arrived, stage.number), copies.bytes);
}

/// Returns the address of a stage's tile.
Value WarpgroupAttention::getTileAddress(const Copies &copies,
                                         const Stage &stage) {
  return b.add(b.add(base, copies.offset), b.mul(stage.number, copies.bytes));
}

/// Copies the columns of a box to a stage's tile, the first one to the address
/// `to`. One thread runs this code.
void WarpgroupAttention::copyBox(const Copies &copies, const Stage &stage,
                                 Value to, SmallVector<Value> coordinates) {
  Value barrier = getBarrier(copies.arrived, stage.number);
  int64_t columnBytes = groups.keys * WarpgroupTiles::kRowBytes;
  for (int64_t column = 0; column * columnBytes < copies.bytes; ++column) {
    coordinates.front() = b.i32(column * kColumnChannels);
    w.loadTile(b.add(to, column * columnBytes), copies.map, coordinates,
               barrier);
  }
}

/// Copies the tile whose scalars have been cloned, which is one box. One thread
/// runs this code.
void WarpgroupAttention::copyTile(const Copies &copies, const Stage &stage,
                                  Value key) {
  auto findBox = [&] {
    return getBoxCoordinates(reader, b, copies.tensor,
                             createIndex(b, b.getLoc(), 0));
  };
  SmallVector<Value> box;
  // The number of the page is loaded during the wait.
  if (arePages(copies.tensor))
    box = findBox();
  expectTile(copies, stage, key);
  Value to = getTileAddress(copies, stage);
  copyBox(copies, stage, to, box.empty() ? findBox() : box);
}

/// Copies the tile whose scalars have been cloned, box by box. All lanes of a
/// warp run this code: each finds one box, of which there are at most 16, so
/// that the numbers of all pages are loaded at once, and during the wait. The
/// first lane copies all boxes, which move to it from lane to lane.
void WarpgroupAttention::copyBoxes(const Copies &copies, const Stage &stage,
                                   Value key, Value isFirstLane) {
  Value rows = b.toI32(boxRows);
  Value lane = b.rem(thread, GpuAttentionTiles::kWarp);
  SmallVector<Value> own =
      getBoxCoordinates(reader, b, copies.tensor, b.toIndex(b.mul(lane, rows)));
  b.emitIf(isFirstLane, [&] { expectTile(copies, stage, key); });
  Value to = getTileAddress(copies, stage);
  // The first coordinate is that of a column.
  b.emitLoop(b.i32(0), b.i32(groups.keys), rows, ValueRange(own).drop_front(),
             [&](Value row, ValueRange carried) {
               SmallVector<Value> box(own);
               llvm::copy(carried, box.begin() + 1);
               Value offset = b.mul(row, WarpgroupTiles::kRowBytes);
               b.emitIf(isFirstLane, [&] {
                 copyBox(copies, stage, b.add(to, offset), box);
               });
               return llvm::map_to_vector(
                   carried, [&](Value value) { return b.shuffleDown(value); });
             });
}

/// Copies the tile whose scalars have been cloned. If tiles have headers or
/// several boxes, all lanes of a warp run this code.
void WarpgroupAttention::copyFound(const Copies &copies, const Stage &stage,
                                   Value key, Value isFirstLane) {
  if (hasSeveralBoxes(copies))
    copyBoxes(copies, stage, key, isFirstLane);
  else if (hasHeaders())
    b.emitIf(isFirstLane, [&] { copyTile(copies, stage, key); });
  else
    copyTile(copies, stage, key);
}

/// Emits the copies of all tiles that are not skipped, from the stage with the
/// number `firstNumber` on; returns the number of the next stage. If tiles have
/// headers or several boxes, all lanes of a warp run this code.
Value WarpgroupAttention::emitCopies(const Copies &copies, Value isFirstLane,
                                     Value firstNumber) {
  Stage firstStage = getStage(firstNumber);
  if (hasHeaders())
    return getNumber(
        endVisibleCopies(copies, isFirstLane,
                         emitVisibleCopies(copies, isFirstLane, firstStage)));
  scf::ForOp loop = nest.keys;
  Value begin = b.toI32(reader.get(loop.getLowerBound())),
        end = b.toI32(reader.get(loop.getUpperBound()));
  SmallVector<Value> last = b.emitLoop(
      begin, end, b.i32(groups.keys), {firstStage.number, firstStage.phase},
      [&](Value key, ValueRange carried) -> SmallVector<Value> {
        Stage stage{carried[0], carried[1]};
        reader.withScope([&] {
          mapKey(key);
          copyFound(copies, stage, key, isFirstLane);
        });
        Stage next = getNext(stage);
        return {next.number, next.phase};
      });
  return getNumber({last[0], last[1]});
}

/// Emits the copies of the tiles that `where` does not mask; returns the stage
/// after these.
WarpgroupAttention::Stage
WarpgroupAttention::emitVisibleCopies(const Copies &copies, Value isFirstLane,
                                      const Stage &firstStage) {
  scf::ForOp loop = nest.keys;
  Value begin = b.toI32(reader.get(loop.getLowerBound())),
        end = b.toI32(reader.get(loop.getUpperBound())),
        step = b.i32(groups.keys);
  // The stage and its phase are one number, as the producer has few registers.
  SmallVector<Value> first{getNumber(firstStage)};
  auto emitTiles = [&]() -> SmallVector<Value> {
    cloneSharedScalars();
    VisibleTiles tiles = findFirstVisible(begin, end, step);
    SmallVector<Value> carried(first);
    llvm::append_values(carried, tiles.next, tiles.visible, tiles.full);
    SmallVector<Value> last = b.emitWhile(
        carried,
        [&](ValueRange all) { return hasVisible({all[1], all[2], all[3]}); },
        [&](ValueRange all) -> SmallVector<Value> {
          Stage stage = getStage(all[0]);
          VisibleTiles current{all[1], all[2], all[3]};
          reader.withScope([&] {
            VisibleTile tile = getVisible(current, step);
            takeVisible(tile);
            copyFound(copies, stage, tile.key, isFirstLane);
          });
          Value next = getNumber(getNext(stage));
          VisibleTiles rest = findVisible(dropVisible(current), end, step);
          return {next, rest.next, rest.visible, rest.full};
        });
    return {last[0]};
  };
  SmallVector<Value> last;
  reader.withScope([&] {
    last = b.emitIf(b.compare(arith::CmpIPredicate::slt, begin, end),
                    ValueRange(first).getTypes(), emitTiles,
                    [&] { return first; });
  });
  isFullTile = nullptr;
  return getStage(last[0]);
}

/// Writes the header that tells that no tile follows. In blocks with several
/// tiles of queries, it has a stage as a tile has, whose copies have no bytes.
WarpgroupAttention::Stage
WarpgroupAttention::endVisibleCopies(const Copies &copies, Value isFirstLane,
                                     const Stage &stage) {
  bool isHeader = copies.arrived == kKeysArrived;
  if (isHeader || hasSplits())
    b.emitIf(isFirstLane, [&] {
      w.waitFor(getBarrier(copies.read, stage.number),
                arith::XOrIOp::create(b, stage.phase, b.i32(1)));
      if (isHeader)
        b.store(b.i32(-1), getHeader(stage.number), 4);
      w.arrive(getBarrier(copies.arrived, stage.number), isFirstLane);
    });
  return getNext(stage);
}

void WarpgroupAttention::emitProducer() {
  if (groups.movesRegisters())
    w.setRegisters(groups.producerRegisters, /*raises=*/false);
  Value lane = b.rem(thread, GpuAttentionTiles::kWarp);
  Value isFirstLane = b.compare(arith::CmpIPredicate::eq, lane, b.i32(0));
  Value warp = b.div(thread, GpuAttentionTiles::kWarp);
  auto emitWarp = [&](int64_t number, const Copies &copies) {
    Value isCopying = b.compare(arith::CmpIPredicate::eq, warp, b.i32(number));
    // All lanes evaluate the bounds of a region, find boxes, and look for
    // splits with keys.
    bool isOneThread = !hasHeaders() && !hasSeveralBoxes(copies);
    if (isOneThread && !hasSplits())
      isCopying = b.both(isCopying, isFirstLane);
    b.emitIf(isCopying, [&] {
      emitTilesOfQueries([&](Value first) -> Value {
        if (!isOneThread || !hasSplits())
          return emitCopies(copies, isFirstLane, first);
        return b.emitIf(
            isFirstLane, Type(b.getI32Type()),
            [&]() -> SmallVector<Value> {
              return {emitCopies(copies, isFirstLane, first)};
            },
            [&]() -> SmallVector<Value> { return {first}; })[0];
      });
    });
  };
  int64_t keys = groups.getQueryBytes(sizes);
  int64_t values = keys + groups.stages * groups.getKeyBytes(sizes);
  emitWarp(0, {op.getKey(), keyMap, kKeysArrived,
               groups.sharesValues ? kValuesRead : kKeysRead, keys,
               groups.getKeyBytes(sizes)});
  if (!groups.sharesValues)
    emitWarp(1, {op.getValue(), valueMap, kValuesArrived, kValuesRead, values,
                 groups.getValueBytes(sizes)});
}

//===----------------------------------------------------------------------===//
// Headers
//===----------------------------------------------------------------------===//

SharedAddress WarpgroupAttention::getHeader(Value stage) {
  int64_t offset =
      groups.getTileBytes(sizes) +
      groups.stages * WarpgroupTiles::kBarriers * WarpgroupTiles::kBarrierBytes;
  SharedAddress first{
      b.add(baseOffset, b.mul(stage, WarpgroupTiles::kHeaderBytes))};
  return first.plus(offset);
}

/// Emits the header of the tile at `key`, whose scalars have been cloned.
Value WarpgroupAttention::createHeader(Value key) {
  Value yes = arith::ConstantIntOp::create(b, 1, 1), applies = yes;
  Tile tile = findTile(b.i32(0));
  if (tile.isFull)
    applies = arith::XOrIOp::create(b, tile.isFull, yes);
  Value partial = isPartial(tile, {b.i32(0), b.i32(queriesPerHead - 1)});
  if (op.getMask())
    partial = yes;
  Value flags = b.select(applies, b.i32(kIsPartial | kAppliesWhere), b.i32(0));
  if (partial)
    flags = arith::OrIOp::create(
        b, flags, b.select(partial, b.i32(kIsPartial), b.i32(0)));
  return arith::OrIOp::create(b, key, flags);
}

/// Waits for a tile of keys, and returns its header.
Value WarpgroupAttention::readHeader(const Stage &stage) {
  w.waitFor(getBarrier(kKeysArrived, stage.number), stage.phase);
  return b.load(getHeader(stage.number), b.getI32Type(), 4);
}

/// Emits an i1. All lanes have read the same header, which the vote tells the
/// assembler.
Value WarpgroupAttention::hasFlag(Value header, HeaderFlag flag) {
  Value bits = arith::AndIOp::create(b, header, b.i32(flag));
  return b.any(b.compare(arith::CmpIPredicate::ne, bits, b.i32(0)));
}

Value WarpgroupAttention::getFirstKey(Value header) {
  return arith::AndIOp::create(b, header, b.i32(~(kIsPartial | kAppliesWhere)));
}

//===----------------------------------------------------------------------===//
// Consumers
//===----------------------------------------------------------------------===//

/// Clones the scalars of the loop over keys for the tile at `key`, an i32.
void WarpgroupAttention::mapKey(Value key) {
  scf::ForOp loop = nest.keys;
  reader.getScalars().map(loop.getInductionVar(), b.toIndex(key));
  reader.cloneScalars(*loop.getBody());
}

/// Clones the scalars of a tile that is not skipped.
void WarpgroupAttention::takeTile(Value key) {
  mapKey(key);
  if (scf::IfOp branch = nest.isVisible)
    reader.cloneScalars(*branch.thenBlock());
}

/// Returns the tile whose scalars have been cloned; its values are in a stage.
AttentionKernel::Tile WarpgroupAttention::findTile(Value stage) {
  Tile tile = AttentionKernel::findTile(stage);
  tile.values = getValues(stage);
  return tile;
}

Value WarpgroupAttention::getValues(Value stage) {
  return b.add(b.add(baseOffset, getFirstValues()),
               b.mul(stage, getValueStageBytes()));
}

int64_t WarpgroupAttention::getFirstValues() const {
  int64_t keys = groups.getQueryBytes(sizes);
  return groups.sharesValues ? keys
                             : keys + groups.stages * groups.getKeyBytes(sizes);
}

int64_t WarpgroupAttention::getValueStageBytes() const {
  return groups.sharesValues ? groups.getKeyBytes(sizes)
                             : groups.getValueBytes(sizes);
}

/// Moves a number that all lanes have to a uniform register, in which the
/// assembler does not keep numbers that depend on headers.
Value WarpgroupAttention::getUniform(Value number) {
  if (!hasHeaders())
    return number;
  return NVVM::ReduxOp::create(b, number.getType(), number, NVVM::ReduxKind::OR,
                               b.i32(-1));
}

/// Starts the products of queries and keys.
SmallVector<Value> WarpgroupAttention::multiplyQueries(const Stage &stage) {
  Value keys =
      b.add(keyDescriptor,
            arith::ExtUIOp::create(b, b.getI64Type(),
                                   b.mul(getUniform(stage.number),
                                         groups.getKeyBytes(sizes) >> 4)));
  // Loops would keep the descriptors of all products of wide heads, two
  // registers each.
  Value queries = queryDescriptor;
  if (groups.valueParts > 1)
    queries = w.tie(queries).front();
  if (groups.sharesValues)
    keys = b.add(keys,
                 arith::ExtUIOp::create(
                     b, b.getI64Type(),
                     b.mul(getFirstOwnKey(), WarpgroupTiles::kRowBytes >> 4)));
  SmallVector<Value> scores;
  for (int64_t channel = 0; channel < sizes.keyDim; channel += kContracted) {
    int64_t column = channel / kColumnChannels,
            inRow = channel % kColumnChannels * 2;
    Value a = w.advance(queries, inRow + column * groups.getRows() *
                                             WarpgroupTiles::kRowBytes);
    Value other = w.advance(keys, inRow + column * groups.keys *
                                              WarpgroupTiles::kRowBytes);
    scores = w.multiply(groups.getScoredKeys(), a, other, scores, element);
  }
  w.endProducts();
  return scores;
}

/// Starts the products of weights and values, which are added to `sums`.
SmallVector<Value> WarpgroupAttention::multiplyWeights(const Stage &stage,
                                                       ValueRange weights,
                                                       ValueRange sums) {
  Value values =
      b.add(valueDescriptor,
            arith::ExtUIOp::create(
                b, b.getI64Type(),
                b.mul(getUniform(stage.number), getValueStageBytes() >> 4)));
  SmallVector<Value> results(sums);
  for (int64_t key = 0; key < groups.keys; key += kContracted)
    results = w.multiplyRegisters(
        tiles.getValueChannels(sizes), weights.slice(key / 4, 4),
        w.advance(values, key * WarpgroupTiles::kRowBytes), results, element);
  w.endProducts();
  return results;
}

SharedAddress WarpgroupAttention::getValues(const Tile &tile, int64_t key,
                                            int64_t channel) {
  int64_t column = channel / kColumnChannels * groups.keys,
          unit = channel % kColumnChannels / 8;
  Value row = b.rem(lane, 16);
  Value swizzled =
      arith::XOrIOp::create(b, b.add(b.div(lane, 16), unit), b.rem(lane, 8));
  SharedAddress first{
      b.add(b.add(tile.values, b.mul(valuePart, groups.getPartBytes(sizes))),
            b.add(b.mul(row, WarpgroupTiles::kRowBytes), b.mul(swizzled, 16)))};
  return first.plus((column + key) * WarpgroupTiles::kRowBytes);
}

/// All warps of the warpgroups that share rows decide alike.
AttentionKernel::QueryRange WarpgroupAttention::getQueryRange() {
  constexpr int64_t kRows = WarpgroupTiles::kRows;
  if (queriesPerHead % kRows != 0)
    return {b.i32(0), b.i32(queriesPerHead - 1)};
  Value first = b.rem(b.mul(rowGroup, kRows), queriesPerHead);
  return {first, b.add(first, kRows - 1)};
}

SmallVector<Value> WarpgroupAttention::packAll(ArrayRef<Value> weights) {
  SmallVector<Value> words;
  for (int64_t key = 0; key < groups.getScoredKeys(); key += kContracted)
    llvm::append_range(words, packWeights(weights, key).front());
  return words;
}

/// Scales the accumulators if any factor of the warp is not 1.
void WarpgroupAttention::scaleIfNeeded(ArrayRef<Value> factors, State &state) {
  Value one = b.real(sum, 1.0), isNeeded;
  for (Value factor : factors) {
    Value differs =
        arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, factor, one);
    isNeeded = isNeeded ? arith::OrIOp::create(b, isNeeded, differs) : differs;
  }
  SmallVector<Value> before(state.accumulators);
  state.accumulators = b.emitIf(
      b.any(isNeeded), ValueRange(before).getTypes(),
      [&] {
        State scaled{before, {}, {}};
        scaleAccumulators(factors, scaled);
        return scaled.accumulators;
      },
      [&] { return before; });
}

/// Finds the thread's consumer, its rows, and its part of the values.
void WarpgroupAttention::findConsumer() {
  Value warp = b.add(b.div(thread, GpuAttentionTiles::kWarp), -4);
  // All lanes have the same number, which the shuffle tells the assembler:
  // loops that depend on it keep the number of a stage in uniform registers.
  consumer = b.shuffle(b.div(warp, 4), b.i32(0));
  int64_t parts = groups.valueParts;
  rowGroup = b.div(consumer, parts);
  rows.clear();
  findRows(b.sub(warp, b.mul(b.sub(consumer, rowGroup), 4)),
           b.rem(consumer, parts));
}

/// Emits the tile of queries whose scalars have been cloned; returns the number
/// of the stage after `firstNumber` and those of the tile.
Value WarpgroupAttention::consumeTile(Value firstNumber) {
  findConsumer();
  int64_t numLoaders = groups.valueParts * WarpgroupTiles::kThreads;
  isLeader = b.compare(arith::CmpIPredicate::eq, lane, b.i32(0));
  Value firstRow = b.mul(rowGroup, WarpgroupTiles::kRows);
  loadQueries(b.rem(b.add(thread, -WarpgroupTiles::kThreads), numLoaders),
              numLoaders, firstRow, WarpgroupTiles::kRows);
  w.fenceAsyncProxy();
  syncRows();
  Value keys = b.add(base, groups.getQueryBytes(sizes));
  queryDescriptor =
      w.describe(b.add(base, b.mul(firstRow, WarpgroupTiles::kRowBytes)), 16);
  keyDescriptor = w.describe(keys, 16);
  Value values = b.add(base, getFirstValues());
  valueDescriptor =
      w.describe(b.add(values, b.mul(valuePart, groups.getPartBytes(sizes))),
                 groups.keys * WarpgroupTiles::kRowBytes);
  Progress progress = emitTilesOfKeys(getStage(firstNumber));
  if (groups.sharesValues) {
    addSums(progress.state);
    // Rows take no registers of the loops.
    thread = w.readThread();
    findConsumer();
  }
  storeResults(progress.state);
  return getNumber(progress.stage);
}

void WarpgroupAttention::emitConsumer() {
  if (groups.movesRegisters())
    w.setRegisters(groups.consumerRegisters, /*raises=*/true);
  emitTilesOfQueries([&](Value firstNumber) {
    // Hides from compilers that the number of the thread is that of the tile
    // before: it and values that follow from it would keep their registers from
    // tile to tile.
    bool hasSeveral = isPersistent() || hasSplits();
    if (hasSeveral)
      thread = w.readThread();
    Value next = consumeTile(firstNumber);
    // The next queries replace results that other warps read.
    if (hasSeveral)
      syncRows();
    return next;
  });
}

//===----------------------------------------------------------------------===//
// Tiles of queries
//===----------------------------------------------------------------------===//

/// Whether blocks may compute several tiles of queries: the tiles allow it, and
/// the host knows how long each tile takes, since no length, list of sequences
/// or region decides.
bool WarpgroupAttention::isPersistent() {
  scf::ForallOp loops = nest.loops;
  return !hasSplits() && groups.maxPersistentKeys > 0 &&
         op.getWhere().empty() &&
         loops.getBody()->getOps<tensor::ExtractOp>().empty();
}

/// Returns the number of the tile of queries that the block computes in a
/// round. Blocks take consecutive tiles in each round, in alternating order: in
/// causal attention, each tile of a head takes less time than the one before.
Value WarpgroupAttention::findTileOfQueries(Value round) {
  Value block = b.toI32(gpu::BlockIdOp::create(b, gpu::Dimension::x));
  Value blocks = b.toI32(gpu::GridDimOp::create(b, gpu::Dimension::x));
  Value isOdd = b.compare(arith::CmpIPredicate::ne, b.rem(round, 2), b.i32(0));
  Value inRound = b.select(isOdd, b.sub(b.add(blocks, -1), block), block);
  return b.add(b.mul(round, blocks), inRound);
}

void WarpgroupAttention::emitTilesOfQueries(
    function_ref<Value(Value firstNumber)> body) {
  if (hasSplits()) {
    walkTiles(b.i32(0), [&](ValueRange carried) -> SmallVector<Value> {
      return {body(carried[0])};
    });
    return;
  }
  if (!isPersistent()) {
    body(b.i32(0));
    return;
  }
  // Carries the round times the numbers of stages, plus the number of the next
  // stage, in one register.
  int64_t numNumbers = 2 * groups.stages;
  b.emitWhile(
      b.i32(0),
      [&](ValueRange all) {
        Value tile = findTileOfQueries(b.div(all[0], numNumbers));
        return b.compare(arith::CmpIPredicate::ult, tile, b.toI32(tilesOfGrid));
      },
      [&](ValueRange all) -> SmallVector<Value> {
        Value round = b.div(all[0], numNumbers), next;
        reader.withScope([&] {
          takeQueries(b.toIndex(findTileOfQueries(round)));
          next = body(b.rem(all[0], numNumbers));
        });
        return {b.add(b.mul(b.add(round, 1), numNumbers), next)};
      });
}

/// Sequences of few keys have as many blocks as the GPU has multiprocessors,
/// each of which has the registers of one block. Grids that are too large for a
/// launch stay so.
Value WarpgroupAttention::getNumBlocks() {
  if (!isPersistent())
    return AttentionKernel::getNumBlocks();
  Location loc = op.getLoc();
  Value keys = getNumSourceRows(host, loc, op.getKey());
  auto isAtMost = [&](Value value, int64_t limit) {
    return host.createOrFold<arith::CmpIOp>(
        loc, arith::CmpIPredicate::ule, value, createIndex(host, loc, limit));
  };
  Value isShort = host.createOrFold<arith::AndIOp>(
      loc, isAtMost(keys, groups.maxPersistentKeys),
      isAtMost(numTiles, std::numeric_limits<int32_t>::max()));
  Value few = limitBlocks(host, nest.loops, numTiles, 1);
  return host.createOrFold<arith::SelectOp>(loc, isShort, few, numTiles);
}

void WarpgroupAttention::emitGrid() {
  Value start = b.getSharedAddress();
  Value end = b.add(start, GpuAttentionTiles::kAlignment - 1);
  base = arith::AndIOp::create(b, end, b.i32(-GpuAttentionTiles::kAlignment));
  baseOffset = b.sub(base, start);
  keyMap = addTensorMap(host, kernel, b, op.getKey(), groups.keys);
  if (!groups.sharesValues)
    valueMap = addTensorMap(host, kernel, b, op.getValue(), groups.keys);
  boxRows = addBoxRows(host, kernel, b.getLoc(), op.getKey(), groups.keys);
  if (!isPersistent() && !hasSplits())
    return ifWorking([&] { emitRoles(); });
  tilesOfGrid = kernel.addIndex(host, numTiles);
  emitRoles();
}

/// Emits the code of the producer and of the consumers.
void WarpgroupAttention::emitRoles() {
  initBarriers();
  Value group = b.div(thread, WarpgroupTiles::kThreads);
  Value isProducer = b.compare(arith::CmpIPredicate::eq, group, b.i32(0));
  b.emitIf(
      isProducer, TypeRange(),
      [&]() -> SmallVector<Value> {
        emitProducer();
        return {};
      },
      [&]() -> SmallVector<Value> {
        emitConsumer();
        return {};
      });
}

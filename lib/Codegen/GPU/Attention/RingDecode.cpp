//===- RingDecode.cpp - kernels for few queries on sm_90a -----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RingDecode.h"

#include "GpuAttention.h"
#include "TileCopies.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::posenc;

/// Rows and columns of a matrix of queries, and bytes of a swizzled unit.
static constexpr int64_t kMatrix = 16, kSwizzleBytes = 16;

/// Rows of a fragment that a thread has one row of.
static constexpr int64_t kHalfRows = 8;

/// Registers of a thread that results, scores and queries may take. The other
/// registers of at most 255 hold operands and addresses.
static constexpr int64_t kMaxRegisters = 160;

RingDecode::RingDecode(OpBuilder &host, const AttentionNestParts &nest,
                       const GpuAttentionTiles &tiles)
    : DecodeAttention(host, nest, tiles, /*isWide=*/true,
                      "_attention_decode_sm_90a"),
      w(b) {
  kernel.getFunction()->setAttr(PosencDialect::kChipAttrName,
                                ChipAttr::get(b.getContext(), kWarpgroupsChip));
  isHalfTile = tiles.rowTiles == 1 && numRows <= kHalfRows;
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

Value RingDecode::getBarrier(Value stage) {
  return b.add(barriers, b.mul(stage, GpuAttentionTiles::kBarrierBytes));
}

SharedAddress RingDecode::getQuery(Value row, Value channel) {
  Value offset = b.add(b.mul(row, keyPitch), b.mul(channel, 2));
  return {b.add(b.add(b.add(baseOffset, offset), b.mul(warp, getQueryBytes())),
                tiles.getNumStages() * getStageBytes())};
}

SmallVector<Value> RingDecode::loadQueryMatrices(int64_t rowTile,
                                                 int64_t channel) {
  if (queries.empty())
    return DecodeAttention::loadQueryMatrices(rowTile, channel);
  int64_t columns = llvm::divideCeil(sizes.keyDim, kMatrix);
  return queries[rowTile * columns + channel / kMatrix];
}

/// Returns where a unit of 8 channels is in a row of swizzled columns, which
/// begin at the address `first`: `key` rows after `row`, and in the columns
/// after `channel`, a multiple of 16. The row's number mod 8 is the lane's.
SharedAddress RingDecode::getSwizzled(Value first, Value row, Value unit,
                                      int64_t key, int64_t channel) {
  Value swizzled = arith::XOrIOp::create(b, unit, b.rem(lane, 8));
  // The only part that does not change in loops. Columns are aligned, and
  // channels flip bits of the unit.
  Value inTile = b.add(b.mul(row, GpuAttentionTiles::kRowBytes),
                       b.mul(swizzled, kSwizzleBytes));
  Value address = arith::XOrIOp::create(b, b.add(first, inTile),
                                        b.i32(channel % kColumnChannels * 2));
  return {address,
          (channel / kColumnChannels * tiles.keys + key) *
              GpuAttentionTiles::kRowBytes,
          /*isAbsolute=*/true};
}

SharedAddress RingDecode::getKeys(const Tile &tile, int64_t key,
                                  int64_t channel) {
  Value row = b.add(b.rem(lane, 8), b.mul(b.div(lane, kMatrix), 8));
  return getSwizzled(tile.keys, row, b.rem(b.div(lane, 8), 2), key, channel);
}

SharedAddress RingDecode::getValues(const Tile &tile, int64_t key,
                                    int64_t channel) {
  return getSwizzled(tile.values, b.rem(lane, kMatrix), b.div(lane, kMatrix),
                     key, channel);
}

/// Returns the tile whose scalars have been cloned; `keys` and `values` are
/// addresses.
AttentionKernel::Tile RingDecode::findTile(Value stage) {
  Tile tile = DecodeAttention::findTile(stage);
  tile.keys = b.add(ring, b.mul(stage, getStageBytes()));
  tile.values = b.add(tile.keys, tiles.getKeyBytes(sizes));
  return tile;
}

/// Wide heads put the accumulators into shared memory and take those of 16
/// channels after another, as this code and the accumulators do not fit in
/// registers together.
SmallVector<Value> RingDecode::addSpecialValues(const Tile &tile,
                                                GetWeights getWeights,
                                                ArrayRef<Value> before) {
  int64_t bytes = tiles.getSpecialBytes(sizes);
  if (bytes == 0)
    return DecodeAttention::addSpecialValues(tile, getWeights, before);
  constexpr int64_t kFragment = 4, kBytes = 16, kChannels = 16;
  constexpr int64_t kFragmentBytes = GpuAttentionTiles::kWarp * kBytes;
  auto type = VectorType::get({kFragment}, sum);
  int64_t fragments = tiles.getValueChannels(sizes) / 8;
  SharedAddress first{b.add(b.add(baseOffset, b.mul(warp, bytes / tiles.warps)),
                            b.mul(lane, kBytes)),
                      tiles.getTileBytes(sizes)};
  auto load = [&](SharedAddress from, SmallVectorImpl<Value> &values) {
    Value vector = b.load(from, type, kBytes);
    for (int64_t i = 0; i < kFragment; ++i)
      values.push_back(vector::ExtractOp::create(b, vector, i));
  };
  auto store = [&](ArrayRef<Value> values, SharedAddress to) {
    b.store(vector::FromElementsOp::create(b, type, values), to, kBytes);
  };
  for (int64_t i = 0, e = before.size() / kFragment; i < e; ++i)
    store(before.slice(i * kFragment, kFragment),
          first.plus(i * kFragmentBytes));
  b.emitLoop(
      b.i32(0), b.i32(tiles.getValueChannels(sizes) / kChannels), b.i32(1), {},
      [&](Value group, ValueRange) -> SmallVector<Value> {
        SharedAddress own{b.add(first.base, b.mul(group, 2 * kFragmentBytes)),
                          first.offset};
        SmallVector<SharedAddress> places;
        SmallVector<Value> sums;
        for (int64_t i = 0; i < tiles.rowTiles; ++i)
          for (int64_t n : {0, 1}) {
            places.push_back(own.plus((i * fragments + n) * kFragmentBytes));
            load(places.back(), sums);
          }
        constexpr int64_t kGroups = kColumnChannels / kChannels;
        Value flipped = b.mul(b.rem(group, kGroups), 2 * kSwizzleBytes);
        Value column = b.mul(b.div(group, kGroups),
                             tiles.keys * GpuAttentionTiles::kRowBytes);
        SmallVector<Value> results = addSpecialChannels(
            getWeights,
            [&](int64_t key) {
              SharedAddress row = getValues(tile, key, /*channel=*/0);
              row.base =
                  b.add(arith::XOrIOp::create(b, row.base, flipped), column);
              return row;
            },
            sums);
        for (auto [i, place] : llvm::enumerate(places))
          store(ArrayRef(results).slice(i * kFragment, kFragment), place);
        return {};
      });
  SmallVector<Value> after;
  for (int64_t i = 0, e = before.size() / kFragment; i < e; ++i)
    load(first.plus(i * kFragmentBytes), after);
  return after;
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// Clones the scalars of the loop over keys for the tile at `key`, an i32.
void RingDecode::mapKey(Value key) {
  scf::ForOp loop = nest.keys;
  reader.getScalars().map(loop.getInductionVar(), b.toIndex(key));
  reader.cloneScalars(*loop.getBody());
}

/// Returns the coordinates of all boxes that the tile whose scalars have been
/// cloned may have.
SmallVector<Value> RingDecode::findBoxes() {
  SmallVector<Value> all;
  for (Value tile : {op.getKey(), op.getValue()}) {
    int64_t fewest = getBoxRows(tile, tiles.keys);
    for (int64_t i = 0; i < tiles.keys / fewest; ++i)
      llvm::append_range(all,
                         getBoxCoordinates(reader, b, tile, b.mul(boxRows, i)));
  }
  return all;
}

/// Copies the boxes of a tile. One thread runs this code.
void RingDecode::copyBoxes(ArrayRef<Value> boxes, Value stage) {
  Value barrier = getBarrier(stage);
  Value to = b.add(ring, b.mul(stage, getStageBytes()));
  w.expectBytes(barrier, getStageBytes());
  int64_t columnBytes = tiles.keys * GpuAttentionTiles::kRowBytes;
  auto copy = [&](Value tile, Value map, ArrayRef<Value> some, int64_t offset,
                  int64_t bytes) {
    int64_t fewest = getBoxRows(tile, tiles.keys);
    size_t rank = some.size() * fewest / tiles.keys;
    for (int64_t i = 0; i < tiles.keys / fewest; ++i) {
      SmallVector<Value> coordinates(some.take_front(rank));
      some = some.drop_front(rank);
      Value row = b.mul(b.toI32(boxRows), i);
      Value first = b.add(b.mul(row, GpuAttentionTiles::kRowBytes), offset);
      auto copyBox = [&] {
        for (int64_t column = 0; column * columnBytes < bytes; ++column) {
          coordinates.front() = b.i32(column * kColumnChannels);
          w.loadTile(b.add(to, b.add(first, column * columnBytes)), map,
                     coordinates, barrier);
        }
      };
      if (i == 0 || !hasDynamicBoxes(tile))
        copyBox();
      else
        b.emitIf(b.compare(arith::CmpIPredicate::ult, row, b.i32(tiles.keys)),
                 copyBox);
    }
  };
  // Keys and values have as many boxes.
  int64_t keyBytes = tiles.getKeyBytes(sizes);
  copy(op.getKey(), keyMap, boxes.take_front(boxes.size() / 2), 0, keyBytes);
  copy(op.getValue(), valueMap, boxes.drop_front(boxes.size() / 2), keyBytes,
       tiles.getValueBytes(sizes));
}

/// Returns the coordinates of the boxes of the tile at `key`, if there is one.
/// The pages are read from memory, which takes time. Empty if tiles are no
/// pages.
SmallVector<Value> RingDecode::findPages(Value key) {
  if (!arePages(op.getKey()))
    return {};
  size_t count = 0;
  Value exists = b.compare(arith::CmpIPredicate::slt, key, end);
  Value isCopied = b.both(exists, isLeader);
  for (Value tile : {op.getKey(), op.getValue()})
    count +=
        getNumCoordinates(tile) * tiles.keys / getBoxRows(tile, tiles.keys);
  SmallVector<Type> types(count, b.getI32Type());
  return b.emitIf(
      isCopied, types,
      [&] {
        SmallVector<Value> boxes;
        reader.withScope([&] {
          takeLoads();
          mapKey(key);
          boxes = findBoxes();
        });
        return boxes;
      },
      [&] { return SmallVector<Value>(count, b.i32(0)); });
}

/// Starts the copies of the tile at `key`, if there is one, in a stage that
/// all lanes have read. `pages` are from `findPages`, or empty.
void RingDecode::startTile(Value key, Value stage, ArrayRef<Value> pages) {
  Value exists = b.compare(arith::CmpIPredicate::slt, key, end);
  b.emitIf(b.both(exists, isLeader), [&] {
    if (!pages.empty())
      return copyBoxes(pages, stage);
    reader.withScope([&] {
      takeLoads();
      mapKey(key);
      copyBoxes(findBoxes(), stage);
    });
  });
}

/// The same for the next tile that `where` does not mask. Returns what
/// `started` has of it.
Value RingDecode::startVisible(Value stage) {
  visible = findVisible(visible, end, step);
  VisibleTile tile = getVisible(visible, step);
  Value exists = hasVisible(visible);
  b.emitIf(b.both(exists, isLeader), [&] {
    reader.withScope([&] {
      takeVisible(tile);
      copyBoxes(findBoxes(), stage);
    });
  });
  isFullTile = nullptr;
  visible = dropVisible(visible);
  Value full = arith::ExtUIOp::create(b, b.getI32Type(), tile.isFull);
  return b.select(exists, b.add(tile.key, full), b.i32(-1));
}

/// Initializes the barriers. The warp carries the stage of the next tile of
/// keys, and the phase of its barrier.
void RingDecode::startWarp() {
  DecodeAttention::startWarp();
  Value start = b.getSharedAddress();
  Value aligned =
      arith::AndIOp::create(b, b.add(start, GpuAttentionTiles::kAlignment - 1),
                            b.i32(-GpuAttentionTiles::kAlignment));
  baseOffset = b.sub(aligned, start);
  Value first = b.mul(warp, tiles.stages);
  ring = b.add(aligned, b.mul(first, getStageBytes()));
  barriers = b.add(
      b.add(aligned, tiles.getTileBytes(sizes) + tiles.getSpecialBytes(sizes)),
      b.mul(first, GpuAttentionTiles::kBarrierBytes));
  keyMap = addTensorMap(host, kernel, b, op.getKey(), tiles.keys);
  valueMap = addTensorMap(host, kernel, b, op.getValue(), tiles.keys);
  boxRows = addBoxRows(host, kernel, b.getLoc(), op.getKey(), tiles.keys);
  isLeader = b.compare(arith::CmpIPredicate::eq, lane, b.i32(0));
  progress = {b.i32(0), b.i32(0)};
  b.emitIf(isLeader, [&] {
    for (int64_t stage = 0; stage < tiles.stages; ++stage)
      w.initBarrier(getBarrier(b.i32(stage)), 1);
    w.publishBarriers();
  });
  syncTiles();
}

/// Starts the copies of the first tiles, which are under way while queries are
/// loaded.
void RingDecode::startTiles() {
  TileRange range = getTileRange();
  Value begin = b.toI32(range.begin);
  end = b.toI32(endOfRun ? endOfRun : range.end);
  step = b.toI32(range.step);
  started.clear();
  if (hasBounds())
    visible = findFirstVisible(begin, end, step);
  for (int64_t i = 0; i < tiles.stages; ++i) {
    Value stage = b.rem(b.add(progress[0], i), tiles.stages);
    if (hasBounds())
      started.push_back(startVisible(stage));
    else
      startTile(b.add(begin, b.mul(step, i)), stage, {});
  }
}

//===----------------------------------------------------------------------===//
// Tiles of keys
//===----------------------------------------------------------------------===//

/// Emits the state after the tile at `key`, whose copies have ended.
AttentionKernel::State RingDecode::addTileAt(Value key, Value stage,
                                             ValueRange before) {
  State state;
  reader.withScope([&] {
    mapKey(key);
    if (scf::IfOp branch = nest.isVisible)
      reader.cloneScalars(*branch.thenBlock());
    state = addTile(stage, unpack(before));
  });
  return state;
}

/// Returns the stage after this one, and the phase of its barrier.
std::pair<Value, Value> RingDecode::getNext(Value stage, Value phase) {
  Value next = b.add(stage, 1);
  Value wraps = b.compare(arith::CmpIPredicate::eq, next, b.i32(tiles.stages));
  Value flipped = arith::XOrIOp::create(b, phase, b.i32(1));
  return {b.select(wraps, b.i32(0), next), b.select(wraps, flipped, phase)};
}

void RingDecode::takeMatrices() {
  // A thread has 4 of 16 x 8 elements, and 4 words of 16 x 16 queries.
  int64_t columns = tiles.getValueChannels(sizes) + tiles.keys;
  int64_t queryColumns = llvm::alignTo(sizes.keyDim, kMatrix);
  if (tiles.rowTiles * (columns / 2 + queryColumns / 4) <= kMaxRegisters)
    for (int64_t i = 0; i < tiles.rowTiles; ++i)
      for (int64_t channel = 0; channel < queryColumns; channel += kMatrix)
        queries.push_back(DecodeAttention::loadQueryMatrices(i, channel));
}

AttentionKernel::State RingDecode::emitTiles(State state) {
  if (hasBounds())
    return emitVisibleTiles(state);
  TileRange range = getTileRange();
  SmallVector<Value> carried = pack(state);
  size_t numParts = carried.size();
  llvm::append_range(carried, progress);
  SmallVector<Value> results = b.emitLoop(
      b.toI32(range.begin), b.toI32(range.end), step, carried,
      [&](Value key, ValueRange arguments) {
        Value stage = arguments[numParts], phase = arguments[numParts + 1];
        // The loads are under way during the wait and the products.
        Value ahead = b.add(key, b.mul(step, tiles.stages));
        SmallVector<Value> pages = findPages(ahead);
        w.waitFor(getBarrier(stage), phase);
        SmallVector<Value> all =
            pack(addTileAt(key, stage, arguments.take_front(numParts)));
        syncTiles();
        startTile(ahead, stage, pages);
        auto [next, nextPhase] = getNext(stage, phase);
        llvm::append_values(all, next, nextPhase);
        return all;
      });
  progress = {results[numParts], results[numParts + 1]};
  return unpack(ValueRange(results).take_front(numParts));
}

/// Emits the loop over the tiles that `where` does not mask.
AttentionKernel::State RingDecode::emitVisibleTiles(State state) {
  SmallVector<Value> carried = pack(state);
  size_t numParts = carried.size();
  llvm::append_range(carried, progress);
  llvm::append_values(carried, visible.next, visible.visible, visible.full);
  size_t firstStarted = carried.size();
  llvm::append_range(carried, started);
  SmallVector<Value> results = b.emitWhile(
      carried,
      [&](ValueRange all) {
        return b.compare(arith::CmpIPredicate::sge, all[firstStarted],
                         b.i32(0));
      },
      [&](ValueRange arguments) {
        Value stage = arguments[numParts], phase = arguments[numParts + 1];
        visible = {arguments[numParts + 2], arguments[numParts + 3],
                   arguments[numParts + 4]};
        ValueRange under = arguments.drop_front(firstStarted);
        isFullTile = b.compare(
            arith::CmpIPredicate::ne,
            arith::AndIOp::create(b, under.front(), b.i32(1)), b.i32(0));
        w.waitFor(getBarrier(stage), phase);
        SmallVector<Value> all =
            pack(addTileAt(arith::AndIOp::create(b, under.front(), b.i32(-2)),
                           stage, arguments.take_front(numParts)));
        isFullTile = nullptr;
        syncTiles();
        Value last = startVisible(stage);
        auto [next, nextPhase] = getNext(stage, phase);
        llvm::append_values(all, next, nextPhase, visible.next, visible.visible,
                            visible.full);
        llvm::append_range(all, under.drop_front());
        all.push_back(last);
        return all;
      });
  progress = {results[numParts], results[numParts + 1]};
  return unpack(ValueRange(results).take_front(numParts));
}

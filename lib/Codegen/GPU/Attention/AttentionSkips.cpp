//===- AttentionSkips.cpp - tiles of keys that `where` masks --------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The lanes of a warp evaluate the bounds of a region `where` for 32 tiles of
// keys at once, so that a tile without visible pairs costs no more than its
// lane. The warp then takes the others one after the other.
//
//===----------------------------------------------------------------------===//

#include "AttentionKernel.h"

using namespace mlir;
using namespace mlir::posenc;

/// Clones the scalars that all tiles share, such as the bounds of the queries,
/// whose elements the lanes of the warp divide. There must be a tile.
void AttentionKernel::cloneSharedScalars() {
  reader.setLane(b.rem(thread, GpuAttentionTiles::kWarp));
  reader.cloneInvariantScalars(nest.keys);
  reader.setLane(nullptr);
}

/// Looks for the first visible tile. All lanes of a warp run this code and
/// that of the functions below.
AttentionKernel::VisibleTiles
AttentionKernel::findFirstVisible(Value begin, Value end, Value step) {
  Value own = b.mul(b.rem(thread, GpuAttentionTiles::kWarp), step);
  return findVisible({b.add(begin, own), b.i32(0), b.i32(0)}, end, step);
}

/// Goes on to the next visible tile, unless `before` has one.
AttentionKernel::VisibleTiles
AttentionKernel::findVisible(const VisibleTiles &before, Value end,
                             Value step) {
  Value no = arith::ConstantIntOp::create(b, 0, 1),
        yes = arith::ConstantIntOp::create(b, 1, 1);
  auto look = [&](Value key) -> SmallVector<Value> {
    scf::ForOp loop = nest.keys;
    reader.getScalars().map(loop.getInductionVar(), b.toIndex(key));
    reader.cloneScalars(*loop.getBody());
    scf::IfOp isVisible = nest.isVisible, isFull = nest.isFull;
    return {isVisible ? reader.get(isVisible.getCondition()) : yes,
            isFull ? reader.get(isFull.getCondition()) : no};
  };
  SmallVector<Value> after = b.emitWhile(
      {before.next, before.visible, before.full},
      [&](ValueRange all) {
        Value exists = b.any(b.compare(arith::CmpIPredicate::slt, all[0], end));
        return b.both(b.compare(arith::CmpIPredicate::eq, all[1], b.i32(0)),
                      exists);
      },
      [&](ValueRange all) -> SmallVector<Value> {
        SmallVector<Value> flags;
        reader.withScope([&] {
          flags = b.emitIf(
              b.compare(arith::CmpIPredicate::slt, all[0], end),
              {b.getI1Type(), b.getI1Type()}, [&] { return look(all[0]); },
              [&]() -> SmallVector<Value> { return {no, no}; });
        });
        return {b.add(all[0], b.mul(step, GpuAttentionTiles::kWarp)),
                b.ballot(flags[0]), b.ballot(flags[1])};
      });
  return {after[0], after[1], after[2]};
}

Value AttentionKernel::hasVisible(const VisibleTiles &tiles) {
  return b.compare(arith::CmpIPredicate::ne, tiles.visible, b.i32(0));
}

AttentionKernel::VisibleTile
AttentionKernel::getVisible(const VisibleTiles &tiles, Value step) {
  Value next = b.shuffle(tiles.next, b.countTrailingZeros(tiles.visible));
  // The lowest bit that is set, and no other one.
  Value bit =
      arith::AndIOp::create(b, tiles.visible, b.sub(b.i32(0), tiles.visible));
  return {b.sub(next, b.mul(step, GpuAttentionTiles::kWarp)),
          b.compare(arith::CmpIPredicate::ne,
                    arith::AndIOp::create(b, tiles.full, bit), b.i32(0))};
}

AttentionKernel::VisibleTiles
AttentionKernel::dropVisible(const VisibleTiles &tiles) {
  return {tiles.next,
          arith::AndIOp::create(b, tiles.visible, b.add(tiles.visible, -1)),
          tiles.full};
}

/// Clones the scalars of a visible tile.
void AttentionKernel::takeVisible(const VisibleTile &tile) {
  scf::ForOp loop = nest.keys;
  reader.getScalars().map(loop.getInductionVar(), b.toIndex(tile.key));
  reader.cloneScalars(*loop.getBody());
  if (scf::IfOp branch = nest.isVisible)
    reader.cloneScalars(*branch.thenBlock());
  isFullTile = tile.isFull;
}

/// Emits the loop over the visible tiles.
AttentionKernel::State AttentionKernel::emitVisibleTiles(State state) {
  TileRange range = getTileRange();
  Value begin = b.toI32(range.begin), end = b.toI32(range.end),
        step = b.toI32(range.step);
  bool isDouble = tiles.stages == 2;
  auto load = [&](const VisibleTiles &visible, Value stage) {
    b.emitIf(hasVisible(visible), [&] {
      reader.withScope([&] {
        takeVisible(getVisible(visible, step));
        loadTile(stage);
      });
    });
    b.commitCopies();
  };
  SmallVector<Value> before = pack(state);
  size_t numParts = before.size();
  auto emitLoop = [&]() -> SmallVector<Value> {
    cloneSharedScalars();
    VisibleTiles first = findFirstVisible(begin, end, step);
    if (isDouble)
      load(first, range.firstStage);
    SmallVector<Value> carried(before);
    llvm::append_values(carried, range.firstStage, first.next, first.visible,
                        first.full);
    SmallVector<Value> results = b.emitWhile(
        carried,
        [&](ValueRange all) {
          return b.compare(arith::CmpIPredicate::ne, all[numParts + 2],
                           b.i32(0));
        },
        [&](ValueRange all) {
          Value stage = all[numParts];
          VisibleTiles visible{all[numParts + 1], all[numParts + 2],
                               all[numParts + 3]};
          VisibleTile tile = getVisible(visible, step);
          VisibleTiles rest = findVisible(dropVisible(visible), end, step);
          Value other = stage;
          auto wait = [&] {
            b.waitForCopies();
            syncTiles();
          };
          if (isDouble) {
            // The barrier also ends the reads of the tile that is overwritten.
            wait();
            other = b.sub(range.sumOfStages, stage);
            load(rest, other);
          } else {
            syncTiles();
            load(visible, stage);
            wait();
          }
          SmallVector<Value> next;
          reader.withScope([&] {
            takeVisible(tile);
            next = pack(addTile(stage, unpack(all.take_front(numParts))));
          });
          llvm::append_values(next, other, rest.next, rest.visible, rest.full);
          return next;
        });
    return llvm::to_vector(ArrayRef(results).take_front(numParts));
  };
  SmallVector<Value> after;
  reader.withScope([&] {
    after = b.emitIf(b.compare(arith::CmpIPredicate::slt, begin, end),
                     ValueRange(before).getTypes(), emitLoop,
                     [&] { return before; });
  });
  isFullTile = nullptr;
  return unpack(after);
}

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

/// Looks for the first tile that is seen. All lanes of a warp run this code and
/// that of the functions below.
AttentionKernel::SeenTiles
AttentionKernel::findFirstSeen(Value begin, Value end, Value step) {
  Value own = b.mul(b.rem(thread, GpuAttentionTiles::kWarp), step);
  return findSeen({b.add(begin, own), b.i32(0), b.i32(0)}, end, step);
}

/// Goes on to the next tile that is seen, unless `before` has one.
AttentionKernel::SeenTiles AttentionKernel::findSeen(const SeenTiles &before,
                                                     Value end, Value step) {
  Value no = arith::ConstantIntOp::create(b, 0, 1),
        yes = arith::ConstantIntOp::create(b, 1, 1);
  auto look = [&](Value key) -> SmallVector<Value> {
    scf::ForOp loop = nest.keys;
    reader.getScalars().map(loop.getInductionVar(), b.toIndex(key));
    reader.cloneScalars(*loop.getBody());
    scf::IfOp isSeen = nest.isSeen, isFull = nest.isFull;
    return {isSeen ? reader.get(isSeen.getCondition()) : yes,
            isFull ? reader.get(isFull.getCondition()) : no};
  };
  SmallVector<Value> after = b.emitWhile(
      {before.next, before.seen, before.full},
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

Value AttentionKernel::hasSeen(const SeenTiles &tiles) {
  return b.compare(arith::CmpIPredicate::ne, tiles.seen, b.i32(0));
}

AttentionKernel::SeenTile AttentionKernel::getSeen(const SeenTiles &tiles,
                                                   Value step) {
  Value next = b.shuffle(tiles.next, b.countTrailingZeros(tiles.seen));
  // The lowest bit that is set, and no other one.
  Value bit = arith::AndIOp::create(b, tiles.seen, b.sub(b.i32(0), tiles.seen));
  return {b.sub(next, b.mul(step, GpuAttentionTiles::kWarp)),
          b.compare(arith::CmpIPredicate::ne,
                    arith::AndIOp::create(b, tiles.full, bit), b.i32(0))};
}

AttentionKernel::SeenTiles AttentionKernel::dropSeen(const SeenTiles &tiles) {
  return {tiles.next,
          arith::AndIOp::create(b, tiles.seen, b.add(tiles.seen, -1)),
          tiles.full};
}

/// Clones the scalars of a tile that is seen.
void AttentionKernel::takeSeen(const SeenTile &tile) {
  scf::ForOp loop = nest.keys;
  reader.getScalars().map(loop.getInductionVar(), b.toIndex(tile.key));
  reader.cloneScalars(*loop.getBody());
  if (scf::IfOp branch = nest.isSeen)
    reader.cloneScalars(*branch.thenBlock());
  isFullTile = tile.isFull;
}

/// Emits the loop over the tiles that are seen.
AttentionKernel::State AttentionKernel::emitSeenTiles(State state) {
  TileRange range = getTileRange();
  Value begin = b.toI32(range.begin), end = b.toI32(range.end),
        step = b.toI32(range.step);
  bool isDouble = tiles.stages == 2;
  auto load = [&](const SeenTiles &seen, Value stage) {
    b.emitIf(hasSeen(seen), [&] {
      reader.withScope([&] {
        takeSeen(getSeen(seen, step));
        loadTile(stage);
      });
    });
    b.commitCopies();
  };
  SmallVector<Value> before = pack(state);
  size_t numParts = before.size();
  auto emitLoop = [&]() -> SmallVector<Value> {
    cloneSharedScalars();
    SeenTiles first = findFirstSeen(begin, end, step);
    if (isDouble)
      load(first, range.firstStage);
    SmallVector<Value> carried(before);
    llvm::append_values(carried, range.firstStage, first.next, first.seen,
                        first.full);
    SmallVector<Value> results = b.emitWhile(
        carried,
        [&](ValueRange all) {
          return b.compare(arith::CmpIPredicate::ne, all[numParts + 2],
                           b.i32(0));
        },
        [&](ValueRange all) {
          Value stage = all[numParts];
          SeenTiles seen{all[numParts + 1], all[numParts + 2],
                         all[numParts + 3]};
          SeenTile tile = getSeen(seen, step);
          SeenTiles rest = findSeen(dropSeen(seen), end, step);
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
            load(seen, stage);
            wait();
          }
          SmallVector<Value> next;
          reader.withScope([&] {
            takeSeen(tile);
            next = pack(addTile(stage, unpack(all.take_front(numParts))));
          });
          llvm::append_values(next, other, rest.next, rest.seen, rest.full);
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

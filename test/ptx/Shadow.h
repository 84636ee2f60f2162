//===- Shadow.h - detection of races by the order of accesses ---*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_PTX_SHADOW_H
#define POSENC_TEST_PTX_SHADOW_H

#include "Machine.h"

namespace posenc::ptx {

// Each block has a logical clock, which every arrival at a barrier advances.
// For each pair of warps, the block knows the last tick of one warp whose
// accesses happen before the next ones of the other (as in a vector clock). Two
// accesses of different threads race if neither happens before the other and
// one of them is a write; accesses of different blocks are never ordered. The
// shadow cell of a byte contains its last writer and the readers since then:
// one thread, a set of warps of one block, or a flag for several blocks.
//
// Bulk copies write as one more warp, whose ticks the waits for an mbarrier
// make known to a warp.
//
// A read is checked when its value is used: kernels may load from addresses
// that belong to other threads, where that is cheaper than a branch, and
// discard the values.

/// A memory access of one lane.
struct ShadowAccess {
  ShadowAccess(const Warp &warp, unsigned lane, bool isStrong)
      : ShadowAccess(warp, lane, isStrong, warp.block.getTick()) {}
  ShadowAccess(const Warp &warp, unsigned lane, bool isStrong, uint32_t tick)
      : block(warp.block), warp(warp.index),
        thread(block.getThread(warp, lane)), tick(tick), isStrong(isStrong) {}

  /// Returns whether a read of the byte races with the last write.
  bool isRacing(const ShadowCell &cell) const {
    return cell.writer && !(isStrong && (cell.writeTick & strong)) &&
           !isOrdered(cell.writer - 1, cell.writeTick);
  }
  /// Returns whether the last write, by an ordinary store of this block,
  /// precedes a proxy fence of its thread that precedes this access.
  bool isFenced(const ShadowCell &cell) const {
    uint32_t writer = cell.writer - 1 - block.getFirstThread();
    if (!cell.writer || writer >= block.execution.getThreads())
      return true;
    uint32_t fence = block.proxyFences.find(writer, cell.writeTick & tickMask);
    return fence && (cell.writer - 1 == thread ||
                     fence <= block.getSeen(warp, writer / warpSize));
  }
  /// Records a read.
  void read(ShadowCell &cell) const;
  /// Records a read by all lanes of the warp together, which precedes the next
  /// accesses of each of them.
  void readAsWarp(ShadowCell &cell) const;
  /// Records a write and returns false, or returns true for a race. A write
  /// that does not change the byte does not race with other writes.
  bool write(ShadowCell &cell, bool isChange) const;

private:
  static constexpr uint32_t strong = 1u << 31;
  static constexpr uint32_t severalWarps = 1u << 30;
  static constexpr uint32_t severalBlocks = 1u << 29;
  static constexpr uint32_t tickMask = severalBlocks - 1;

  bool isOrdered(uint32_t other, uint32_t otherTick) const {
    if (other == thread)
      return true;
    uint32_t inBlock = other - block.getFirstThread();
    if (inBlock >= block.execution.getThreadStride())
      return false;
    return (otherTick & tickMask) <= block.getSeen(warp, inBlock / warpSize);
  }
  bool areReadsOrdered(const ShadowCell &cell) const;
  void addReader(ShadowCell &cell, uint32_t reader) const;

  Block &block;
  uint32_t warp, thread, tick;
  bool isStrong;
};

inline bool ShadowAccess::areReadsOrdered(const ShadowCell &cell) const {
  if (!cell.reader || (isStrong && (cell.readTick & strong)))
    return true;
  if (cell.readTick & severalBlocks)
    return false;
  if (!(cell.readTick & severalWarps))
    return isOrdered(cell.reader - 1, cell.readTick);
  if (cell.readBlock != block.getLinear())
    return false;
  const std::vector<uint32_t> &reads = block.readSets.get(cell.reader);
  for (uint32_t other = 0; other < block.numWarps; ++other)
    if (reads[other] > block.getSeen(warp, other) ||
        (reads[block.numWarps + other] > block.getSeen(warp, other) &&
         other != warp))
      return false;
  return true;
}

inline void ShadowAccess::read(ShadowCell &cell) const {
  bool isSingle = !(cell.readTick & (severalWarps | severalBlocks));
  if (cell.reader && !(isSingle && isOrdered(cell.reader - 1, cell.readTick)))
    return addReader(cell, warp);
  uint32_t flag = isStrong ? strong : 0;
  // An atomic read after a plain one of the same thread stays plain.
  if (cell.reader == thread + 1)
    flag &= cell.readTick;
  cell.reader = thread + 1;
  cell.readTick = tick | flag;
  cell.readBlock = block.getLinear();
}

inline void ShadowAccess::readAsWarp(ShadowCell &cell) const {
  if (!cell.reader) {
    cell.readTick = severalWarps;
    cell.readBlock = block.getLinear();
  }
  addReader(cell, block.numWarps + warp);
}

inline void ShadowAccess::addReader(ShadowCell &cell, uint32_t reader) const {
  uint32_t flag = isStrong ? cell.readTick & strong : 0;
  if ((cell.readTick & severalBlocks) || cell.readBlock != block.getLinear()) {
    cell.readTick = severalBlocks | flag;
    return;
  }
  uint32_t set = cell.reader;
  if (!(cell.readTick & severalWarps)) {
    uint32_t inBlock = cell.reader - 1 - block.getFirstThread();
    set = block.readSets.add(0, inBlock / warpSize, cell.readTick & tickMask);
  }
  cell.reader = block.readSets.add(set, reader, tick);
  cell.readTick = severalWarps | flag;
}

inline bool ShadowAccess::write(ShadowCell &cell, bool isChange) const {
  if (cell.writer && isChange && !(isStrong && (cell.writeTick & strong)) &&
      !isOrdered(cell.writer - 1, cell.writeTick))
    return true;
  if (!areReadsOrdered(cell))
    return true;
  cell.writer = thread + 1;
  cell.writeTick = tick | (isStrong ? strong : 0);
  cell.reader = 0;
  cell.readTick = 0;
  return false;
}

/// Updates the cells of neighboring bytes. Most of them have the same history,
/// so that what a cell becomes is what the cell before it became. Returns false
/// as soon as `update` does.
class ShadowRun {
public:
  template <typename F> bool update(ShadowCell &cell, F update) {
    if (hasLast && cell == before) {
      cell = after;
      return true;
    }
    hasLast = true;
    before = cell;
    if (!update(cell))
      return false;
    after = cell;
    return true;
  }

private:
  bool hasLast = false;
  ShadowCell before, after;
};

/// Describes the earlier access that conflicts with a load or store.
std::string describeRace(const Warp &warp, const ShadowCell &cell,
                         bool isStore);

} // namespace posenc::ptx

#endif // POSENC_TEST_PTX_SHADOW_H

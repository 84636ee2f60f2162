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
// one thread, a mask of warps of one block, or a flag for several blocks.
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
  /// Records a read.
  void read(ShadowCell &cell) const;
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
    if (inBlock >= block.execution.getThreads())
      return false;
    return (otherTick & tickMask) <= block.getSeen(warp, inBlock / warpSize);
  }
  bool areReadsOrdered(const ShadowCell &cell) const;

  const Block &block;
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
  for (uint32_t warps = cell.reader; warps; warps &= warps - 1)
    if ((cell.readTick & tickMask) > block.getSeen(warp, __builtin_ctz(warps)))
      return false;
  return true;
}

inline void ShadowAccess::read(ShadowCell &cell) const {
  uint32_t flag = isStrong ? strong : 0;
  bool isSingle = !(cell.readTick & (severalWarps | severalBlocks));
  if (!cell.reader || (isSingle && isOrdered(cell.reader - 1, cell.readTick))) {
    // An atomic read after a plain one of the same thread stays plain.
    if (cell.reader == thread + 1)
      flag &= cell.readTick;
    cell.reader = thread + 1;
    cell.readTick = tick | flag;
    cell.readBlock = block.getLinear();
    return;
  }
  flag &= cell.readTick;
  if ((cell.readTick & severalBlocks) || cell.readBlock != block.getLinear()) {
    cell.readTick = severalBlocks | flag;
    return;
  }
  uint32_t warps = cell.reader;
  if (isSingle) {
    uint32_t inBlock = cell.reader - 1 - block.getFirstThread();
    warps = 1u << (inBlock / warpSize);
  }
  cell.reader = warps | (1u << warp);
  cell.readTick =
      std::max(tick, cell.readTick & tickMask) | severalWarps | flag;
  return;
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

} // namespace posenc::ptx

#endif // POSENC_TEST_PTX_SHADOW_H

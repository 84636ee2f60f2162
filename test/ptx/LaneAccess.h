//===- LaneAccess.h - checked memory accesses of a warp ---------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_PTX_LANEACCESS_H
#define POSENC_TEST_PTX_LANEACCESS_H

#include "Lanes.h"
#include "Shadow.h"

namespace posenc::ptx {

/// Returns the shadow cell of a byte of `region`, or of the shared memory of
/// the warp's block if `region` is null.
inline ShadowCell &getCell(const Warp &warp, Region *region, uint64_t offset) {
  if (!region)
    return warp.block.sharedCells[offset];
  return region->getCells(
      offset, warp.block.execution.launch)[offset % Region::pageBytes];
}

/// Calls `function(cell, number)` for the shadow cells of `bytes` bytes until
/// it returns false. Returns whether it has not.
template <typename F>
bool forCells(const Warp &warp, Region *region, uint64_t offset, unsigned bytes,
              F function) {
  for (unsigned i = 0; i < bytes;) {
    ShadowCell *cells = &getCell(warp, region, offset + i);
    // The cells of a page, or of shared memory, are consecutive.
    uint64_t rest = Region::pageBytes - (offset + i) % Region::pageBytes;
    unsigned end = region ? std::min<uint64_t>(bytes, i + rest) : bytes;
    for (; i < end; ++i)
      if (!function(*cells++, i))
        return false;
  }
  return true;
}

/// The memory accesses of the lanes of a warp in one instruction. Functions
/// that return bool return false after they have reported a fault.
class LaneAccess {
public:
  LaneAccess(Warp &warp, const Instruction &instruction)
      : LaneAccess(warp, instruction, instruction.access, instruction.offset) {}
  /// For an instruction with several addresses: `info` and `offset` describe
  /// the access to one of them.
  LaneAccess(Warp &warp, const Instruction &instruction, const AccessInfo &info,
             int64_t offset)
      : alignment(info.bytes * info.count), warp(warp),
        instruction(instruction), info(info), offset(offset),
        bytes(info.bytes * info.count) {}

  /// The required alignment of the addresses: by default the access size.
  unsigned alignment;

  /// Resolves the address of each lane of `mask`, which is `base` plus the
  /// instruction's offset, and checks alignment, bounds and permissions.
  bool resolve(const Operand &base, LaneMask mask, bool isStore);
  /// Checks that the bytes a lane reads have been written, without a race.
  bool load(unsigned lane);
  /// The same for a load to registers. Races are reported when a register is
  /// used, since a value that is not used cannot be wrong.
  bool loadTo(llvm::ArrayRef<Operand> registers, unsigned lane);
  /// Checks for races and writes the bytes of a lane.
  bool store(unsigned lane, const uint8_t *from);
  /// Checks for races and marks the shared bytes of a lane as being written by
  /// the instruction, an asynchronous copy.
  bool beginAsync(unsigned lane);
  /// Checks the write of shared bytes, which are inside, by an asynchronous
  /// operation of a lane.
  static bool checkAsyncWrite(Warp &warp, unsigned lane,
                              const Instruction &instruction, uint32_t begin,
                              uint32_t end);

  uint8_t *at(unsigned lane) const { return pointers[lane]; }
  bool isShared(unsigned lane) const {
    return targets[lane].space == Space::Shared;
  }
  /// The offset of a lane's address in its state space or region.
  uint64_t getOffset(unsigned lane) const { return targets[lane].offset; }
  unsigned getBytes() const { return bytes; }

private:
  struct Target {
    Space space;
    Region *region;
    uint64_t offset;
    bool isLane; // local memory, or .param memory of a function
  };
  bool resolveLane(unsigned lane, uint64_t address, bool isStore);
  bool fault(FaultKind kind, unsigned lane, const llvm::Twine &message);
  bool checkWritten(unsigned lane);
  bool checkIdle(unsigned lane, bool isStore);
  bool markWritten(unsigned lane, const uint8_t *from);
  bool isTracked(unsigned lane) const;
  void countGlobal(LaneMask mask, bool isStore);
  void countShared(LaneMask mask);

  Warp &warp;
  const Instruction &instruction;
  const AccessInfo info;
  const int64_t offset;
  const unsigned bytes;
  uint64_t addresses[warpSize];
  uint8_t *pointers[warpSize];
  Target targets[warpSize];
};

} // namespace posenc::ptx

#endif // POSENC_TEST_PTX_LANEACCESS_H

//===- LaneAccess.h - checked addresses of a warp ---------------*- C++ -*-===//
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

/// What is known of a byte of shared memory (no region) or of a region.
inline ShadowCell &getCell(const Warp &warp, Region *region, uint64_t offset) {
  if (!region)
    return warp.block.sharedCells[offset];
  return region->getCells(
      offset, warp.block.execution.launch)[offset % Region::pageBytes];
}

/// Says who wrote or read there.
std::string describeRace(const Warp &warp, const ShadowCell &cell,
                         bool isStore);

/// The bytes that the lanes of a warp access in one instruction.
class LaneAccess {
public:
  LaneAccess(Warp &warp, const Instruction &instruction)
      : warp(warp), instruction(instruction),
        bytes(instruction.access.bytes * instruction.access.count) {}

  /// Finds the bytes of every lane, whose addresses are `base` and the
  /// instruction's offset. False after a fault.
  bool resolve(const Operand &base, LaneMask mask, bool isStore);
  /// Checks that what a lane reads has been written, and by whom.
  bool load(unsigned lane);
  /// The same for what goes to registers: who wrote it is checked when one is
  /// used.
  bool loadTo(llvm::ArrayRef<Operand> registers, unsigned lane);
  /// Writes a lane's bytes, checked.
  bool store(unsigned lane, const uint8_t *from);

  uint8_t *at(unsigned lane) const { return pointers[lane]; }
  unsigned getBytes() const { return bytes; }

private:
  struct Target {
    Space space;
    Region *region;
    uint64_t offset;
    bool isLane; // a lane's own memory
  };
  bool resolveLane(unsigned lane, uint64_t address, bool isStore);
  bool fault(FaultKind kind, unsigned lane, const llvm::Twine &message);
  bool checkWritten(unsigned lane);
  bool isTracked(unsigned lane) const;
  void countGlobal(LaneMask mask, bool isStore);
  void countShared(LaneMask mask);

  Warp &warp;
  const Instruction &instruction;
  unsigned bytes;
  uint64_t addresses[warpSize];
  uint8_t *pointers[warpSize];
  Target targets[warpSize];
};

} // namespace posenc::ptx

#endif // POSENC_TEST_PTX_LANEACCESS_H

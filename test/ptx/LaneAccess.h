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

/// Describes the earlier access that conflicts with a load or store.
std::string describeRace(const Warp &warp, const ShadowCell &cell,
                         bool isStore);

/// The memory accesses of the lanes of a warp in one instruction. Functions
/// that return bool return false after they have reported a fault.
class LaneAccess {
public:
  LaneAccess(Warp &warp, const Instruction &instruction)
      : warp(warp), instruction(instruction),
        bytes(instruction.access.bytes * instruction.access.count) {}

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

  uint8_t *at(unsigned lane) const { return pointers[lane]; }
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

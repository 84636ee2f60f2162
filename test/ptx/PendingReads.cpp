//===- PendingReads.cpp - reports races of loads when values are used -----===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LaneAccess.h"

#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace posenc::ptx {

void Warp::addPendingRead(uint32_t reg, unsigned lane,
                          const Instruction &instruction, Region *region,
                          uint64_t offset, bool hasRaced) {
  std::unique_ptr<PendingRead> &read = pending[reg];
  if (!read)
    read = std::make_unique<PendingRead>();
  if (!read->mask)
    pendingRegisters.push_back(reg);
  LaneMask bit = LaneMask(1) << lane;
  read->mask |= bit;
  read->raced = (read->raced & ~bit) | (hasRaced ? bit : 0);
  read->bytes = instruction.access.bytes;
  read->instruction = &instruction;
  read->lanes[lane] = {region, offset, block.getTick()};
}

bool Warp::commitRead(uint32_t reg, LaneMask mask) {
  PendingRead &read = *pending[reg];
  mask &= read.mask;
  read.mask &= ~mask;
  for (; mask; mask &= mask - 1) {
    unsigned number = __builtin_ctz(mask);
    const PendingRead::Lane &lane = read.lanes[number];
    ShadowAccess access(*this, number, /*isStrong=*/false, lane.tick);
    ShadowRun run;
    bool isOrdered = forCells(
        *this, lane.region, lane.offset, read.bytes,
        [&](ShadowCell &cell, unsigned i) {
          return run.update(cell, [&](ShadowCell &cell) {
            if (((read.raced >> number) & 1) || access.isRacing(cell)) {
              fault(FaultKind::Race, number, *read.instruction,
                    (lane.region ? "byte " + utostr(lane.offset + i) + " of '" +
                                       lane.region->name + "'"
                                 : "shared byte " + utostr(lane.offset + i)) +
                        ": " + describeRace(*this, cell, /*isStore=*/false));
              return false;
            }
            access.read(cell);
            return true;
          });
        });
    if (!isOrdered)
      return false;
  }
  return true;
}

bool Warp::useReads(const Instruction &instruction, LaneMask mask) {
  if (pendingRegisters.empty())
    return true;
  for (uint32_t reg : instruction.reads)
    if (pending[reg] && (pending[reg]->mask & mask) && !commitRead(reg, mask))
      return false;
  return true;
}

bool Warp::commitReads() {
  for (uint32_t reg : pendingRegisters)
    if (!commitRead(reg, ~LaneMask(0)))
      return false;
  pendingRegisters.clear();
  return true;
}

} // namespace posenc::ptx

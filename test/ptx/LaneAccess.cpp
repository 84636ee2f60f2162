//===- LaneAccess.cpp - checked memory accesses of a warp -----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LaneAccess.h"

#include "llvm/ADT/StringExtras.h"

#include <algorithm>

using namespace llvm;

namespace posenc::ptx {

bool LaneAccess::fault(FaultKind kind, unsigned lane, const Twine &message) {
  warp.fault(kind, lane, instruction,
             Twine(bytes) + " bytes at 0x" + utohexstr(addresses[lane]) + ": " +
                 message);
  return false;
}

bool LaneAccess::resolveLane(unsigned lane, uint64_t address, bool isStore) {
  Target &target = targets[lane];
  target.space = info.space;
  target.region = nullptr;
  target.isLane = false;
  if (target.space == Space::Generic) {
    target.space = Space::Global;
    for (auto [space, window] : {std::pair(Space::Shared, sharedWindow),
                                 std::pair(Space::Local, localWindow),
                                 std::pair(Space::Param, paramWindow)}) {
      if (address - window < windowSize) {
        target.space = space;
        address -= window;
      }
    }
  }
  Execution &execution = warp.block.execution;
  target.offset = address;
  auto isInside = [&](uint64_t size) {
    return address <= size && bytes <= size - address;
  };
  switch (target.space) {
  case Space::Shared:
    if (!isInside(warp.block.shared.size()))
      return fault(FaultKind::OutOfBounds, lane,
                   "shared memory has " + Twine(warp.block.shared.size()) +
                       " bytes");
    pointers[lane] = warp.block.shared.data() + address;
    return true;
  case Space::Param:
    if (address < laneParams) {
      if (!isInside(execution.params.size()))
        return fault(FaultKind::OutOfBounds, lane,
                     "the parameters have " + Twine(execution.params.size()) +
                         " bytes");
      if (isStore)
        return fault(FaultKind::ReadOnly, lane,
                     "kernel parameters are read-only");
      pointers[lane] = execution.params.data() + address;
      return true;
    }
    address -= laneParams;
    target.offset = address;
    [[fallthrough]];
  case Space::Local:
    target.isLane = true;
    if (!isInside(warp.laneBytes))
      return fault(FaultKind::OutOfBounds, lane,
                   "local memory has " + Twine(warp.laneBytes) + " bytes");
    pointers[lane] = warp.laneMemory.data() + lane * warp.laneBytes + address;
    return true;
  default:
    break;
  }
  Region *region = execution.memory.find(address, bytes);
  if (!region)
    return fault(FaultKind::OutOfBounds, lane,
                 execution.memory.describe(address));
  if ((info.space == Space::Const) != region->isConst &&
      info.space != Space::Generic)
    return fault(FaultKind::OutOfBounds, lane,
                 "'" + region->name + "' is in another state space");
  if (isStore && region->access == Access::ReadOnly)
    return fault(FaultKind::ReadOnly, lane,
                 "'" + region->name + "' is read-only");
  target.region = region;
  target.offset = address - region->address;
  pointers[lane] = region->data + target.offset;
  return true;
}

bool LaneAccess::resolve(const Operand &base, LaneMask mask, bool isStore) {
  LaneMask misaligned = 0;
  bool isNarrow = base.bytes == 4;
  forLanes(mask, [&](unsigned lane) {
    uint64_t address = isNarrow ? warp.get<uint32_t>(base, lane)
                                : warp.get<uint64_t>(base, lane);
    addresses[lane] = address + offset;
    misaligned |= LaneMask(addresses[lane] % alignment != 0) << lane;
  });
  if (misaligned)
    return fault(FaultKind::Misaligned, __builtin_ctz(misaligned),
                 alignment == bytes
                     ? "the address is not a multiple of the access size"
                     : "the address is not a multiple of " + Twine(alignment));
  LaneMask global = 0, shared = 0;
  for (LaneMask rest = mask; rest; rest &= rest - 1) {
    unsigned lane = __builtin_ctz(rest);
    if (!resolveLane(lane, addresses[lane], isStore))
      return false;
    global |= LaneMask(targets[lane].region != nullptr) << lane;
    shared |= LaneMask(targets[lane].space == Space::Shared) << lane;
  }
  if (global)
    countGlobal(global, isStore);
  if (shared)
    countShared(shared);
  if (mask & ~(global | shared) && info.space != Space::Param)
    ++warp.block.execution.statistics.localAccesses;
  return true;
}

// Counts the sectors (32 bytes) and lines (128 bytes) that an access of global
// memory touches.
void LaneAccess::countGlobal(LaneMask mask, bool isStore) {
  uint64_t sectors[warpSize * 2];
  unsigned count = 0;
  bool isSorted = true;
  for (; mask; mask &= mask - 1) {
    uint64_t address = addresses[__builtin_ctz(mask)];
    // An aligned access of at most 32 bytes lies in one sector.
    uint64_t sector = address / 32;
    if (count && sectors[count - 1] == sector)
      continue;
    isSorted &= !count || sectors[count - 1] < sector;
    sectors[count++] = sector;
  }
  if (!isSorted) {
    std::sort(sectors, sectors + count);
    count = std::unique(sectors, sectors + count) - sectors;
  }
  uint64_t lines = 1;
  for (unsigned i = 1; i < count; ++i)
    lines += sectors[i] / 4 != sectors[i - 1] / 4;
  Statistics &statistics = warp.block.execution.statistics;
  ++(isStore ? statistics.stores : statistics.loads);
  (isStore ? statistics.storeSectors : statistics.loadSectors) += count;
  (isStore ? statistics.storeLines : statistics.loadLines) += lines;
}

// Counts the passes that an access of shared memory needs: in each phase, the
// largest number of words in one bank. Accesses of 8 and 16 bytes have a phase
// for each half or quarter of the warp.
void LaneAccess::countShared(LaneMask mask) {
  Statistics &statistics = warp.block.execution.statistics;
  ++statistics.sharedAccesses;
  unsigned numPhases = std::max(bytes / 4, 1u);
  unsigned lanesPerPhase = warpSize / numPhases;
  for (unsigned phase = 0; phase < numPhases; ++phase) {
    uint64_t words[warpSize];
    unsigned count = 0;
    for (unsigned i = 0; i < lanesPerPhase; ++i) {
      unsigned lane = phase * lanesPerPhase + i;
      if (!((mask >> lane) & 1))
        continue;
      for (unsigned word = 0; word < numPhases; ++word)
        words[count++] = targets[lane].offset / 4 + word;
    }
    std::sort(words, words + count);
    count = std::unique(words, words + count) - words;
    unsigned banks[32] = {}, maxWords = 0;
    for (unsigned i = 0; i < count; ++i)
      maxWords = std::max(maxWords, ++banks[words[i] % 32]);
    statistics.sharedPasses += maxWords;
  }
}

bool LaneAccess::isTracked(unsigned lane) const {
  const Target &target = targets[lane];
  return target.space == Space::Shared ||
         (target.region && target.region->access != Access::ReadOnly);
}

std::string describeRace(const Warp &warp, const ShadowCell &cell,
                         bool isStore) {
  const Execution &execution = warp.block.execution;
  uint32_t stride = execution.getThreadStride();
  std::string other;
  if (cell.writer && (cell.writer - 1) % stride >= execution.getThreads())
    return "data race: a bulk copy wrote here, and this thread has not waited "
           "for its mbarrier";
  if (cell.writer)
    other = "thread " + utostr((cell.writer - 1) % stride) + " of block " +
            utostr((cell.writer - 1) / stride) + " wrote here";
  if (isStore && cell.reader)
    other += (other.empty() ? "" : ", or ") +
             std::string("another thread read here");
  return "data race: " + other + ", without a barrier in between";
}

// Checks that no asynchronous operation is writing the shared bytes or, for a
// store, reading them, and that they are not an mbarrier.
bool LaneAccess::checkIdle(unsigned lane, bool isStore) {
  const Target &target = targets[lane];
  if (target.space != Space::Shared)
    return true;
  Block &block = warp.block;
  uint64_t begin = target.offset, end = begin + bytes;
  if (const Instruction *copy = block.inFlight.findWriter(begin, end))
    return fault(FaultKind::Race, lane,
                 block.describe(*copy) +
                     " is still writing here: it has not been waited for");
  if (const Instruction *reader =
          isStore ? block.inFlight.findReader(begin, end) : nullptr)
    return fault(FaultKind::Race, lane,
                 block.describe(*reader) +
                     " is still reading here: it has not been waited for");
  if (const Instruction *init = block.mbarriers.find(begin, end))
    return fault(FaultKind::Undefined, lane,
                 "the bytes are those of an mbarrier: " +
                     block.describe(*init));
  return true;
}

bool LaneAccess::checkWritten(unsigned lane) {
  if (!checkIdle(lane, /*isStore=*/false))
    return false;
  const Target &target = targets[lane];
  const uint8_t *valid = nullptr;
  const char *what = "local memory";
  if (target.isLane) {
    valid = warp.laneValid.data() + lane * warp.laneBytes + target.offset;
  } else if (target.region && !target.region->valid.empty()) {
    valid = target.region->valid.data() + target.offset;
    what = target.region->name.c_str();
  }
  if (valid && std::find(valid, valid + bytes, 0) != valid + bytes)
    return fault(FaultKind::Uninitialized, lane,
                 Twine("'") + what + "' has not been written there");
  if (target.space != Space::Shared)
    return true;
  const ShadowCell *cells = &getCell(warp, nullptr, target.offset);
  for (unsigned i = 0; i < bytes; ++i)
    if (!cells[i].writer)
      return fault(FaultKind::Uninitialized, lane,
                   "'shared memory' has not been written there");
  return true;
}

bool LaneAccess::load(unsigned lane) {
  if (!checkWritten(lane))
    return false;
  if (!isTracked(lane) || !warp.block.execution.options.checkRaces)
    return true;
  const Target &target = targets[lane];
  ShadowAccess access(warp, lane, info.isStrong);
  ShadowRun run;
  return forCells(warp, target.region, target.offset, bytes,
                  [&](ShadowCell &cell, unsigned) {
                    return run.update(cell, [&](ShadowCell &cell) {
                      if (access.isRacing(cell))
                        return fault(
                            FaultKind::Race, lane,
                            describeRace(warp, cell, /*isStore=*/false));
                      access.read(cell);
                      return true;
                    });
                  });
}

bool LaneAccess::loadTo(ArrayRef<Operand> registers, unsigned lane) {
  if (info.isStrong)
    return load(lane);
  if (!checkWritten(lane))
    return false;
  const Target &target = targets[lane];
  if (target.region)
    for (const Operand &operand : registers)
      if (operand.reg != noRegister)
        warp.loadTrips.addLoad(operand.reg, lane);
  if (!isTracked(lane) || !warp.block.execution.options.checkRaces)
    return true;
  ShadowAccess access(warp, lane, /*isStrong=*/false);
  unsigned size = info.bytes;
  for (unsigned i = 0; i < registers.size(); ++i) {
    if (registers[i].reg == noRegister)
      continue;
    uint64_t offset = target.offset + i * size;
    bool hasRaced = !forCells(
        warp, target.region, offset, size,
        [&](ShadowCell &cell, unsigned) { return !access.isRacing(cell); });
    warp.addPendingRead(registers[i].reg, lane, instruction, target.region,
                        offset, hasRaced);
  }
  return true;
}

// Records a write in the shadow cells. `from` has the new bytes, or is null if
// they all count as changed.
bool LaneAccess::markWritten(unsigned lane, const uint8_t *from) {
  const Target &target = targets[lane];
  const uint8_t *to = pointers[lane];
  bool checkRaces = warp.block.execution.options.checkRaces;
  ShadowAccess access(warp, lane, info.isStrong);
  // Bytes that change and those that do not.
  ShadowRun runs[2];
  return forCells(warp, target.region, target.offset, bytes,
                  [&](ShadowCell &cell, unsigned i) {
                    if (target.region && cell.writer)
                      ++warp.block.execution.statistics.rewrittenBytes;
                    bool isChange = !from || from[i] != to[i];
                    return runs[isChange].update(cell, [&](ShadowCell &cell) {
                      ShadowCell before = cell;
                      if (access.write(cell, isChange) && checkRaces)
                        return fault(
                            FaultKind::Race, lane,
                            describeRace(warp, before, /*isStore=*/true));
                      // A suppressed race leaves the cell unchanged; mark it as
                      // written.
                      cell.writer = std::max(cell.writer, 1u);
                      return true;
                    });
                  });
}

bool LaneAccess::store(unsigned lane, const uint8_t *from) {
  if (!checkIdle(lane, /*isStore=*/true))
    return false;
  const Target &target = targets[lane];
  if (isTracked(lane)) {
    if (!markWritten(lane, from))
      return false;
    if (target.region && !target.region->valid.empty())
      std::memset(target.region->valid.data() + target.offset, 1, bytes);
  } else {
    std::memset(warp.laneValid.data() + lane * warp.laneBytes + target.offset,
                1, bytes);
  }
  std::memcpy(pointers[lane], from, bytes);
  return true;
}

bool LaneAccess::beginAsync(unsigned lane) {
  if (!checkIdle(lane, /*isStore=*/true) || !markWritten(lane, nullptr))
    return false;
  uint64_t begin = targets[lane].offset;
  warp.block.inFlight.beginWrite(begin, begin + bytes, &instruction);
  return true;
}

bool LaneAccess::checkAsyncWrite(Warp &warp, unsigned lane,
                                 const Instruction &instruction, uint32_t begin,
                                 uint32_t end) {
  AccessInfo byte;
  byte.space = Space::Shared;
  byte.bytes = 1;
  LaneAccess access(warp, instruction, byte, 0);
  access.targets[lane] = {Space::Shared, nullptr, 0, false};
  for (uint32_t i = begin; i < end; ++i) {
    access.addresses[lane] = access.targets[lane].offset = i;
    access.pointers[lane] = warp.block.shared.data() + i;
    if (!access.checkIdle(lane, /*isStore=*/true) ||
        !access.markWritten(lane, nullptr))
      return false;
  }
  return true;
}

} // namespace posenc::ptx

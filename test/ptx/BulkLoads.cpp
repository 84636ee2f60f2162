//===- BulkLoads.cpp - completion of copies to shared memory --------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Machine.h"

using namespace llvm;

namespace posenc::ptx {

namespace {

// When copies complete. Each is legal, and finds errors of its own.
enum class Completion {
  Late,   // when all threads wait; in their order
  AtOnce, // before the next instruction
  Random, // at any time, in any order
};

Completion getCompletion(uint32_t seed) {
  return seed == 0       ? Completion::Late
         : seed % 3 == 1 ? Completion::AtOnce
         : seed % 3 == 2 ? Completion::Late
                         : Completion::Random;
}

} // namespace

void Block::startLoad(BulkLoad load) {
  inFlight.beginWrite(load.to, load.to + load.data.size(), load.instruction);
  loads.push_back(std::move(load));
  if (getCompletion(execution.options.seed) == Completion::AtOnce)
    completeLoad(loads.size() - 1);
}

// Completes a copy if its time has come, or if all threads wait. Returns
// whether one has completed.
bool Block::runLoads(bool isStuck) {
  if (loads.empty())
    return false;
  size_t index = 0;
  if (getCompletion(execution.options.seed) == Completion::Random) {
    if (!isStuck && execution.random() % 8)
      return false;
    index = execution.random() % loads.size();
  } else if (!isStuck) {
    return false;
  }
  completeLoad(index);
  return true;
}

void Block::completeLoad(size_t index) {
  BulkLoad load = std::move(loads[index]);
  loads.erase(loads.begin() + index);
  uint32_t size = load.data.size();
  inFlight.endWrite(load.to, load.to + size);
  uint32_t writer = getFirstThread() + numWarps * warpSize + 1;
  for (uint32_t i = 0; i < size; ++i) {
    uint32_t to = swizzleAddress(load.to + i, load.swizzle);
    shared[to] = load.data[i];
    sharedCells[to] = ShadowCell();
    sharedCells[to].writer = writer;
    sharedCells[to].writeTick = tick;
  }
  noteProgress();
  MBarrier *barrier = mbarriers.get(load.mbarrier);
  if (!barrier)
    return execution.fault(FaultKind::Undefined, warps.front().get(), 0,
                           load.instruction,
                           "the mbarrier was invalidated before the copy was "
                           "complete");
  barrier->seen[numWarps] = tick++;
  barrier->bytes -= size;
  barrier->tryComplete();
}

} // namespace posenc::ptx

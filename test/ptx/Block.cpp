//===- Block.cpp - a CTA and its barriers ---------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lanes.h"

#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace posenc::ptx {

Block::Block(Execution &execution)
    : execution(execution), shared(execution.sharedBytes),
      sharedCells(execution.sharedBytes),
      numWarps(divideCeil(execution.getThreads(), warpSize)) {
  for (uint32_t i = 0; i < numWarps; ++i)
    warps.push_back(std::make_unique<Warp>(*this, i));
}

void Block::run(uint32_t number) {
  const std::array<uint32_t, 3> &grid = execution.shape.grid;
  linear = number;
  index = {number % grid[0], number / grid[0] % grid[1],
           number / grid[0] / grid[1]};
  tick = 1;
  seen.assign(numWarps * (numWarps + 1), 0);
  // A pattern that shows up in results computed from uninitialized memory.
  std::fill(shared.begin(), shared.end(), 0xcd);
  std::fill(sharedCells.begin(), sharedCells.end(), ShadowCell());
  readSets.reset(numWarps);
  inFlight.reset(shared.size());
  mbarriers.clear();
  for (FenceHistory *fences : {&proxyFences, &initFences})
    fences->reset(numWarps * warpSize);
  loads.clear();
  warpgroups.assign(divideCeil(numWarps, 4), Warpgroup());
  for (BarrierState &barrier : barriers)
    barrier = BarrierState();
  for (std::unique_ptr<Warp> &warp : warps)
    warp->start();

  bool isRandom = execution.options.seed;
  std::vector<uint32_t> runnable;
  while (!execution.hasFault()) {
    runnable.clear();
    bool haveAllEnded = true, isStuck = true;
    for (std::unique_ptr<Warp> &warp : warps) {
      haveAllEnded &= warp->hasEnded();
      if (!warp->isRunnable())
        continue;
      runnable.push_back(warp->index);
      isStuck &= warp->isPolling();
    }
    if (haveAllEnded)
      return checkEnd();
    if (runLoads(isStuck))
      continue;
    if (isStuck)
      return reportDeadlock();
    if (isRandom) {
      uint32_t which = execution.random() % runnable.size();
      warps[runnable[which]]->run(1 + execution.random() % 64);
      continue;
    }
    for (uint32_t warp : runnable) {
      warps[warp]->run(~uint64_t(0));
      if (execution.hasFault())
        return;
    }
  }
}

void Block::reportDeadlock() {
  std::string message = "deadlock: ";
  const Warp *first = nullptr;
  unsigned lane = 0, count = 0;
  const Instruction *instruction = nullptr;
  for (std::unique_ptr<Warp> &warp : warps) {
    std::string wait = warp->describeWait();
    if (wait.empty())
      continue;
    if (!first) {
      first = warp.get();
      instruction = warp->getWaiting(lane);
    }
    if (++count <= 4)
      message += (count > 1 ? "; " : "") + wait;
  }
  execution.fault(FaultKind::Barrier, first, lane, instruction, message);
}

// Shared memory may belong to another block from now on.
void Block::checkEnd() {
  if (!loads.empty())
    execution.fault(FaultKind::Race, warps.front().get(), 0,
                    loads.front().instruction,
                    "the block has ended before the copy was complete");
  for (const Warpgroup &group : warpgroups)
    if (!group.operations.empty())
      execution.fault(FaultKind::Undefined, warps.front().get(), 0,
                      group.operations.front().instruction,
                      "some warps of the warpgroup have ended without it");
}

std::string Block::describe(const Instruction &instruction) const {
  return execution.program.names[instruction.name] + " at line " +
         utostr(instruction.line);
}

void Block::syncWarp(uint32_t warp) {
  seen[warp * (numWarps + 1) + warp] = tick++;
}

void Block::see(uint32_t warp, const std::vector<uint32_t> &ticks) {
  uint32_t *row = seen.data() + warp * (numWarps + 1);
  for (uint32_t other : ticks) {
    *row = std::max(*row, other);
    ++row;
  }
}

void Block::release(const Warp &warp, MBarrier &barrier) {
  barrier.see(seen.data() + warp.index * (numWarps + 1));
  barrier.seen[warp.index] = tick;
}

void Block::acquire(const Warp &warp, const MBarrier &barrier) {
  see(warp.index, barrier.completed);
}

uint32_t Block::countLive() const {
  uint32_t count = 0;
  for (const std::unique_ptr<Warp> &warp : warps)
    count += __builtin_popcount(warp->getLive());
  return count;
}

void Block::arrive(Warp &warp, const Instruction &instruction, LaneMask mask) {
  unsigned lane = __builtin_ctz(mask);
  const BarrierInfo &info = instruction.barrier;
  auto getUniform = [&](unsigned operand, uint32_t &value) {
    value = warp.get<uint32_t>(instruction.operands[operand], lane);
    for (LaneMask rest = mask; rest; rest &= rest - 1)
      if (warp.get<uint32_t>(instruction.operands[operand],
                             __builtin_ctz(rest)) != value)
        return false;
    return true;
  };
  uint32_t id, count;
  if (!getUniform(1, id) || !getUniform(2, count))
    return warp.fault(
        FaultKind::Barrier, lane, instruction,
        "the lanes disagree on the barrier number or thread count");
  if (id >= barriers.size())
    return warp.fault(FaultKind::Barrier, lane, instruction,
                      "barrier " + Twine(id) + " does not exist; there are 16");
  if (info.hasCount && (count == 0 || count % warpSize))
    return warp.fault(FaultKind::Barrier, lane, instruction,
                      "the thread count " + Twine(count) +
                          " is not a multiple of 32");
  BarrierState &barrier = barriers[id];
  if (!barrier.first) {
    barrier.first = &instruction;
    barrier.hasCount = info.hasCount;
    barrier.expected = count;
    barrier.value = info.kind == BarrierInfo::And;
    barrier.seen.assign(numWarps + 1, 0);
  } else if (barrier.hasCount != info.hasCount || barrier.expected != count) {
    return warp.fault(
        FaultKind::Barrier, lane, instruction,
        "barrier " + Twine(id) + " expects " +
            (info.hasCount ? Twine(count) : Twine("all")) +
            " threads here, but " +
            (barrier.hasCount ? Twine(barrier.expected) : Twine("all")) +
            " at line " + Twine(barrier.first->line));
  }
  // An aligned barrier counts whole warps.
  bool isWhole = info.isAligned && info.hasCount;
  barrier.arrived += isWhole ? warpSize : __builtin_popcount(mask);
  if (info.kind >= BarrierInfo::And) {
    LaneMask yes = warp.getPred(instruction.operands[3]) & mask;
    if (info.kind == BarrierInfo::And)
      barrier.value &= yes == mask;
    else if (info.kind == BarrierInfo::Or)
      barrier.value |= yes != 0;
    else
      barrier.value += __builtin_popcount(yes);
  }
  // All accesses of this warp, and those it has seen, precede the barrier.
  for (uint32_t i = 0; i <= numWarps; ++i)
    barrier.seen[i] = std::max(barrier.seen[i], getSeen(warp.index, i));
  barrier.seen[warp.index] = tick++;
  if (info.kind == BarrierInfo::Arrive) {
    warp.pass();
  } else {
    barrier.warps |= 1u << warp.index;
    warp.blockAtBarrier(id);
  }
  if (barrier.hasCount && barrier.arrived > barrier.expected)
    return warp.fault(FaultKind::Barrier, lane, instruction,
                      Twine(barrier.arrived) +
                          " threads arrived at a barrier for " +
                          Twine(barrier.expected));
  checkBarriers();
}

void Block::checkBarriers() {
  for (unsigned id = 0; id < barriers.size(); ++id) {
    BarrierState &barrier = barriers[id];
    if (!barrier.first)
      continue;
    uint32_t expected = barrier.hasCount ? barrier.expected : countLive();
    if (barrier.arrived >= expected)
      complete(id);
  }
}

void Block::complete(uint8_t id) {
  BarrierState barrier = std::move(barriers[id]);
  barriers[id] = BarrierState();
  ++execution.statistics.barriers;
  noteProgress();
  // The waiting warps made no access after their arrival.
  for (LaneMask rest = barrier.warps; rest; rest &= rest - 1)
    barrier.seen[__builtin_ctz(rest)] = tick;
  ++tick;
  for (LaneMask rest = barrier.warps; rest; rest &= rest - 1) {
    uint32_t warp = __builtin_ctz(rest);
    see(warp, barrier.seen);
    warps[warp]->release(id, barrier.value);
  }
}

} // namespace posenc::ptx

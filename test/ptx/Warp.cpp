//===- Warp.cpp - SIMT execution of a warp --------------------------------===//
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

Warp::Warp(Block &block, uint32_t index)
    : block(block), index(index), laneBytes(block.execution.kernel.laneBytes),
      execution(block.execution),
      registers(execution.kernel.registerBytes + 64),
      written(execution.kernel.registers), pending(execution.kernel.registers) {
  laneMemory.resize(size_t(laneBytes) * warpSize);
  laneValid.resize(laneMemory.size());
  banks[0] = registers.data();
  banks[1] = execution.constants.data();
}

void Warp::start() {
  std::fill(written.begin(), written.end(), 0);
  std::fill(laneValid.begin(), laneValid.end(), 0);
  for (uint32_t reg : pendingRegisters)
    pending[reg]->mask = 0;
  pendingRegisters.clear();
  loadTrips.reset(execution.kernel.registers);
  copies.clear();
  bulkStores.clear();
  wgmma.reset(execution.kernel.registers);
  poll = {};
  carryDefined = 0;
  uint32_t threads = execution.getThreads() - index * warpSize;
  live = threads >= warpSize ? ~LaneMask(0) : (LaneMask(1) << threads) - 1;
  subwarps.clear();
  subwarps.emplace_back();
  subwarps.back().pc = execution.kernel.begin;
  subwarps.back().mask = live;
  setSpecials();
}

bool Warp::isRunnable() const {
  return !subwarps.empty() && subwarps.back().state == Subwarp::Ready;
}

void Warp::fault(FaultKind kind, unsigned lane, const Instruction &instruction,
                 const Twine &message) {
  execution.fault(kind, this, lane, &instruction, message);
}

void Warp::failWait(const Instruction &instruction, unsigned lane,
                    const MBarrier &barrier) {
  if (poll.progress != block.getProgress())
    poll.count = 0;
  ++poll.count;
  poll.progress = block.getProgress();
  poll.instruction = &instruction;
  poll.lane = lane;
  poll.state = "phase " + utostr(barrier.phase) + " lacks " +
               utostr(barrier.missing) + " arrivals and " +
               itostr(barrier.bytes) + " bytes";
  subwarps.back().isPolling = true;
  isYielding = true;
}

bool Warp::isPolling() const {
  // Often enough for all lanes of a diverged warp.
  constexpr unsigned limit = 64;
  return poll.count >= limit && poll.progress == block.getProgress();
}

void Warp::run(uint64_t limit) {
  const Instruction *code = execution.program.code.data();
  isYielding = false;
  // The last subwarp is polling only if all ready ones are.
  if (isRunnable() && subwarps.back().isPolling) {
    for (Subwarp &subwarp : subwarps)
      subwarp.isPolling = false;
    reconverge();
  }
  for (; limit && isRunnable() && !isYielding; --limit) {
    uint32_t pc = subwarps.back().pc;
    const Instruction &instruction = code[pc];
    LaneMask mask = subwarps.back().mask;
    if (++execution.instructions > execution.options.instructionLimit)
      return fault(FaultKind::Limit, __builtin_ctz(mask), instruction,
                   "more than " + Twine(execution.options.instructionLimit) +
                       " instructions; the kernel may not terminate");
    if (instruction.hasGuard) {
      LaneMask undefined = mask & ~written[instruction.guard.reg];
      if (undefined)
        return fault(FaultKind::Uninitialized, __builtin_ctz(undefined),
                     instruction, "the guard has not been written");
      mask &= getPred(instruction.guard);
    }
    ++execution.counts[pc];
    execution.threadCounts[pc] += __builtin_popcount(mask);
    if (instruction.flow == Flow::Next) {
      if (mask)
        step(instruction, mask);
      ++subwarps.back().pc;
      if (subwarps.size() > 1)
        reconverge();
    } else {
      flow(instruction, mask);
    }
    if (execution.hasFault())
      return;
  }
}

bool Warp::checkReads(const Instruction &instruction, LaneMask mask) {
  LaneMask undefined = 0;
  for (uint32_t reg : instruction.reads)
    undefined |= mask & ~written[reg];
  uint32_t &maxTrips = execution.statistics.roundTrips;
  maxTrips = std::max(maxTrips, loadTrips.use(instruction.reads, mask));
  if (!undefined)
    return useReads(instruction, mask);
  fault(FaultKind::Uninitialized, __builtin_ctz(undefined), instruction,
        "reads a register that has not been written");
  return false;
}

void Warp::step(const Instruction &instruction, LaneMask mask) {
  if (wgmma.inFlight && !instruction.isAsync &&
      !checkWgmmaRegisters(instruction))
    return;
  // A move of an undefined value makes the result undefined.
  LaneMask defined = mask;
  if (instruction.isCopy) {
    for (uint32_t reg : instruction.reads)
      defined &= written[reg];
    if (!useReads(instruction, mask))
      return;
    loadTrips.copy(instruction.reads, instruction.writes, mask);
  } else if (!checkReads(instruction, mask)) {
    return;
  }
  // Overwriting a loaded register discards its pending read.
  if (!pendingRegisters.empty())
    for (uint32_t reg : instruction.writes)
      if (pending[reg])
        pending[reg]->mask &= ~mask;
  if (!instruction.isCopy)
    loadTrips.overwrite(instruction.writes, mask);
  instruction.run(*this, instruction, mask);
  // The results of asynchronous instructions are written at a wait.
  if (instruction.isAsync)
    return;
  for (uint32_t reg : instruction.writes) {
    written[reg] = (written[reg] & ~mask) | defined;
    wgmma.registers[reg].lastWrite = wgmma.fences;
  }
}

// The last subwarp runs next: a ready one, with the deepest call stack, then
// with the lowest pc, so that lanes that are behind catch up and can merge.
void Warp::reconverge() {
  auto comesFirst = [](const Subwarp &a, const Subwarp &b) {
    bool isAReady = a.state == Subwarp::Ready,
         isBReady = b.state == Subwarp::Ready;
    if (isAReady != isBReady)
      return isBReady;
    if (a.isPolling != b.isPolling)
      return a.isPolling;
    if (a.frames.size() != b.frames.size())
      return a.frames.size() < b.frames.size();
    return a.pc > b.pc;
  };
  for (size_t i = 0; i < subwarps.size(); ++i) {
    for (size_t j = i + 1; j < subwarps.size();) {
      Subwarp &a = subwarps[i], &b = subwarps[j];
      bool isSame = a.pc == b.pc && a.frames == b.frames &&
                    a.state != Subwarp::AtBarrier &&
                    b.state != Subwarp::AtBarrier;
      if (!isSame) {
        ++j;
        continue;
      }
      a.mask |= b.mask;
      a.state = Subwarp::Ready;
      a.isPolling &= b.isPolling;
      subwarps.erase(subwarps.begin() + j);
    }
  }
  llvm::sort(subwarps, comesFirst);
}

void Warp::branch(LaneMask taken, uint32_t target) {
  Subwarp &subwarp = subwarps.back();
  if (taken == subwarp.mask) {
    subwarp.pc = target;
  } else if (!taken) {
    ++subwarp.pc;
  } else {
    ++execution.statistics.divergentBranches;
    Subwarp other = subwarp;
    other.mask = taken;
    other.pc = target;
    subwarp.mask &= ~taken;
    ++subwarp.pc;
    subwarps.push_back(std::move(other));
  }
  if (subwarps.size() > 1)
    reconverge();
}

void Warp::branchTable(const Instruction &instruction, LaneMask mask) {
  if (!mask || !checkReads(instruction, mask))
    return branch(0, 0);
  Subwarp subwarp = subwarps.pop_back_val();
  if (LaneMask rest = subwarp.mask & ~mask) {
    subwarps.push_back(subwarp);
    subwarps.back().mask = rest;
    ++subwarps.back().pc;
  }
  for (; mask; mask &= mask - 1) {
    unsigned lane = __builtin_ctz(mask);
    uint32_t index = get<uint32_t>(instruction.operands[0], lane);
    if (index >= instruction.targets.size()) {
      fault(FaultKind::Undefined, lane, instruction,
            "branch " + Twine(index) + " of a table with " +
                Twine(instruction.targets.size()) + " targets");
      index = 0;
    }
    subwarps.push_back(subwarp);
    subwarps.back().mask = LaneMask(1) << lane;
    subwarps.back().pc = instruction.targets[index];
  }
  reconverge();
}

void Warp::copyLanes(ArrayRef<Instruction::Copy> copies, LaneMask mask) {
  for (const Instruction::Copy &copy : copies) {
    forLanes(mask, [&](unsigned lane) {
      for (std::vector<uint8_t> *bytes : {&laneMemory, &laneValid}) {
        uint8_t *own = bytes->data() + lane * laneBytes;
        std::memmove(own + copy.to, own + copy.from, copy.size);
      }
    });
  }
}

void Warp::call(const Instruction &instruction, LaneMask mask) {
  uint32_t pc = subwarps.back().pc;
  const Function &callee = execution.program.functions[instruction.target];
  for (uint32_t frame : subwarps.back().frames)
    if (execution.program.code[frame].target == instruction.target)
      return fault(FaultKind::Undefined, __builtin_ctz(mask), instruction,
                   "'" + callee.name +
                       "' calls itself; recursion is not supported");
  copyLanes(instruction.arguments, mask);
  branch(mask, callee.begin);
  // Finds the subwarp that branched to the callee.
  for (Subwarp &subwarp : subwarps)
    if (subwarp.mask == mask && subwarp.pc == callee.begin)
      subwarp.frames.push_back(pc);
  if (subwarps.size() > 1)
    reconverge();
}

void Warp::leave(LaneMask mask, bool isExit) {
  Subwarp &subwarp = subwarps.back();
  if (!mask)
    return branch(0, 0);
  if (!isExit && !subwarp.frames.empty()) {
    Subwarp back = subwarp;
    back.mask = mask;
    uint32_t pc = back.frames.pop_back_val();
    copyLanes(execution.program.code[pc].results, mask);
    back.pc = pc + 1;
    subwarp.mask &= ~mask;
    ++subwarp.pc;
    if (!subwarp.mask)
      subwarps.pop_back();
    subwarps.push_back(std::move(back));
    return reconverge();
  }
  for (LaneMask rest = bulkStores.empty() ? 0 : mask; rest; rest &= rest - 1) {
    unsigned lane = __builtin_ctz(rest);
    if (!bulkStores[lane].isEmpty())
      return fault(FaultKind::Race, lane, *bulkStores[lane].last,
                   "the thread has ended before it waited for the copy to "
                   "read shared memory");
  }
  live &= ~mask;
  block.noteProgress();
  subwarp.mask &= ~mask;
  ++subwarp.pc;
  if (!subwarp.mask)
    subwarps.pop_back();
  // Blocked subwarps may have waited only for lanes that have ended.
  for (Subwarp &other : subwarps)
    if (other.state == Subwarp::Blocked)
      other.state = Subwarp::Ready;
  reconverge();
  block.checkBarriers();
}

// Returns whether all live lanes of `wanted` are at this instruction. Otherwise
// blocks the running subwarp until the others arrive.
bool Warp::waitForLanes(const Instruction &instruction, LaneMask wanted,
                        LaneMask mask) {
  wanted &= live;
  if ((mask & wanted) == wanted)
    return true;
  if (subwarps.back().mask & ~mask & wanted) {
    fault(FaultKind::Barrier, __builtin_ctz(mask), instruction,
          "the guard excludes lanes that must take part");
    return false;
  }
  subwarps.back().state = Subwarp::Blocked;
  reconverge();
  return false;
}

// Reports a lane for which an instruction with .uni does something else than
// for the first one. Returns false after a fault.
bool Warp::checkUniform(const Instruction &instruction, LaneMask mask) {
  LaneMask active = subwarps.back().mask, other = active & ~mask;
  if (!mask || !other) {
    if (instruction.flow != Flow::BranchTable || !mask)
      return true;
    const Operand &index = instruction.operands[0];
    auto first = get<uint32_t>(index, __builtin_ctz(mask));
    forLanes(mask, [&](unsigned lane) {
      if (get<uint32_t>(index, lane) != first)
        other |= LaneMask(1) << lane;
    });
    if (!other)
      return true;
  }
  fault(FaultKind::Undefined, __builtin_ctz(other), instruction,
        "the lanes disagree on a branch with .uni");
  return false;
}

void Warp::flow(const Instruction &instruction, LaneMask mask) {
  if (instruction.isUniform && !checkUniform(instruction, mask))
    return;
  switch (instruction.flow) {
  case Flow::Next:
    return;
  case Flow::Branch:
    return branch(mask, instruction.target);
  case Flow::BranchTable:
    return branchTable(instruction, mask);
  case Flow::Call:
    return mask ? call(instruction, mask) : branch(0, 0);
  case Flow::Return:
    return leave(mask, /*isExit=*/false);
  case Flow::Exit:
    return leave(mask, /*isExit=*/true);
  case Flow::Trap:
    if (mask)
      fault(FaultKind::Trap, __builtin_ctz(mask), instruction,
            "trap instruction");
    return branch(0, 0);
  case Flow::Barrier: {
    if (!mask)
      return branch(0, 0);
    if (!checkReads(instruction, mask))
      return;
    if (instruction.barrier.isAligned) {
      if (!waitForLanes(instruction, live, mask))
        return;
    } else if (mask != subwarps.back().mask) {
      Subwarp rest = subwarps.back();
      rest.mask &= ~mask;
      ++rest.pc;
      subwarps.back().mask = mask;
      subwarps.insert(subwarps.begin(), std::move(rest));
    }
    if (!commitReads())
      return;
    for (uint32_t reg : instruction.writes)
      written[reg] |= mask;
    return block.arrive(*this, instruction, mask);
  }
  case Flow::Converged: {
    if (!mask)
      return branch(0, 0);
    if (!checkReads(instruction, mask))
      return;
    const Operand &operand = instruction.operands[instruction.lanesOperand];
    LaneMask wanted = get<uint32_t>(operand, __builtin_ctz(mask));
    for (LaneMask rest = mask; rest; rest &= rest - 1) {
      unsigned lane = __builtin_ctz(rest);
      if (get<uint32_t>(operand, lane) != wanted || !((wanted >> lane) & 1))
        return fault(FaultKind::Undefined, lane, instruction,
                     "the lanes disagree on the member mask");
    }
    if (!waitForLanes(instruction, wanted, mask))
      return;
    if (instruction.isWholeWarp && mask != ~LaneMask(0))
      return fault(FaultKind::Undefined, __builtin_ctz(mask), instruction,
                   "all 32 lanes of a warp must take part, but lanes 0x" +
                       utohexstr(~mask) + " have ended");
    step(instruction, mask);
    return branch(0, 0);
  }
  }
}

void Warp::blockAtBarrier(uint8_t barrier) {
  subwarps.back().state = Subwarp::AtBarrier;
  subwarps.back().barrier = barrier;
  reconverge();
}

void Warp::release(uint8_t barrier, uint32_t value) {
  for (Subwarp &subwarp : subwarps) {
    if (subwarp.state != Subwarp::AtBarrier || subwarp.barrier != barrier)
      continue;
    const Instruction &instruction = execution.program.code[subwarp.pc];
    const Operand &result = instruction.operands[0];
    if (instruction.barrier.kind == BarrierInfo::Popc)
      forLanes(subwarp.mask,
               [&](unsigned lane) { set<uint32_t>(result, lane, value); });
    else if (instruction.barrier.kind != BarrierInfo::Sync)
      setPred(result, subwarp.mask, value ? subwarp.mask : 0);
    subwarp.state = Subwarp::Ready;
    ++subwarp.pc;
  }
  reconverge();
}

std::string Warp::describeWait() const {
  for (const Subwarp &subwarp : subwarps) {
    const Instruction &instruction = execution.program.code[subwarp.pc];
    const std::string &name = execution.program.names[instruction.name];
    if (subwarp.state == Subwarp::Blocked)
      return "lanes 0x" + utohexstr(subwarp.mask) + " of warp " +
             utostr(index) + " wait at line " + utostr(instruction.line) +
             " (" + name + ") for other lanes of 0x" + utohexstr(live);
    if (subwarp.state == Subwarp::AtBarrier)
      return "warp " + utostr(index) + " waits at line " +
             utostr(instruction.line) + " (" + name + ")";
  }
  if (isRunnable() && isPolling())
    return "warp " + utostr(index) + " polls " +
           block.describe(*poll.instruction) + ": " + poll.state;
  return "";
}

const Instruction *Warp::getWaiting(unsigned &lane) const {
  for (const Subwarp &subwarp : subwarps) {
    if (subwarp.state == Subwarp::Ready)
      continue;
    lane = __builtin_ctz(subwarp.mask);
    return &execution.program.code[subwarp.pc];
  }
  lane = poll.lane;
  return poll.instruction;
}

} // namespace posenc::ptx

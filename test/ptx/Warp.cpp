//===- Warp.cpp - 32 threads in step ----------------------------*- C++ -*-===//
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
  carryDefined = 0;
  uint32_t threads = execution.getThreads() - index * warpSize;
  live = threads >= warpSize ? ~LaneMask(0) : (LaneMask(1) << threads) - 1;
  groups.clear();
  groups.emplace_back();
  groups.back().pc = execution.kernel.begin;
  groups.back().mask = live;
  setSpecials();
}

bool Warp::isRunnable() const {
  return !groups.empty() && groups.back().state == Group::Ready;
}

void Warp::fault(FaultKind kind, unsigned lane, const Instruction &instruction,
                 const Twine &message) {
  execution.fault(kind, this, lane, &instruction, message);
}

void Warp::run(uint64_t limit) {
  const Instruction *code = execution.program.code.data();
  for (; limit && isRunnable(); --limit) {
    uint32_t pc = groups.back().pc;
    const Instruction &instruction = code[pc];
    LaneMask mask = groups.back().mask;
    if (++execution.instructions > execution.options.instructionLimit)
      return fault(FaultKind::Limit, __builtin_ctz(mask), instruction,
                   "more than " + Twine(execution.options.instructionLimit) +
                       " instructions: is there an end?");
    if (instruction.hasGuard) {
      LaneMask undefined = mask & ~written[instruction.guard.reg];
      if (undefined)
        return fault(FaultKind::Uninitialized, __builtin_ctz(undefined),
                     instruction, "its guard has not been written");
      mask &= getPred(instruction.guard);
    }
    ++execution.counts[pc];
    execution.threadCounts[pc] += __builtin_popcount(mask);
    if (instruction.flow == Flow::Next) {
      if (mask)
        step(instruction, mask);
      ++groups.back().pc;
      if (groups.size() > 1)
        regroup();
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
  if (!undefined)
    return useReads(instruction, mask);
  fault(FaultKind::Uninitialized, __builtin_ctz(undefined), instruction,
        "a register that has not been written");
  return false;
}

void Warp::step(const Instruction &instruction, LaneMask mask) {
  // A copy of what is undefined is undefined, too.
  LaneMask defined = mask;
  if (instruction.isCopy) {
    for (uint32_t reg : instruction.reads)
      defined &= written[reg];
    if (!useReads(instruction, mask))
      return;
  } else if (!checkReads(instruction, mask)) {
    return;
  }
  // What is overwritten was of no use.
  if (!pendingRegisters.empty())
    for (uint32_t reg : instruction.writes)
      if (pending[reg])
        pending[reg]->mask &= ~mask;
  instruction.run(*this, instruction, mask);
  for (uint32_t reg : instruction.writes)
    written[reg] = (written[reg] & ~mask) | defined;
}

// Of the groups that can run, the deepest in calls and then the one at the
// lowest place goes first: so those that are behind catch up.
void Warp::regroup() {
  auto comesFirst = [](const Group &a, const Group &b) {
    bool isAReady = a.state == Group::Ready, isBReady = b.state == Group::Ready;
    if (isAReady != isBReady)
      return isBReady;
    if (a.frames.size() != b.frames.size())
      return a.frames.size() < b.frames.size();
    return a.pc > b.pc;
  };
  for (size_t i = 0; i < groups.size(); ++i) {
    for (size_t j = i + 1; j < groups.size();) {
      Group &a = groups[i], &b = groups[j];
      bool isSame = a.pc == b.pc && a.frames == b.frames &&
                    a.state != Group::AtBarrier && b.state != Group::AtBarrier;
      if (!isSame) {
        ++j;
        continue;
      }
      a.mask |= b.mask;
      a.state = Group::Ready;
      groups.erase(groups.begin() + j);
    }
  }
  llvm::sort(groups, comesFirst);
}

void Warp::branch(LaneMask taken, uint32_t target) {
  Group &group = groups.back();
  if (taken == group.mask) {
    group.pc = target;
  } else if (!taken) {
    ++group.pc;
  } else {
    ++execution.statistics.divergentBranches;
    Group other = group;
    other.mask = taken;
    other.pc = target;
    group.mask &= ~taken;
    ++group.pc;
    groups.push_back(std::move(other));
  }
  if (groups.size() > 1)
    regroup();
}

void Warp::branchTable(const Instruction &instruction, LaneMask mask) {
  if (!mask || !checkReads(instruction, mask))
    return branch(0, 0);
  Group group = groups.pop_back_val();
  if (LaneMask rest = group.mask & ~mask) {
    groups.push_back(group);
    groups.back().mask = rest;
    ++groups.back().pc;
  }
  for (; mask; mask &= mask - 1) {
    unsigned lane = __builtin_ctz(mask);
    uint32_t index = get<uint32_t>(instruction.operands[0], lane);
    if (index >= instruction.targets.size()) {
      fault(FaultKind::Undefined, lane, instruction,
            "branch " + Twine(index) + " of " +
                Twine(instruction.targets.size()));
      index = 0;
    }
    groups.push_back(group);
    groups.back().mask = LaneMask(1) << lane;
    groups.back().pc = instruction.targets[index];
  }
  regroup();
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
  uint32_t pc = groups.back().pc;
  const Function &callee = execution.program.functions[instruction.target];
  for (uint32_t frame : groups.back().frames)
    if (execution.program.code[frame].target == instruction.target)
      return fault(FaultKind::Undefined, __builtin_ctz(mask), instruction,
                   "'" + callee.name + "' calls itself");
  copyLanes(instruction.arguments, mask);
  branch(mask, callee.begin);
  // The group that was sent there is one of those whose place it is.
  for (Group &group : groups)
    if (group.mask == mask && group.pc == callee.begin)
      group.frames.push_back(pc);
  if (groups.size() > 1)
    regroup();
}

void Warp::leave(LaneMask mask, bool isExit) {
  Group &group = groups.back();
  if (!mask)
    return branch(0, 0);
  if (!isExit && !group.frames.empty()) {
    Group back = group;
    back.mask = mask;
    uint32_t pc = back.frames.pop_back_val();
    copyLanes(execution.program.code[pc].results, mask);
    back.pc = pc + 1;
    group.mask &= ~mask;
    ++group.pc;
    if (!group.mask)
      groups.pop_back();
    groups.push_back(std::move(back));
    return regroup();
  }
  live &= ~mask;
  group.mask &= ~mask;
  ++group.pc;
  if (!group.mask)
    groups.pop_back();
  // Those that wait may have waited for these only.
  for (Group &other : groups)
    if (other.state == Group::Blocked)
      other.state = Group::Ready;
  regroup();
  block.checkBarriers();
}

// Whether all of `wanted` that live are here; otherwise the group waits for
// the others to come to the same place.
bool Warp::waitForLanes(const Instruction &instruction, LaneMask wanted,
                        LaneMask mask) {
  wanted &= live;
  if ((mask & wanted) == wanted)
    return true;
  if (groups.back().mask & ~mask & wanted) {
    fault(FaultKind::Barrier, __builtin_ctz(mask), instruction,
          "its guard leaves out lanes that it waits for");
    return false;
  }
  groups.back().state = Group::Blocked;
  regroup();
  return false;
}

void Warp::flow(const Instruction &instruction, LaneMask mask) {
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
      fault(FaultKind::Trap, __builtin_ctz(mask), instruction, "a trap");
    return branch(0, 0);
  case Flow::Barrier: {
    if (!mask)
      return branch(0, 0);
    if (!checkReads(instruction, mask))
      return;
    if (instruction.barrier.isAligned) {
      if (!waitForLanes(instruction, live, mask))
        return;
    } else if (mask != groups.back().mask) {
      Group rest = groups.back();
      rest.mask &= ~mask;
      ++rest.pc;
      groups.back().mask = mask;
      groups.insert(groups.begin(), std::move(rest));
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
                     "its lanes do not agree on who takes part");
    }
    if (!waitForLanes(instruction, wanted, mask))
      return;
    step(instruction, mask);
    return branch(0, 0);
  }
  }
}

void Warp::blockAtBarrier(uint8_t barrier) {
  groups.back().state = Group::AtBarrier;
  groups.back().barrier = barrier;
  regroup();
}

void Warp::release(uint8_t barrier, uint32_t value) {
  for (Group &group : groups) {
    if (group.state != Group::AtBarrier || group.barrier != barrier)
      continue;
    const Instruction &instruction = execution.program.code[group.pc];
    const Operand &result = instruction.operands[0];
    if (instruction.barrier.kind == BarrierInfo::Popc)
      forLanes(group.mask,
               [&](unsigned lane) { set<uint32_t>(result, lane, value); });
    else if (instruction.barrier.kind != BarrierInfo::Sync)
      setPred(result, group.mask, value ? group.mask : 0);
    group.state = Group::Ready;
    ++group.pc;
  }
  regroup();
}

std::string Warp::describeWait() const {
  for (const Group &group : groups) {
    const Instruction &instruction = execution.program.code[group.pc];
    const std::string &name = execution.program.names[instruction.name];
    if (group.state == Group::Blocked)
      return "lanes 0x" + utohexstr(group.mask) + " of warp " + utostr(index) +
             " wait at line " + utostr(instruction.line) + " (" + name +
             ") for others of 0x" + utohexstr(live);
    if (group.state == Group::AtBarrier)
      return "warp " + utostr(index) + " waits at line " +
             utostr(instruction.line) + " (" + name + ")";
  }
  return "";
}

const Instruction *Warp::getWaiting(unsigned &lane) const {
  for (const Group &group : groups) {
    if (group.state == Group::Ready)
      continue;
    lane = __builtin_ctz(group.mask);
    return &execution.program.code[group.pc];
  }
  return nullptr;
}

} // namespace posenc::ptx

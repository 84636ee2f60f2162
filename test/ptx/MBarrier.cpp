//===- MBarrier.cpp - barriers in shared memory ---------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MBarrierAccess.h"

#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace posenc::ptx {

MBarrier *findMBarrier(const LaneAccess &access, unsigned lane, Warp &warp,
                       const Instruction &instruction) {
  uint64_t offset = access.getOffset(lane);
  MBarrier *barrier =
      access.isShared(lane) ? warp.block.mbarriers.get(offset) : nullptr;
  if (!barrier) {
    warp.fault(FaultKind::Undefined, lane, instruction,
               "no mbarrier has been initialized at 0x" + utohexstr(offset));
    return nullptr;
  }
  uint32_t thread = warp.index * warpSize + lane;
  if (barrier->initThread != thread &&
      barrier->initTick >
          warp.block.getSeen(warp.index, barrier->initThread / warpSize)) {
    warp.fault(FaultKind::Race, lane, instruction,
               "data race: thread " + Twine(barrier->initThread) +
                   " initialized the mbarrier, without a barrier in between");
    return nullptr;
  }
  return barrier;
}

namespace {

// The largest number of arrivals, and of bytes, of a phase.
constexpr int64_t limit = (1 << 20) - 1;

template <typename F>
void forBarriers(Warp &warp, const Instruction &instruction,
                 const Operand &address, LaneMask mask, F function) {
  LaneAccess access(warp, instruction);
  if (!access.resolve(address, mask, /*isStore=*/false))
    return;
  for (; mask; mask &= mask - 1) {
    unsigned lane = __builtin_ctz(mask);
    MBarrier *barrier = findMBarrier(access, lane, warp, instruction);
    if (!barrier || !function(*barrier, lane))
      return;
  }
}

// Operands: the address and the number of arrivals.
void runInit(Warp &warp, const Instruction &instruction, LaneMask mask) {
  LaneAccess access(warp, instruction);
  if (!access.resolve(instruction.operands[0], mask, /*isStore=*/true))
    return;
  for (; mask; mask &= mask - 1) {
    unsigned lane = __builtin_ctz(mask);
    uint32_t count = warp.get<uint32_t>(instruction.operands[1], lane);
    if (!count || count > limit)
      return warp.fault(FaultKind::Undefined, lane, instruction,
                        "the number of arrivals is " + Twine(count) +
                            ", not 1 to " + Twine(limit));
    if (!access.isShared(lane))
      return warp.fault(FaultKind::Undefined, lane, instruction,
                        "an mbarrier must be in shared memory");
    uint8_t content[MBarriers::size] = {};
    if (!access.store(lane, content))
      return;
    MBarrier &barrier = warp.block.mbarriers.add(access.getOffset(lane));
    barrier.init = &instruction;
    barrier.initThread = warp.index * warpSize + lane;
    barrier.initTick = warp.block.getTick();
    barrier.count = barrier.missing = count;
    barrier.seen.assign(warp.block.numWarps + 1, 0);
    barrier.completed = barrier.seen;
  }
}

void runInval(Warp &warp, const Instruction &instruction, LaneMask mask) {
  LaneAccess access(warp, instruction);
  if (!access.resolve(instruction.operands[0], mask, /*isStore=*/true))
    return;
  for (; mask; mask &= mask - 1) {
    unsigned lane = __builtin_ctz(mask);
    if (!findMBarrier(access, lane, warp, instruction))
      return;
    warp.block.mbarriers.remove(access.getOffset(lane));
  }
}

// Operands: the state, the address, the number of arrivals and of bytes.
void runArrive(Warp &warp, const Instruction &instruction, LaneMask mask) {
  if (!warp.commitReads())
    return;
  forBarriers(
      warp, instruction, instruction.operands[1], mask,
      [&](MBarrier &barrier, unsigned lane) {
        uint32_t count = warp.get<uint32_t>(instruction.operands[2], lane);
        uint32_t bytes = warp.get<uint32_t>(instruction.operands[3], lane);
        warp.set<uint64_t>(instruction.operands[0], lane, barrier.phase);
        if (bytes > limit || barrier.bytes + bytes > limit) {
          warp.fault(FaultKind::Undefined, lane, instruction,
                     "a phase cannot expect more than " + Twine(limit) +
                         " bytes");
          return false;
        }
        if (count > barrier.missing) {
          warp.fault(FaultKind::Barrier, lane, instruction,
                     "more arrivals than the " + Twine(barrier.count) +
                         " that a phase of the mbarrier has");
          return false;
        }
        if (!instruction.isRelaxed && count)
          warp.block.release(warp, barrier);
        barrier.bytes += bytes;
        barrier.missing -= count;
        if (count) {
          warp.block.noteProgress();
          barrier.tryComplete();
        }
        return true;
      });
  warp.block.nextTick();
}

// Operands: the result, the address, and the parity or the state.
// try_wait may return before the phase has completed, in each lane at another
// time. Here it does with a random schedule, in one of eight lanes.
template <bool isParity, bool isTry>
void runWait(Warp &warp, const Instruction &instruction, LaneMask mask) {
  LaneMask done = 0;
  std::optional<std::pair<const MBarrier *, unsigned>> failed;
  Execution &execution = warp.block.execution;
  bool returnsEarly = isTry && execution.options.seed;
  forBarriers(
      warp, instruction, instruction.operands[1], mask,
      [&](MBarrier &barrier, unsigned lane) {
        bool isDone;
        if (isParity) {
          uint32_t parity = warp.get<uint32_t>(instruction.operands[2], lane);
          if (parity > 1) {
            warp.fault(FaultKind::Undefined, lane, instruction,
                       "the parity of a phase is 0 or 1, not " + Twine(parity));
            return false;
          }
          isDone = (barrier.phase & 1) != parity;
        } else {
          uint64_t phase = warp.get<uint64_t>(instruction.operands[2], lane);
          isDone = barrier.phase > phase;
          if (phase > barrier.phase || phase + 1 < barrier.phase) {
            warp.fault(FaultKind::Undefined, lane, instruction,
                       "the state is not that of the current or the last "
                       "phase");
            return false;
          }
        }
        if (isDone && returnsEarly && execution.random() % 8 == 0)
          isDone = false;
        if (isDone && !instruction.isRelaxed)
          warp.block.acquire(warp, barrier);
        if (!isDone)
          failed = {&barrier, lane};
        done |= LaneMask(isDone) << lane;
        return true;
      });
  warp.setPred(instruction.operands[0], mask, done);
  if (done)
    warp.block.noteProgress();
  if (failed)
    warp.failWait(instruction, failed->second, *failed->first);
}

bool takeSharedAddress(Decoder &d, unsigned index) {
  d.out.access.space = d.takeSpace().value_or(Space::Generic);
  d.out.access.bytes = MBarriers::size;
  if (d.out.access.space != Space::Shared &&
      d.out.access.space != Space::Generic)
    return d.fail("an mbarrier must be in shared memory");
  return d.address(index);
}

// Removes the memory order; only .relaxed has no effect on other accesses.
void takeOrder(Decoder &d) {
  d.out.isRelaxed =
      d.takeOneOf({".relaxed", ".acquire", ".release"}) == ".relaxed";
  d.takeOneOf({".cta", ".cluster"});
}

bool decodeArrive(Decoder &d) {
  takeOrder(d);
  bool isExpect = d.has(".expect_tx");
  unsigned operands = d.getNumOperands();
  if (operands != 2 && operands != 3)
    return d.fail("expected two or three operands of mbarrier.arrive");
  if (isExpect && operands != 3)
    return d.fail("expected a number of bytes on mbarrier.arrive.expect_tx");
  bool hasCount = operands == 3 && !isExpect;
  return d.dest(0, 8) && takeSharedAddress(d, 1) &&
         (hasCount ? d.source(2, 4) : d.constant(1, 4)) &&
         (isExpect ? d.source(2, 4) : d.constant(0, 4)) && d.finish(runArrive);
}

// expect_tx alone is an arrival with a count of 0.
bool decodeExpect(Decoder &d) {
  takeOrder(d);
  OperandSyntax none;
  none.name = "_";
  return d.expectOperands(2) && d.dest(none, 8) && takeSharedAddress(d, 0) &&
         d.constant(0, 4) && d.source(1, 4) && d.finish(runArrive);
}

bool decodeWait(Decoder &d, bool isTry) {
  takeOrder(d);
  bool isParity = d.has(".parity");
  // The last operand may be a time limit, which has no effect.
  unsigned operands = d.getNumOperands();
  if (operands != 3 && operands != 4)
    return d.fail("expected three or four operands of a wait");
  return d.predDest(d.getSyntax().operands[0]) && takeSharedAddress(d, 1) &&
         d.source(2, isParity ? 4 : 8) && (operands == 3 || d.source(3, 4)) &&
         d.finish(isParity
                      ? (isTry ? runWait<true, true> : runWait<true, false>)
                      : (isTry ? runWait<false, true> : runWait<false, false>));
}

bool decodeMBarrier(Decoder &d) {
  StringRef kind = d.takeOneOf(
      {".init", ".inval", ".arrive", ".expect_tx", ".test_wait", ".try_wait"});
  if (!d.needTarget(kind == ".try_wait" || kind == ".expect_tx" ? 90 : 80))
    return false;
  Type type;
  if (kind.empty() || !d.takeType(type) || type != Type::B64)
    return d.fail("expected .init, .inval, .arrive, .expect_tx, .test_wait or "
                  ".try_wait, and .b64, on mbarrier");
  if (kind == ".init")
    return d.expectOperands(2) && takeSharedAddress(d, 0) && d.source(1, 4) &&
           d.finish(runInit);
  if (kind == ".inval")
    return d.expectOperands(1) && takeSharedAddress(d, 0) && d.finish(runInval);
  if (kind == ".arrive")
    return decodeArrive(d);
  if (kind == ".expect_tx")
    return decodeExpect(d);
  return decodeWait(d, kind == ".try_wait");
}

} // namespace

void addMBarrierInstructions(OpcodeTable &table) {
  table["mbarrier"] = decodeMBarrier;
}

} // namespace posenc::ptx

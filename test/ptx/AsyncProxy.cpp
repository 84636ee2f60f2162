//===- AsyncProxy.cpp - fences, and reads by the async proxy --------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Shadow.h"

#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace posenc::ptx {

// Bulk copies and wgmma access memory by the async proxy, which may not see
// what ordinary stores have written until their thread executes a proxy fence.
// Only shared memory is checked.

bool Block::checkAsyncRead(Warp &warp, unsigned lane,
                           const Instruction &instruction, uint64_t begin,
                           uint64_t end) {
  auto fail = [&](FaultKind kind, const Twine &message) {
    warp.fault(kind, lane, instruction,
               "shared bytes from 0x" + utohexstr(begin) + ": " + message);
    return false;
  };
  if (begin > end || end > shared.size())
    return fail(FaultKind::OutOfBounds,
                "shared memory has " + Twine(shared.size()) + " bytes");
  if (const Instruction *writer = inFlight.findWriter(begin, end))
    return fail(FaultKind::Race,
                describe(*writer) +
                    " is still writing here: it has not been waited for");
  if (const Instruction *init = mbarriers.find(begin, end))
    return fail(FaultKind::Undefined,
                "the bytes are those of an mbarrier: " + describe(*init));
  ShadowAccess access(warp, lane, /*isStrong=*/false);
  const ShadowCell *last = nullptr;
  for (uint64_t i = begin; i < end; ++i) {
    const ShadowCell &cell = sharedCells[i];
    // The checks depend on the last write alone.
    if (last && cell.writer == last->writer &&
        cell.writeTick == last->writeTick)
      continue;
    last = &cell;
    if (!cell.writer)
      return fail(FaultKind::Uninitialized, "they have not been written");
    if (!execution.options.checkRaces)
      continue;
    if (access.isRacing(cell))
      return fail(FaultKind::Race, describeRace(warp, cell, /*isStore=*/false));
    if (!access.isFenced(cell))
      return fail(FaultKind::Race,
                  "thread " +
                      Twine((cell.writer - 1) % execution.getThreadStride()) +
                      " wrote here, without fence.proxy.async in between");
  }
  return true;
}

void Block::endAsyncRead(const Warp &warp, std::optional<unsigned> lane,
                         ByteRange range) {
  inFlight.endRead(range.begin, range.end);
  ShadowAccess access(warp, lane.value_or(0), /*isStrong=*/false);
  ShadowRun run;
  for (uint32_t i = range.begin; i < range.end; ++i)
    run.update(sharedCells[i], [&](ShadowCell &cell) {
      if (lane)
        access.read(cell);
      else
        access.readAsWarp(cell);
      return true;
    });
}

namespace {

void runNothing(Warp &, const Instruction &, LaneMask) {}

template <bool isProxy>
void runFence(Warp &warp, const Instruction &, LaneMask mask) {
  Block &block = warp.block;
  for (; mask; mask &= mask - 1) {
    uint32_t thread = warp.index * warpSize + __builtin_ctz(mask);
    if (isProxy)
      block.proxyFences.add(thread, block.getTick());
    block.initFences.add(thread, block.getTick());
  }
  block.nextTick();
}

// Other fences have no effect: the interpreter executes memory accesses in
// program order.
bool decodeFence(Decoder &d) {
  Handler handler = runNothing;
  if (d.has(".proxy")) {
    // The async proxy of global memory is not checked.
    if (d.has(".async"))
      handler = d.takeSpace().value_or(Space::Shared) == Space::Shared
                    ? runFence</*isProxy=*/true>
                    : runNothing;
    else if (!d.has(".alias"))
      return d.fail("expected .async or .alias on fence.proxy");
  } else if (d.has(".proxy::async")) {
    return d.fail("fences of one direction are not supported");
  } else if (d.has(".mbarrier_init")) {
    handler = runFence</*isProxy=*/false>;
  }
  for (StringRef name : {".sc", ".acq_rel", ".acquire", ".release", ".cta",
                         ".cluster", ".gpu", ".sys", ".gl"})
    d.has(name);
  return d.expectOperands(0) && d.finish(handler);
}

} // namespace

void addFenceInstructions(OpcodeTable &table) {
  table["membar"] = decodeFence;
  table["fence"] = decodeFence;
}

} // namespace posenc::ptx

//===- AsyncCopy.cpp - cp.async and its groups ----------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BulkInstructions.h"
#include "LaneAccess.h"
#include "MemoryAccess.h"

using namespace llvm;

namespace posenc::ptx {

namespace {

// A copy may write its bytes at any time between its issue and the wait of its
// thread. Until then, every access to them is an error; from then on, they
// count as written by the thread at its wait, so that other threads need a
// barrier.

// The source of a cp.async, kept in Instruction::extra.
struct CopyInfo {
  AccessInfo source;
  int64_t sourceOffset;
};

// Operands: the bases of the destination and of the source, the bytes to write
// and the bytes to read.
void runCopy(Warp &warp, const Instruction &instruction, LaneMask mask) {
  const auto &info = *static_cast<const CopyInfo *>(instruction.extra);
  LaneAccess to(warp, instruction);
  if (!to.resolve(instruction.operands[0], mask, /*isStore=*/true))
    return;
  unsigned bytes = to.getBytes();
  LaneMask reading = 0;
  PendingCopy pending[warpSize];
  for (LaneMask rest = mask; rest; rest &= rest - 1) {
    unsigned lane = __builtin_ctz(rest);
    uint32_t size = warp.get<uint32_t>(instruction.operands[2], lane);
    if (size > bytes)
      return warp.fault(FaultKind::Undefined, lane, instruction,
                        "reads " + Twine(size) + " bytes, but writes " +
                            Twine(bytes));
    if (!to.beginAsync(lane))
      return;
    PendingCopy &copy = pending[lane];
    copy.instruction = &instruction;
    copy.to = to.getOffset(lane);
    copy.bytes = bytes;
    copy.sourceBytes = size;
    copy.data.fill(0);
    reading |= LaneMask(size != 0) << lane;
  }
  // Lanes that read the same number of bytes access memory together.
  for (unsigned size = 1; size <= bytes && reading; ++size) {
    LaneMask same = 0;
    for (LaneMask rest = reading; rest; rest &= rest - 1) {
      unsigned lane = __builtin_ctz(rest);
      same |= LaneMask(pending[lane].sourceBytes == size) << lane;
    }
    reading &= ~same;
    if (!same)
      continue;
    AccessInfo source = info.source;
    source.bytes = size;
    LaneAccess from(warp, instruction, source, info.sourceOffset);
    from.alignment = bytes;
    if (!from.resolve(instruction.operands[1], same, /*isStore=*/false))
      return;
    for (LaneMask rest = same; rest; rest &= rest - 1) {
      unsigned lane = __builtin_ctz(rest);
      if (!from.load(lane))
        return;
      pending[lane].from = from.at(lane);
      std::copy_n(from.at(lane), size, pending[lane].data.begin());
      warp.block.execution.statistics.loadedBytes += size;
    }
  }
  forLanes(mask, [&](unsigned lane) {
    warp.getCopies(lane).copies.push_back(pending[lane]);
    ++warp.getCopies(lane).uncommitted;
  });
}

bool finishCopy(Warp &warp, unsigned lane, const Instruction &wait,
                const PendingCopy &copy) {
  Block &block = warp.block;
  if (!std::equal(copy.data.begin(), copy.data.begin() + copy.sourceBytes,
                  copy.from)) {
    warp.fault(FaultKind::Race, lane, wait,
               "the source of " + block.describe(*copy.instruction) +
                   " was written before the copy was waited for");
    return false;
  }
  block.inFlight.endWrite(copy.to, copy.to + copy.bytes);
  // The bytes change at the wait. No other access has happened since the issue.
  ShadowAccess access(warp, lane, /*isStrong=*/false);
  for (unsigned i = 0; i < copy.bytes; ++i)
    access.write(block.sharedCells[copy.to + i], /*isChange=*/true);
  std::copy_n(copy.data.begin(), copy.bytes, block.shared.begin() + copy.to);
  return true;
}

void commit(CopyQueue &queue) {
  queue.groups.push_back(queue.uncommitted);
  queue.uncommitted = 0;
}

void runCommit(Warp &warp, const Instruction &, LaneMask mask) {
  forLanes(mask, [&](unsigned lane) { commit(warp.getCopies(lane)); });
}

// Waits until at most instruction.offset groups are pending.
void runWait(Warp &warp, const Instruction &instruction, LaneMask mask) {
  for (; mask; mask &= mask - 1) {
    unsigned lane = __builtin_ctz(mask);
    CopyQueue &queue = warp.getCopies(lane);
    while (queue.groups.size() > uint64_t(instruction.offset)) {
      for (; queue.groups.front(); --queue.groups.front()) {
        if (!finishCopy(warp, lane, instruction, queue.copies.front()))
          return;
        queue.copies.pop_front();
      }
      queue.groups.pop_front();
    }
  }
}

void runWaitAll(Warp &warp, const Instruction &instruction, LaneMask mask) {
  runCommit(warp, instruction, mask);
  runWait(warp, instruction, mask);
}

bool decodeCopy(Decoder &d) {
  if (!d.has(".async"))
    return d.fail("expected 'cp.async'");
  if (d.has(".bulk"))
    return decodeBulkCopy(d);
  if (!d.needTarget(80))
    return false;
  if (d.has(".commit_group"))
    return d.expectOperands(0) && d.finish(runCommit);
  if (d.has(".wait_group"))
    return d.groupCount() && d.finish(runWait);
  if (d.has(".wait_all"))
    return d.expectOperands(0) && d.finish(runWaitAll);
  StringRef cache = d.takeOneOf({".ca", ".cg"});
  if (cache.empty())
    return d.fail("expected .ca, .cg, .commit_group, .wait_group or .wait_all "
                  "on cp.async");
  AccessInfo &access = d.out.access;
  CopyInfo info;
  access.space = d.takeSpace().value_or(Space::Generic);
  info.source.space = d.takeSpace().value_or(Space::Generic);
  if (access.space != Space::Shared || info.source.space != Space::Global)
    return d.fail("expected .shared.global on cp.async");
  d.takeOneOf({".L2::64B", ".L2::128B", ".L2::256B"});
  const std::vector<OperandSyntax> &operands = d.getSyntax().operands;
  if (d.has(".L2::cache_hint"))
    return d.fail("cache policies are not supported on cp.async");
  if (operands.size() != 3 && operands.size() != 4)
    return d.fail("expected three or four operands of cp.async");
  uint64_t bytes = operands[2].value;
  if (operands[2].kind != OperandSyntax::Integer ||
      (bytes != 16 && (cache == ".cg" || (bytes != 4 && bytes != 8))))
    return d.fail("cp.async.ca copies 4, 8 or 16 bytes, and cp.async.cg 16; "
                  "the size must be a constant");
  access.bytes = bytes;
  if (!d.address(0))
    return false;
  int64_t offset = d.out.offset;
  if (!d.address(1) || !d.source(operands.size() - 1, 4))
    return false;
  info.sourceOffset = d.out.offset;
  d.out.offset = offset;
  d.keepExtra(info);
  return d.finish(runCopy);
}

} // namespace

void addCopyInstructions(OpcodeTable &table) { table["cp"] = decodeCopy; }

} // namespace posenc::ptx

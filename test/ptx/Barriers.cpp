//===- Barriers.cpp - barriers of CTAs and warps --------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lanes.h"

using namespace llvm;

namespace posenc::ptx {

namespace {

// Decodes bar and barrier. The operands of the instruction are the result (a
// placeholder constant without one), the barrier number, the thread count (0
// without one) and, for reductions, the predicate; Block::arrive relies on this
// order.
bool decodeBarrier(Decoder &d, bool isAligned) {
  BarrierInfo &barrier = d.out.barrier;
  d.has(".cta");
  if (d.has(".aligned"))
    isAligned = true;
  barrier.isAligned = isAligned;
  StringRef kind = d.takeOneOf({".sync", ".arrive", ".red"});
  if (kind.empty())
    return d.fail("unknown kind of barrier; expected .sync, .arrive or .red");
  const std::vector<OperandSyntax> &operands = d.getSyntax().operands;
  d.out.flow = Flow::Barrier;
  if (kind == ".red") {
    StringRef how = d.takeOneOf({".popc", ".and", ".or"});
    Type type;
    if (how.empty() || !d.takeType(type))
      return d.fail("expected .popc, .and or .or, and a type, on bar.red");
    barrier.kind = how == ".popc"  ? BarrierInfo::Popc
                   : how == ".and" ? BarrierInfo::And
                                   : BarrierInfo::Or;
    if (operands.size() != 3 && operands.size() != 4)
      return d.fail("expected three or four operands of bar.red");
    barrier.hasCount = operands.size() == 4;
    bool isPopc = barrier.kind == BarrierInfo::Popc;
    if (isPopc ? !d.dest(operands[0], 4) : !d.predDest(operands[0]))
      return false;
    if (!d.source(1, 4) ||
        !(barrier.hasCount ? d.source(2, 4) : d.constant(0, 4)) ||
        !d.predSource(operands.back()))
      return false;
    return d.finish(nullptr);
  }
  barrier.kind = kind == ".sync" ? BarrierInfo::Sync : BarrierInfo::Arrive;
  if (operands.empty() || operands.size() > 2)
    return d.fail("expected one or two operands of a barrier");
  barrier.hasCount = operands.size() == 2;
  if (barrier.kind == BarrierInfo::Arrive && !barrier.hasCount)
    return d.fail("expected a thread count on bar.arrive");
  // The placeholder for the result.
  if (!d.constant(0, 4) || !d.source(0, 4))
    return false;
  return (barrier.hasCount ? d.source(1, 4) : d.constant(0, 4)) &&
         d.finish(nullptr);
}

void runWarpSync(Warp &warp, const Instruction &instruction, LaneMask mask) {
  if (warp.commitReads())
    warp.block.syncWarp(warp.index);
}

bool decodeBar(Decoder &d) {
  if (!d.has(".warp"))
    return decodeBarrier(d, /*isAligned=*/true);
  if (!d.has(".sync"))
    return d.fail("only .sync is supported on bar.warp");
  d.out.flow = Flow::Converged;
  d.out.lanesOperand = 0;
  return d.expectOperands(1) && d.source(0, 4) && d.finish(runWarpSync);
}

} // namespace

void addBarrierInstructions(OpcodeTable &table) {
  table["bar"] = decodeBar;
  table["barrier"] = [](Decoder &d) {
    return decodeBarrier(d, /*isAligned=*/false);
  };
}

} // namespace posenc::ptx

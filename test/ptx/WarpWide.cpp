//===- WarpWide.cpp - shuffles, votes and reductions of a warp ------------===//
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

enum class Shuffle { Up, Down, Bfly, Idx };

// Operands: d, p, a, b, c, member mask. c contains the clamp value and, from
// bit 8 on, the segment mask.
template <Shuffle mode>
void runShuffle(Warp &warp, const Instruction &instruction, LaneMask mask) {
  const auto &operands = instruction.operands;
  uint32_t values[warpSize], results[warpSize];
  std::memcpy(values, warp.at(operands[2]), sizeof(values));
  LaneMask inside = 0, bad = 0;
  forLanes(mask, [&](unsigned lane) {
    uint32_t b = warp.get<uint32_t>(operands[3], lane) & 31;
    uint32_t c = warp.get<uint32_t>(operands[4], lane);
    uint32_t segment = (c >> 8) & 31, clamp = c & 31;
    uint32_t maxLane = (lane & segment) | (clamp & ~segment);
    uint32_t minLane = lane & segment;
    int32_t from;
    bool isInside;
    if (mode == Shuffle::Up) {
      from = int32_t(lane) - int32_t(b);
      isInside = from >= int32_t(maxLane);
    } else {
      from = mode == Shuffle::Down   ? int32_t(lane + b)
             : mode == Shuffle::Bfly ? int32_t(lane ^ b)
                                     : int32_t(minLane | (b & ~segment));
      isInside = from <= int32_t(maxLane);
    }
    if (!isInside)
      from = lane;
    if (!((mask >> from) & 1))
      bad |= 1u << lane;
    results[lane] = values[from & 31];
    inside |= LaneMask(isInside) << lane;
  });
  if (bad)
    return warp.fault(FaultKind::Undefined, __builtin_ctz(bad), instruction,
                      "reads the value of a lane that does not take part");
  forLanes(mask, [&](unsigned lane) {
    warp.set<uint32_t>(operands[0], lane, results[lane]);
  });
  warp.setPred(operands[1], mask, inside);
}

bool finishConverged(Decoder &d, unsigned lanesOperand, Handler handler) {
  d.out.flow = Flow::Converged;
  d.out.lanesOperand = lanesOperand;
  return d.finish(handler);
}

bool decodeShuffle(Decoder &d) {
  if (!d.has(".sync"))
    return d.fail("only .sync is supported on shfl");
  StringRef mode = d.takeOneOf({".up", ".down", ".bfly", ".idx"});
  Type type;
  if (mode.empty() || !d.takeType(type) || !d.expectOperands(5))
    return d.fail("unsupported form of shfl");
  OperandSyntax to = d.getSyntax().operands[0], inside;
  inside.name = "_";
  if (to.kind == OperandSyntax::Pair) {
    inside = d.getSyntax().operands[0].elements[1];
    to = d.getSyntax().operands[0].elements[0];
  }
  if (!d.dest(to, 4) || !d.predDest(inside))
    return false;
  for (unsigned i = 1; i < 5; ++i)
    if (!d.source(i, 4))
      return false;
  return finishConverged(d, 5,
                         mode == ".up"     ? runShuffle<Shuffle::Up>
                         : mode == ".down" ? runShuffle<Shuffle::Down>
                         : mode == ".bfly" ? runShuffle<Shuffle::Bfly>
                                           : runShuffle<Shuffle::Idx>);
}

enum class Vote { All, Any, Uni, Ballot };

// Operands: d, p, member mask.
template <Vote vote>
void runVote(Warp &warp, const Instruction &instruction, LaneMask mask) {
  const auto &operands = instruction.operands;
  LaneMask yes = warp.getPred(operands[1]) & mask;
  if (vote == Vote::Ballot) {
    forLanes(mask, [&](unsigned lane) {
      warp.set<uint32_t>(operands[0], lane, yes);
    });
    return;
  }
  bool result = vote == Vote::All   ? yes == mask
                : vote == Vote::Any ? yes != 0
                                    : yes == mask || yes == 0;
  warp.setPred(operands[0], mask, result ? mask : 0);
}

bool decodeVote(Decoder &d) {
  if (!d.has(".sync"))
    return d.fail("only .sync is supported on vote");
  StringRef kind = d.takeOneOf({".all", ".any", ".uni", ".ballot"});
  Type type;
  if (kind.empty() || !d.takeType(type) || !d.expectOperands(3))
    return d.fail("unsupported form of vote");
  const std::vector<OperandSyntax> &operands = d.getSyntax().operands;
  bool isBallot = kind == ".ballot";
  if (isBallot ? !d.dest(0, 4) : !d.predDest(operands[0]))
    return false;
  if (!d.predSource(operands[1]) || !d.source(2, 4))
    return false;
  return finishConverged(d, 2,
                         isBallot         ? runVote<Vote::Ballot>
                         : kind == ".all" ? runVote<Vote::All>
                         : kind == ".any" ? runVote<Vote::Any>
                                          : runVote<Vote::Uni>);
}

// Operands: d, p, a, member mask.
template <typename T, bool isAll>
void runMatch(Warp &warp, const Instruction &instruction, LaneMask mask) {
  const auto &operands = instruction.operands;
  LaneMask results[warpSize] = {}, all = 0;
  forLanes(mask, [&](unsigned lane) {
    for (LaneMask rest = mask; rest; rest &= rest - 1) {
      unsigned other = __builtin_ctz(rest);
      results[lane] |= LaneMask(warp.get<T>(operands[2], lane) ==
                                warp.get<T>(operands[2], other))
                       << other;
    }
    all |= LaneMask(results[lane] == mask) << lane;
  });
  forLanes(mask, [&](unsigned lane) {
    bool isNone = isAll && results[lane] != mask;
    warp.set<uint32_t>(operands[0], lane, isNone ? 0 : results[lane]);
  });
  warp.setPred(operands[1], mask, all);
}

bool decodeMatch(Decoder &d) {
  bool isAll = d.has(".all");
  if ((!isAll && !d.has(".any")) || !d.has(".sync"))
    return d.fail("expected .any or .all, and .sync, on match");
  Type type;
  if (!d.takeType(type) || !d.expectOperands(3))
    return false;
  OperandSyntax to = d.getSyntax().operands[0], all;
  all.name = "_";
  if (to.kind == OperandSyntax::Pair) {
    all = d.getSyntax().operands[0].elements[1];
    to = d.getSyntax().operands[0].elements[0];
  }
  if (!d.dest(to, 4) || !d.predDest(all) || !d.source(1, getBytes(type)) ||
      !d.source(2, 4))
    return false;
  bool isWide = getBytes(type) == 8;
  return finishConverged(
      d, 3,
      isAll ? (isWide ? runMatch<uint64_t, true> : runMatch<uint32_t, true>)
            : (isWide ? runMatch<uint64_t, false> : runMatch<uint32_t, false>));
}

void runActive(Warp &warp, const Instruction &instruction, LaneMask mask) {
  forLanes(mask, [&](unsigned lane) {
    warp.set<uint32_t>(instruction.operands[0], lane, mask);
  });
}

template <typename T> T reduceAdd(T a, T b) { return T(uint32_t(a) + b); }
template <typename T> T reduceMin(T a, T b) { return a < b ? a : b; }
template <typename T> T reduceMax(T a, T b) { return a < b ? b : a; }
uint32_t reduceAnd(uint32_t a, uint32_t b) { return a & b; }
uint32_t reduceOr(uint32_t a, uint32_t b) { return a | b; }
uint32_t reduceXor(uint32_t a, uint32_t b) { return a ^ b; }

// Operands: d, a, member mask.
template <typename T, T (*F)(T, T)>
void runReduce(Warp &warp, const Instruction &instruction, LaneMask mask) {
  const auto &operands = instruction.operands;
  T result = warp.get<T>(operands[1], __builtin_ctz(mask));
  for (LaneMask rest = mask & (mask - 1); rest; rest &= rest - 1)
    result = F(result, warp.get<T>(operands[1], __builtin_ctz(rest)));
  forLanes(mask,
           [&](unsigned lane) { warp.set<T>(operands[0], lane, result); });
}

bool decodeReduce(Decoder &d) {
  StringRef name = d.takeOneOf({".add", ".min", ".max", ".and", ".or", ".xor"});
  Type type;
  if (!d.has(".sync") || name.empty() || !d.takeType(type) ||
      !d.expectOperands(3) || !d.dest(0, 4) || !d.source(1, 4) ||
      !d.source(2, 4))
    return d.fail("unsupported form of redux");
  bool isS = type == Type::S32, isU = type == Type::U32,
       isB = type == Type::B32;
  Handler handler = nullptr;
  if (name == ".add")
    handler = isS || isU ? runReduce<uint32_t, reduceAdd<uint32_t>> : nullptr;
  else if (name == ".min")
    handler = isS   ? runReduce<int32_t, reduceMin<int32_t>>
              : isU ? runReduce<uint32_t, reduceMin<uint32_t>>
                    : Handler(nullptr);
  else if (name == ".max")
    handler = isS   ? runReduce<int32_t, reduceMax<int32_t>>
              : isU ? runReduce<uint32_t, reduceMax<uint32_t>>
                    : Handler(nullptr);
  else if (isB)
    handler = name == ".and"  ? runReduce<uint32_t, reduceAnd>
              : name == ".or" ? runReduce<uint32_t, reduceOr>
                              : runReduce<uint32_t, reduceXor>;
  if (!handler)
    return d.fail("unsupported type on redux");
  return finishConverged(d, 2, handler);
}

// Operands: d, p, member mask. Elects the lowest lane.
void runElect(Warp &warp, const Instruction &instruction, LaneMask mask) {
  unsigned leader = __builtin_ctz(mask);
  forLanes(mask, [&](unsigned lane) {
    warp.set<uint32_t>(instruction.operands[0], lane, leader);
  });
  warp.setPred(instruction.operands[1], mask, 1u << leader);
}

bool decodeElect(Decoder &d) {
  if (!d.has(".sync") || !d.expectOperands(2) ||
      d.getSyntax().operands[0].kind != OperandSyntax::Pair)
    return d.fail("expected 'elect.sync d|p, membermask'");
  const OperandSyntax &pair = d.getSyntax().operands[0];
  return d.dest(pair.elements[0], 4) && d.predDest(pair.elements[1]) &&
         d.source(1, 4) && finishConverged(d, 2, runElect);
}

} // namespace

void addWarpInstructions(OpcodeTable &table) {
  table["shfl"] = decodeShuffle;
  table["vote"] = decodeVote;
  table["match"] = decodeMatch;
  table["redux"] = decodeReduce;
  table["elect"] = decodeElect;
  table["activemask"] = [](Decoder &d) {
    Type type;
    return d.takeType(type) && d.expectOperands(1) && d.dest(0, 4) &&
           d.finish(runActive);
  };
}

} // namespace posenc::ptx

//===- Move.cpp - moves, packing and address space conversions ------------===//
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

template <typename T> T copy(T value) { return value; }

struct Wide {
  uint64_t parts[2];
};

Handler chooseCopy(unsigned bytes) {
  switch (bytes) {
  case 2:
    return lanes<copy<uint16_t>>;
  case 4:
    return lanes<copy<uint32_t>>;
  case 8:
    return lanes<copy<uint64_t>>;
  case 16:
    return lanes<copy<Wide>>;
  default:
    return nullptr;
  }
}

void runPredMove(Warp &warp, const Instruction &instruction, LaneMask mask) {
  warp.setPred(instruction.operands[0], mask,
               warp.getPred(instruction.operands[1]));
}

// Packs elements into a register; the first element is the lowest.
void runPack(Warp &warp, const Instruction &instruction, LaneMask mask) {
  uint8_t *to = warp.at(instruction.operands[0]);
  unsigned whole = instruction.operands[0].bytes;
  unsigned offset = 0;
  for (const Operand &part : instruction.operands.drop_front()) {
    const uint8_t *from = warp.at(part);
    forLanes(mask, [&](unsigned lane) {
      std::memcpy(to + lane * whole + offset, from + lane * part.bytes,
                  part.bytes);
    });
    offset += part.bytes;
  }
}

// Unpacks a register, the last operand, into elements.
void runUnpack(Warp &warp, const Instruction &instruction, LaneMask mask) {
  const Operand &wholeOperand = instruction.operands.back();
  unsigned whole = wholeOperand.bytes;
  // A destination may be the source register.
  uint8_t from[warpSize * 16];
  std::memcpy(from, warp.at(wholeOperand), warpSize * whole);
  unsigned offset = 0;
  for (const Operand &part : instruction.operands.drop_back()) {
    uint8_t *to = warp.at(part);
    forLanes(mask, [&](unsigned lane) {
      std::memcpy(to + lane * part.bytes, from + lane * whole + offset,
                  part.bytes);
    });
    offset += part.bytes;
  }
}

bool decodePack(Decoder &d, unsigned bytes, const OperandSyntax &whole,
                const OperandSyntax &parts, bool isUnpack) {
  unsigned count = parts.elements.size();
  if ((count != 2 && count != 4 && count != 8) || bytes % count ||
      bytes / count < 2)
    return d.fail(
        "mov packs or unpacks 2, 4 or 8 elements of at least 2 bytes");
  if (!isUnpack && !d.dest(whole, bytes))
    return false;
  for (const OperandSyntax &part : parts.elements)
    if (isUnpack ? !d.dest(part, bytes / count)
                 : !d.source(part, bytes / count))
      return false;
  if (isUnpack && !d.source(whole, bytes))
    return false;
  d.out.isCopy = true;
  return d.finish(isUnpack ? runUnpack : runPack);
}

bool decodeMove(Decoder &d) {
  Type type;
  if (!d.takeType(type) || !d.expectOperands(2))
    return false;
  const OperandSyntax &to = d.getSyntax().operands[0],
                      &from = d.getSyntax().operands[1];
  d.out.isCopy = true;
  if (type == Type::Pred)
    return d.predDest(to) && d.predSource(from) && d.finish(runPredMove);
  unsigned bytes = getBytes(type);
  if (to.kind == OperandSyntax::Vector)
    return decodePack(d, bytes, from, to, /*isUnpack=*/true);
  if (from.kind == OperandSyntax::Vector)
    return decodePack(d, bytes, to, from, /*isUnpack=*/false);
  return d.dest(to, bytes) && d.source(from, bytes) &&
         d.finish(chooseCopy(bytes));
}

uint64_t addWindow(uint64_t address, uint64_t window) {
  return address + window;
}
uint64_t subWindow(uint64_t address, uint64_t window) {
  return address - window;
}

uint64_t getWindow(Space space) {
  return space == Space::Shared  ? sharedWindow
         : space == Space::Local ? localWindow
         : space == Space::Param ? paramWindow
                                 : 0;
}

// Addresses of global and constant memory are the same in generic space.
bool decodeCvta(Decoder &d) {
  bool isTo = d.has(".to");
  std::optional<Space> space = d.takeSpace();
  if (!space)
    return d.fail("expected a state space on cvta");
  Type type;
  return d.takeType(type) && d.expectOperands(2) && d.dest(0, 8) &&
         d.source(1, 8) && d.constant(getWindow(*space), 8) &&
         d.finish(type != Type::U64 ? nullptr
                  : isTo            ? lanes<subWindow>
                                    : lanes<addWindow>);
}

void runIsspacep(Warp &warp, const Instruction &instruction, LaneMask mask) {
  auto space = Space(instruction.offset);
  uint64_t window = getWindow(space);
  LaneMask result = 0;
  forLanes(mask, [&](unsigned lane) {
    uint64_t address = warp.get<uint64_t>(instruction.operands[1], lane);
    bool isInside;
    if (window) {
      isInside = address - window < windowSize;
    } else {
      const Region *region = warp.block.execution.memory.find(address, 1);
      isInside = address < sharedWindow &&
                 (space == Space::Const ? region && region->isConst
                                        : !region || !region->isConst);
    }
    result |= LaneMask(isInside) << lane;
  });
  warp.setPred(instruction.operands[0], mask, result);
}

bool decodeIsspacep(Decoder &d) {
  std::optional<Space> space = d.takeSpace();
  if (!space)
    return d.fail("expected a state space on isspacep");
  d.out.offset = int64_t(*space);
  return d.expectOperands(2) && d.predDest(d.getSyntax().operands[0]) &&
         d.source(1, 8) && d.finish(runIsspacep);
}

} // namespace

void addMoveInstructions(OpcodeTable &table) {
  table["mov"] = decodeMove;
  table["cvta"] = decodeCvta;
  table["isspacep"] = decodeIsspacep;
}

} // namespace posenc::ptx

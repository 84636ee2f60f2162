//===- MemoryAccess.cpp - load, store and prefetch instructions -----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MemoryAccess.h"
#include "LaneAccess.h"

using namespace llvm;

namespace posenc::ptx {

namespace {

// Writes a loaded element, sign- or zero-extended to the register.
void writeElement(Warp &warp, const Operand &to, unsigned lane,
                  const uint8_t *from, unsigned bytes, bool isSigned) {
  uint8_t *at = warp.at(to) + lane * to.bytes;
  std::memcpy(at, from, bytes);
  if (to.bytes > bytes)
    std::memset(at + bytes, isSigned && (from[bytes - 1] & 0x80) ? 0xff : 0,
                to.bytes - bytes);
}

template <typename T>
void scatter(Warp &warp, const Operand &to, LaneMask mask,
             const LaneAccess &access, unsigned offset) {
  forLanes(mask, [&](unsigned lane) {
    T value;
    std::memcpy(&value, access.at(lane) + offset, sizeof(T));
    warp.set<T>(to, lane, value);
  });
}

// Operands: the destinations, then the base of the address.
void runLoad(Warp &warp, const Instruction &instruction, LaneMask mask) {
  LaneAccess access(warp, instruction);
  if (!access.resolve(instruction.operands.back(), mask, /*isStore=*/false))
    return;
  for (LaneMask rest = mask; rest; rest &= rest - 1)
    if (!access.loadTo(instruction.operands.drop_back(), __builtin_ctz(rest)))
      return;
  unsigned bytes = instruction.access.bytes;
  for (unsigned i = 0; i < instruction.access.count; ++i) {
    const Operand &to = instruction.operands[i];
    if (to.bytes == bytes && bytes == 4) {
      scatter<uint32_t>(warp, to, mask, access, i * bytes);
    } else if (to.bytes == bytes && bytes == 8) {
      scatter<uint64_t>(warp, to, mask, access, i * bytes);
    } else {
      forLanes(mask, [&](unsigned lane) {
        writeElement(warp, to, lane, access.at(lane) + i * bytes, bytes,
                     instruction.access.isSigned);
      });
    }
  }
  if (instruction.access.space != Space::Param)
    warp.block.execution.statistics.loadedBytes +=
        instruction.access.space == Space::Shared ||
                instruction.access.space == Space::Local
            ? 0
            : uint64_t(__builtin_popcount(mask)) * access.getBytes();
}

// Operands: the base of the address, then the values.
void runStore(Warp &warp, const Instruction &instruction, LaneMask mask) {
  LaneAccess access(warp, instruction);
  if (!access.resolve(instruction.operands.front(), mask, /*isStore=*/true))
    return;
  unsigned bytes = instruction.access.bytes;
  ArrayRef<Operand> values = instruction.operands.drop_front();
  for (LaneMask rest = mask; rest; rest &= rest - 1) {
    unsigned lane = __builtin_ctz(rest);
    uint8_t buffer[64];
    for (unsigned i = 0; i < values.size(); ++i)
      std::memcpy(buffer + i * bytes,
                  warp.at(values[i]) + lane * values[i].bytes, bytes);
    if (!access.store(lane, buffer))
      return;
  }
  if (instruction.access.space == Space::Global ||
      instruction.access.space == Space::Generic)
    warp.block.execution.statistics.storedBytes +=
        uint64_t(__builtin_popcount(mask)) * access.getBytes();
}

bool decodeAccess(Decoder &d, bool isStore) {
  AccessInfo &access = d.out.access;
  takeAccessModifiers(d);
  bool isConst = d.has(".nc");
  if (isConst && isStore)
    return d.fail("'.nc' is allowed on loads only");
  access.space = d.takeSpace().value_or(Space::Generic);
  Type type;
  if (!takeVector(d) || !d.takeType(type))
    return false;
  access.bytes = getBytes(type);
  access.isSigned = isSigned(type);
  if (type == Type::Pred || access.bytes * access.count > 32)
    return d.fail("unsupported size of an access");
  bool hasPolicy = d.has(".L2::cache_hint");
  if (!d.expectOperands(hasPolicy ? 3 : 2))
    return false;
  const OperandSyntax &value = d.getSyntax().operands[isStore ? 1 : 0];
  std::vector<OperandSyntax> elements = {value};
  if (value.kind == OperandSyntax::Vector)
    elements = value.elements;
  if (elements.size() != access.count)
    return d.fail("the number of registers differs from the vector size");
  if (isStore && !d.address(0))
    return false;
  for (const OperandSyntax &element : elements)
    if (isStore ? !d.wideSource(element, access.bytes)
                : !d.wideDest(element, access.bytes))
      return false;
  if (!isStore && !d.address(1))
    return false;
  return d.finish(isStore ? runStore : runLoad);
}

void runNothing(Warp &, const Instruction &, LaneMask) {}

// Prefetches and other hints have no effect. Only their address is checked.
bool decodeHint(Decoder &d) {
  d.takeSpace();
  for (StringRef prefix : {".L1", ".L2", ".L1::", ".L2::", ".tensormap"})
    while (!d.takePrefixed(prefix).empty()) {
    }
  if (d.getNumOperands() < 1 || !d.address(0))
    return false;
  return d.finish(runNothing);
}

void runPolicy(Warp &warp, const Instruction &instruction, LaneMask mask) {
  forLanes(mask, [&](unsigned lane) {
    warp.set<uint64_t>(instruction.operands[0], lane, 0);
  });
}

// createpolicy returns 0: cache policies have no effect.
bool decodePolicy(Decoder &d) {
  d.has(".fractional");
  while (!d.takePrefixed(".L2::").empty()) {
  }
  Type type;
  return d.takeType(type) && d.dest(0, 8) && d.finish(runPolicy);
}

} // namespace

void takeAccessModifiers(Decoder &d) {
  AccessInfo &access = d.out.access;
  d.has(".weak");
  access.isStrong = !d.takeOneOf({".relaxed", ".acquire", ".release",
                                  ".acq_rel", ".volatile", ".mmio"})
                         .empty();
  d.takeOneOf({".cta", ".cluster", ".gpu", ".sys"});
  d.takeOneOf({".ca", ".cg", ".cs", ".lu", ".cv", ".wb", ".wt"});
  while (!d.takePrefixed(".L1::").empty()) {
  }
  for (StringRef name :
       {".L2::64B", ".L2::128B", ".L2::256B", ".L2::evict_last",
        ".L2::evict_first", ".L2::evict_normal"})
    d.has(name);
}

bool takeVector(Decoder &d) {
  StringRef name = d.takeOneOf({".v2", ".v4", ".v8"});
  d.out.access.count = name.empty() ? 1 : name.back() - '0';
  return true;
}

void addMemoryInstructions(OpcodeTable &table) {
  table["ld"] = [](Decoder &d) { return decodeAccess(d, /*isStore=*/false); };
  table["st"] = [](Decoder &d) { return decodeAccess(d, /*isStore=*/true); };
  table["ldu"] = table["ld"];
  table["prefetch"] = decodeHint;
  table["prefetchu"] = decodeHint;
  table["applypriority"] = decodeHint;
  table["createpolicy"] = decodePolicy;
}

} // namespace posenc::ptx

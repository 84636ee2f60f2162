//===- TensorCopy.cpp - copies of boxes of tensors ------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BulkInstructions.h"
#include "MBarrierAccess.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace posenc::ptx {

namespace {

// The operands of a copy: the bases of the tensor map, of the shared memory
// and, for a load, of the mbarrier; then the coordinates. Kept in
// Instruction::extra.
struct TensorCopyInfo {
  bool isLoad;
  unsigned rank;
  int64_t mapOffset, sharedOffset, mbarrierOffset;
};

// One copy by a lane.
class TensorCopy {
public:
  TensorCopy(Warp &warp, unsigned lane, const Instruction &instruction)
      : warp(warp), block(warp.block), lane(lane), instruction(instruction),
        info(*static_cast<const TensorCopyInfo *>(instruction.extra)) {}

  void run();

private:
  bool fail(FaultKind kind, const Twine &message) {
    warp.fault(kind, lane, instruction, message);
    return false;
  }
  bool readMap();
  bool placeBox();
  void load();
  void store();
  // Calls `function(row, offset, bytes, address)` for the rows of the box that
  // are in the tensor: the bytes at `offset` of row `row` are at `address`.
  template <typename F> bool forRows(F function);
  uint8_t *accessGlobal(uint64_t address, uint64_t bytes, bool isStore);

  Warp &warp;
  Block &block;
  const unsigned lane;
  const Instruction &instruction;
  const TensorCopyInfo &info;
  TensorMap map;
  uint32_t box = 0; // offset in shared memory
};

bool TensorCopy::readMap() {
  AccessInfo access;
  access.bytes = sizeof(TensorMap);
  LaneAccess bytes(warp, instruction, access, info.mapOffset);
  bytes.alignment = 64;
  if (!bytes.resolve(instruction.operands[0], 1u << lane, /*isStore=*/false) ||
      !bytes.load(lane))
    return false;
  std::memcpy(&map, bytes.at(lane), sizeof(map));
  if (const char *error = map.check())
    return fail(FaultKind::Undefined, Twine("invalid tensor map: ") + error);
  if (map.rank != info.rank)
    return fail(FaultKind::Undefined,
                "the tensor map has " + Twine(unsigned(map.rank)) +
                    " dimensions, not " + Twine(info.rank));
  // Narrower rows would need padding, whose layout is not documented.
  if (map.swizzle != TensorMap::None &&
      map.getRowBytes() != getSwizzleBytes(map.swizzle))
    return fail(FaultKind::Undefined, "rows of " + Twine(map.getRowBytes()) +
                                          " bytes with a swizzle of " +
                                          Twine(getSwizzleBytes(map.swizzle)) +
                                          " are not supported");
  return true;
}

// The pattern depends on the address; a tile must begin where it does.
bool TensorCopy::placeBox() {
  AccessInfo access;
  access.space = Space::Shared;
  access.bytes = 1;
  LaneAccess bytes(warp, instruction, access, info.sharedOffset);
  bytes.alignment =
      map.swizzle == TensorMap::None ? 128 : 8 * getSwizzleBytes(map.swizzle);
  if (!bytes.resolve(instruction.operands[1], 1u << lane,
                     /*isStore=*/info.isLoad))
    return false;
  box = bytes.getOffset(lane);
  if (map.getBoxBytes() > block.shared.size() - box)
    return fail(FaultKind::OutOfBounds,
                "a box of " + Twine(map.getBoxBytes()) + " bytes at 0x" +
                    utohexstr(box) + ": shared memory has " +
                    Twine(block.shared.size()) + " bytes");
  return true;
}

template <typename F> bool TensorCopy::forRows(F function) {
  int64_t first[5];
  for (unsigned i = 0; i < info.rank; ++i)
    first[i] = warp.get<int32_t>(instruction.operands[3 + i], lane);
  int64_t begin = std::max<int64_t>(first[0], 0),
          end = std::min<int64_t>(first[0] + map.box[0], map.sizes[0]);
  uint32_t rows = map.getBoxBytes() / map.getRowBytes();
  for (uint32_t row = 0; row < rows && begin < end; ++row) {
    uint64_t address = map.address + begin * map.elementBytes;
    bool isInside = true;
    uint32_t rest = row;
    for (unsigned i = 1; i < info.rank; ++i) {
      int64_t at = first[i] + rest % map.box[i];
      rest /= map.box[i];
      isInside &= at >= 0 && at < int64_t(map.sizes[i]);
      address += at * map.strides[i - 1];
    }
    if (isInside && !function(row, (begin - first[0]) * map.elementBytes,
                              (end - begin) * map.elementBytes, address))
      return false;
  }
  return true;
}

// Checks an access of global memory as one of the lane.
uint8_t *TensorCopy::accessGlobal(uint64_t address, uint64_t bytes,
                                  bool isStore) {
  Execution &execution = block.execution;
  auto faultAt = [&](FaultKind kind, const Twine &message) {
    fail(kind,
         Twine(bytes) + " bytes at 0x" + utohexstr(address) + ": " + message);
    return nullptr;
  };
  Region *region = execution.memory.find(address, bytes);
  if (!region)
    return faultAt(FaultKind::OutOfBounds, execution.memory.describe(address));
  if (isStore && region->access == Access::ReadOnly)
    return faultAt(FaultKind::ReadOnly, "'" + region->name + "' is read-only");
  uint64_t offset = address - region->address;
  if (!region->valid.empty()) {
    auto begin = region->valid.begin() + offset;
    if (isStore)
      std::fill_n(begin, bytes, 1);
    else if (std::find(begin, begin + bytes, 0) != begin + bytes)
      return faultAt(FaultKind::Uninitialized,
                     "'" + region->name + "' has not been written there");
  }
  if (region->access != Access::ReadOnly) {
    ShadowAccess access(warp, lane, /*isStrong=*/false);
    for (uint64_t i = 0; i < bytes; ++i) {
      ShadowCell &cell = getCell(warp, region, offset + i), before = cell;
      bool isRace = isStore ? access.write(cell, /*isChange=*/true)
                            : access.isRacing(cell);
      if (isRace && execution.options.checkRaces)
        return faultAt(FaultKind::Race, describeRace(warp, before, isStore));
      if (!isStore)
        access.read(cell);
    }
  }
  uint64_t &counter = isStore ? execution.statistics.storedBytes
                              : execution.statistics.loadedBytes;
  counter += bytes;
  return region->data + offset;
}

void TensorCopy::load() {
  AccessInfo object;
  object.space = Space::Shared;
  object.bytes = MBarriers::size;
  LaneAccess barrier(warp, instruction, object, info.mbarrierOffset);
  if (!barrier.resolve(instruction.operands[2], 1u << lane, /*isStore=*/false))
    return;
  const MBarrier *found = findMBarrier(barrier, lane, warp, instruction);
  if (!found)
    return;
  if (!block.initFences.find(found->initThread, found->initTick)) {
    fail(FaultKind::Race,
         "no fence.mbarrier_init or fence.proxy.async follows " +
             block.describe(*found->init));
    return;
  }
  BulkLoad copy;
  copy.instruction = &instruction;
  copy.to = box;
  copy.mbarrier = barrier.getOffset(lane);
  copy.swizzle = map.swizzle;
  copy.data.resize(map.getBoxBytes());
  if (!LaneAccess::checkAsyncWrite(warp, lane, instruction, box,
                                   box + copy.data.size()))
    return;
  bool isGood = forRows(
      [&](uint32_t row, uint32_t offset, uint32_t bytes, uint64_t address) {
        const uint8_t *from = accessGlobal(address, bytes, /*isStore=*/false);
        if (from)
          std::copy_n(from, bytes,
                      copy.data.begin() + row * map.getRowBytes() + offset);
        return from != nullptr;
      });
  if (isGood)
    block.startLoad(std::move(copy));
}

void TensorCopy::store() {
  uint32_t end = box + map.getBoxBytes();
  if (!block.checkAsyncRead(warp, lane, instruction, box, end))
    return;
  bool isGood = forRows(
      [&](uint32_t row, uint32_t offset, uint32_t bytes, uint64_t address) {
        uint8_t *to = accessGlobal(address, bytes, /*isStore=*/true);
        for (uint32_t i = 0; to && i < bytes; ++i)
          to[i] = block.shared[swizzleAddress(
              box + row * map.getRowBytes() + offset + i, map.swizzle)];
        return to != nullptr;
      });
  if (!isGood)
    return;
  block.inFlight.beginRead(box, end, &instruction);
  StoreQueue &queue = warp.getBulkStores(lane);
  queue.last = &instruction;
  queue.uncommitted.push_back({box, end});
}

void TensorCopy::run() {
  if (!readMap() || !placeBox())
    return;
  if (info.isLoad)
    load();
  else
    store();
}

void runTensorCopy(Warp &warp, const Instruction &instruction, LaneMask mask) {
  for (; mask && !warp.block.execution.hasFault(); mask &= mask - 1)
    TensorCopy(warp, __builtin_ctz(mask), instruction).run();
}

void runCommit(Warp &warp, const Instruction &, LaneMask mask) {
  forLanes(mask, [&](unsigned lane) {
    StoreQueue &queue = warp.getBulkStores(lane);
    queue.groups.push_back(std::move(queue.uncommitted));
    queue.uncommitted.clear();
  });
}

// Waits until at most instruction.offset groups are pending. Copies write
// global memory when they begin, so the end of their reads is the end of all.
void runWait(Warp &warp, const Instruction &instruction, LaneMask mask) {
  forLanes(mask, [&](unsigned lane) {
    auto &groups = warp.getBulkStores(lane).groups;
    for (; groups.size() > uint64_t(instruction.offset); groups.pop_front())
      for (ByteRange range : groups.front())
        warp.block.endAsyncRead(warp, lane, range);
  });
}

bool decodeTensorCopy(Decoder &d) {
  TensorCopyInfo info;
  StringRef rank = d.takeOneOf({".1d", ".2d", ".3d", ".4d", ".5d"});
  if (rank.empty())
    return d.fail("expected .1d to .5d on a copy of a tensor");
  info.rank = rank[1] - '0';
  d.has(".tile");
  std::optional<Space> to = d.takeSpace(), from = d.takeSpace();
  info.isLoad = to == Space::Shared && from == Space::Global;
  bool isStore = to == Space::Global && from == Space::Shared;
  if (!(info.isLoad && d.has(".mbarrier::complete_tx::bytes")) &&
      !(isStore && d.has(".bulk_group")))
    return d.fail(
        "expected .shared::cluster.global.mbarrier::complete_tx::bytes or "
        ".global.shared::cta.bulk_group on a copy of a tensor");
  // A cache policy has no effect.
  bool hasPolicy = d.has(".L2::cache_hint");
  unsigned count = (info.isLoad ? 3 : 2) + hasPolicy;
  if (!d.expectOperands(count))
    return false;
  unsigned mapIndex = info.isLoad ? 1 : 0;
  const OperandSyntax &map = d.getSyntax().operands[mapIndex];
  if (!d.address(mapIndex, info.rank))
    return false;
  info.mapOffset = d.out.offset;
  if (!d.address(1 - mapIndex))
    return false;
  info.sharedOffset = d.out.offset;
  if (info.isLoad ? !d.address(2) : !d.constant(0, 4))
    return false;
  info.mbarrierOffset = d.out.offset;
  for (const OperandSyntax &coordinate : map.elements)
    if (!d.source(coordinate, 4))
      return false;
  if (hasPolicy && !d.source(count - 1, 8))
    return false;
  d.keepExtra(info);
  return d.finish(runTensorCopy);
}

} // namespace

bool decodeBulkCopy(Decoder &d) {
  if (!d.needTarget(90))
    return false;
  if (d.has(".tensor"))
    return decodeTensorCopy(d);
  if (d.has(".commit_group"))
    return d.expectOperands(0) && d.finish(runCommit);
  if (!d.has(".wait_group"))
    return d.fail("expected .tensor, .commit_group or .wait_group on "
                  "cp.async.bulk");
  d.has(".read");
  return d.groupCount() && d.finish(runWait);
}

} // namespace posenc::ptx

//===- Memory.cpp - memory of a device ------------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Memory.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

#include <cstring>

using namespace llvm;

namespace posenc::ptx {

static constexpr uint64_t gap = 1 << 16;

ShadowCell *Region::getCells(uint64_t offset, uint32_t launch) {
  uint64_t index = offset / pageBytes;
  if (pages.empty())
    pages.resize(divideCeil(size, pageBytes));
  Page &page = pages[index];
  if (!page.cells) {
    page.cells = std::make_unique<ShadowCell[]>(pageBytes);
  } else if (page.launch != launch) {
    std::fill_n(page.cells.get(), pageBytes, ShadowCell());
  }
  page.launch = launch;
  return page.cells.get();
}

uint64_t Memory::reserve(uint64_t size) {
  uint64_t address = alignTo(end + gap, 256);
  end = address + size;
  return address;
}

Region &Memory::addRegion(uint64_t address, uint64_t size, StringRef name) {
  auto region = std::make_unique<Region>();
  region->address = address;
  region->size = size;
  region->name = name.str();
  Region &result = *region;
  regions.emplace(address, std::move(region));
  return result;
}

uint64_t Memory::add(MutableArrayRef<uint8_t> bytes, Access access,
                     StringRef name, uint64_t misalignment) {
  uint64_t address = reserve(bytes.size() + misalignment) + misalignment;
  Region &region = addRegion(address, bytes.size(), name);
  region.data = bytes.data();
  region.access = access;
  if (access == Access::WriteOnly)
    region.valid.assign(bytes.size(), 0);
  return region.address;
}

void Memory::allocateAt(uint64_t address, uint64_t size, StringRef name) {
  Region &region = addRegion(address, size, name);
  // A pattern that shows up in results computed from uninitialized memory.
  region.own.assign(size, 0xcd);
  region.valid.assign(size, 0);
  region.data = region.own.data();
}

uint64_t Memory::allocate(uint64_t size, StringRef name) {
  uint64_t address = reserve(size);
  allocateAt(address, size, name);
  return address;
}

bool Memory::free(uint64_t address) {
  last = nullptr;
  return regions.erase(address);
}

void Memory::clear() {
  last = nullptr;
  regions.clear();
  variables.clear();
}

Region *Memory::find(uint64_t address, uint64_t size) {
  // Overflow cannot happen: addresses end far below 2^63.
  if (last && address >= last->address &&
      address + size <= last->address + last->size && address + size >= address)
    return last;
  auto it = regions.upper_bound(address);
  if (it == regions.begin())
    return nullptr;
  Region &region = *std::prev(it)->second;
  uint64_t offset = address - region.address;
  if (offset > region.size || size > region.size - offset)
    return nullptr;
  last = &region;
  return last;
}

bool Memory::read(uint64_t address, void *to, uint64_t size) {
  if (!size)
    return true;
  Region *region = find(address, size);
  if (region)
    std::memcpy(to, region->data + (address - region->address), size);
  return region;
}

uint8_t *Memory::overwrite(uint64_t address, uint64_t size) {
  Region *region = find(address, size);
  if (!region)
    return nullptr;
  uint64_t offset = address - region->address;
  if (!region->valid.empty())
    std::memset(region->valid.data() + offset, 1, size);
  return region->data + offset;
}

bool Memory::write(uint64_t address, const void *from, uint64_t size) {
  if (!size)
    return true;
  uint8_t *to = overwrite(address, size);
  if (to)
    std::memcpy(to, from, size);
  return to;
}

bool Memory::fill(uint64_t address, uint8_t value, uint64_t size) {
  if (!size)
    return true;
  uint8_t *to = overwrite(address, size);
  if (to)
    std::memset(to, value, size);
  return to;
}

std::string Memory::describe(uint64_t address) const {
  const Region *nearest = nullptr;
  auto it = regions.upper_bound(address);
  if (it != regions.end())
    nearest = it->second.get();
  if (it != regions.begin()) {
    const Region *before = std::prev(it)->second.get();
    uint64_t behind = address - (before->address + before->size);
    if (!nearest || address < before->address + before->size ||
        behind < nearest->address - address)
      nearest = before;
  }
  if (!nearest)
    return "no buffer has been allocated";
  int64_t offset = address - nearest->address;
  if (offset < -int64_t(gap) || offset > int64_t(nearest->size + gap))
    return "no buffer is near this address";
  return "byte " + itostr(offset) + " of '" + nearest->name + "', which has " +
         utostr(nearest->size) + " bytes";
}

} // namespace posenc::ptx

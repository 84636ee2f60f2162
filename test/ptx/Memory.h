//===- Memory.h - memory of a device ----------------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_PTX_MEMORY_H
#define POSENC_TEST_PTX_MEMORY_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace posenc::ptx {

/// The permitted accesses of kernels to a buffer. `WriteOnly` bytes may be read
/// after they have been written.
enum class Access : uint8_t { ReadOnly, ReadWrite, WriteOnly };

/// The last accesses of a byte, for the detection of races; see Shadow.h.
/// Threads are numbered from 1; 0 is none. The reader may also be a set of
/// ReadSets.
struct ShadowCell {
  uint32_t writer = 0, writeTick = 0;
  uint32_t reader = 0, readTick = 0, readBlock = 0;

  bool operator==(const ShadowCell &other) const {
    return std::memcmp(this, &other, sizeof(*this)) == 0;
  }
};
static_assert(std::has_unique_object_representations_v<ShadowCell>);

/// An allocation: a buffer, or a variable of a module.
class Region {
public:
  uint64_t address = 0, size = 0;
  uint8_t *data = nullptr;
  Access access = Access::ReadWrite;
  bool isConst = false; // a variable in constant memory
  std::string name;
  /// For each byte, whether it has been written; empty if all bytes have.
  std::vector<uint8_t> valid;
  /// The memory of the region, unless the caller owns it.
  std::vector<uint8_t> own;

  /// Returns the shadow cells of the page that contains `offset`. They are
  /// reset when a new launch accesses them first.
  ShadowCell *getCells(uint64_t offset, uint32_t launch);
  static constexpr uint64_t pageBytes = 4096;

private:
  struct Page {
    uint32_t launch = 0;
    std::unique_ptr<ShadowCell[]> cells;
  };
  std::vector<Page> pages;
};

/// The memory of a device: regions at addresses that no host uses, separated by
/// gaps that fault. It also contains the variables of the modules it has run.
class Memory {
public:
  /// Allocates above `begin`, by default above all addresses of hosts, so that
  /// accesses with a host address fault.
  explicit Memory(uint64_t begin = uint64_t(1) << 50) : end(begin) {}
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;

  /// Adds a region of `bytes`, which the caller owns, and returns its address:
  /// a multiple of 256, plus `misalignment`. `WriteOnly` bytes count as not
  /// written.
  uint64_t add(llvm::MutableArrayRef<uint8_t> bytes, Access access,
               llvm::StringRef name = "", uint64_t misalignment = 0);
  template <typename T>
  uint64_t add(std::vector<T> &values, Access access, llvm::StringRef name = "",
               uint64_t misalignment = 0) {
    return add(
        {reinterpret_cast<uint8_t *>(values.data()), values.size() * sizeof(T)},
        access, name, misalignment);
  }
  /// Allocates a region of `size` uninitialized bytes and returns its address.
  uint64_t allocate(uint64_t size, llvm::StringRef name = "");
  /// Reserves an address range, which faults until allocateAt() adds the
  /// region.
  uint64_t reserve(uint64_t size);
  void allocateAt(uint64_t address, uint64_t size, llvm::StringRef name = "");
  /// Removes the region that begins at `address`. Returns false if there is
  /// none.
  bool free(uint64_t address);
  /// Removes all regions and variables. Their addresses are not used again.
  void clear();

  /// Returns the region that contains all of the bytes, or null.
  Region *find(uint64_t address, uint64_t size);
  /// Copies of the host. Return false if no region contains all of the bytes.
  bool read(uint64_t address, void *to, uint64_t size);
  bool write(uint64_t address, const void *from, uint64_t size);
  bool fill(uint64_t address, uint8_t value, uint64_t size);

  /// Describes an address relative to the nearest region, for error texts.
  std::string describe(uint64_t address) const;

  /// The addresses of the variables of the program `id`; empty before they are
  /// allocated.
  std::vector<uint64_t> &getVariables(uint64_t id) { return variables[id]; }
  /// Returns the number of a new launch.
  uint32_t nextLaunch() { return ++launches; }

private:
  /// Marks the bytes as written and returns a pointer to them, or null.
  uint8_t *overwrite(uint64_t address, uint64_t size);
  Region &addRegion(uint64_t address, uint64_t size, llvm::StringRef name);

  std::map<uint64_t, std::unique_ptr<Region>> regions;
  std::map<uint64_t, std::vector<uint64_t>> variables;
  Region *last = nullptr;
  uint64_t end;
  uint32_t launches = 0;
};

} // namespace posenc::ptx

#endif // POSENC_TEST_PTX_MEMORY_H

//===- Memory.h - the memory of a device ------------------------*- C++ -*-===//
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
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace posenc::ptx {

/// What a kernel may do with a buffer. `WriteOnly` may be read once it has
/// been written.
enum class Access : uint8_t { ReadOnly, ReadWrite, WriteOnly };

/// Who accessed a byte last, for the detection of races; see Shadow.h.
struct ShadowCell {
  uint32_t writer = 0, writeTick = 0;
  uint32_t reader = 0, readTick = 0, readBlock = 0;
};

/// A buffer, or a variable of a module.
class Region {
public:
  uint64_t address = 0, size = 0;
  uint8_t *data = nullptr;
  Access access = Access::ReadWrite;
  bool isConst = false; // a variable in the space of constants
  std::string name;
  /// A byte each: whether it has been written; empty if all have.
  std::vector<uint8_t> valid;
  /// The bytes, unless they are the caller's.
  std::vector<uint8_t> own;

  /// The cells of the page that holds `offset`, as they are in this launch.
  ShadowCell *getCells(uint64_t offset, uint32_t launch);
  static constexpr uint64_t pageBytes = 4096;

private:
  struct Page {
    uint32_t launch = 0;
    std::unique_ptr<ShadowCell[]> cells;
  };
  std::vector<Page> pages;
};

/// A device's memory: regions at addresses that no host has, with nothing
/// between them. It also holds the variables of the modules it has run.
class Memory {
public:
  Memory();
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;

  /// Makes `bytes`, which stay the caller's, known to kernels. Addresses are
  /// multiples of 256, plus `misalignment`.
  uint64_t add(llvm::MutableArrayRef<uint8_t> bytes, Access access,
               llvm::StringRef name = "", uint64_t misalignment = 0);
  template <typename T>
  uint64_t add(std::vector<T> &values, Access access, llvm::StringRef name = "",
               uint64_t misalignment = 0) {
    return add(
        {reinterpret_cast<uint8_t *>(values.data()), values.size() * sizeof(T)},
        access, name, misalignment);
  }
  /// Bytes that nobody has written yet.
  uint64_t allocate(uint64_t size, llvm::StringRef name = "");
  /// An address for so many bytes, which are not there yet, and the bytes
  /// there.
  uint64_t reserve(uint64_t size);
  void allocateAt(uint64_t address, uint64_t size, llvm::StringRef name = "");
  /// False if no region begins there.
  bool free(uint64_t address);

  /// The region that holds all of the bytes, or null.
  Region *find(uint64_t address, uint64_t size);
  /// The host's side of copies; false if the bytes are in no region.
  bool read(uint64_t address, void *to, uint64_t size);
  bool write(uint64_t address, const void *from, uint64_t size);
  bool fill(uint64_t address, uint8_t value, uint64_t size);

  /// What the nearest region to `address` is, in words.
  std::string describe(uint64_t address) const;

  /// Addresses of the variables of the module `id`; empty if it has not been
  /// run with this memory.
  std::vector<uint64_t> &getVariables(uint64_t id) { return variables[id]; }
  /// Number of the next launch.
  uint32_t nextLaunch() { return ++launches; }

private:
  /// Where the host may write the bytes, which count as written; else null.
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

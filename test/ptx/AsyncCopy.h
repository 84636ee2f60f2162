//===- AsyncCopy.h - copies to shared memory in flight ----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_PTX_ASYNCCOPY_H
#define POSENC_TEST_PTX_ASYNCCOPY_H

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace posenc::ptx {

struct Instruction;

/// A cp.async that its thread has not waited for.
struct PendingCopy {
  const Instruction *instruction;
  uint32_t to;             // offset in shared memory
  uint8_t bytes = 0;       // written
  uint8_t sourceBytes = 0; // read; the rest is filled with zeros
  const uint8_t *from = nullptr;
  std::array<uint8_t, 16> data; // of the source when the copy was issued
};

/// The copies of one thread, oldest first.
struct CopyQueue {
  std::deque<PendingCopy> copies;
  std::deque<uint32_t> groups; // numbers of copies in the committed groups
  uint32_t uncommitted = 0;    // the last copies, which are in no group
};

/// For each byte of shared memory, the instruction whose copy is still writing
/// it. Such a byte may hold its old or its new value.
class InFlightBytes {
public:
  void reset(std::size_t size) {
    writers.assign(size, nullptr);
    count = 0;
  }
  /// Returns the instruction that is writing a byte of the range, or null.
  const Instruction *find(uint64_t begin, uint64_t end) const {
    if (!count)
      return nullptr;
    for (; begin < end; ++begin)
      if (writers[begin])
        return writers[begin];
    return nullptr;
  }
  void begin(uint64_t begin, uint64_t end, const Instruction *instruction) {
    count += end - begin;
    std::fill(writers.begin() + begin, writers.begin() + end, instruction);
  }
  void end(uint64_t begin, uint64_t end) {
    count -= end - begin;
    std::fill(writers.begin() + begin, writers.begin() + end, nullptr);
  }

private:
  std::vector<const Instruction *> writers;
  uint64_t count = 0; // bytes in flight
};

} // namespace posenc::ptx

#endif // POSENC_TEST_PTX_ASYNCCOPY_H

//===- MBarrier.h - barriers in shared memory -------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_PTX_MBARRIER_H
#define POSENC_TEST_PTX_MBARRIER_H

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

namespace posenc::ptx {

struct Instruction;

/// An mbarrier object. Its current phase completes when no arrivals and no
/// bytes are missing.
struct MBarrier {
  const Instruction *init = nullptr;
  uint32_t initThread = 0; // in the block
  uint32_t initTick = 0;
  uint32_t count = 0;   // arrivals per phase
  uint32_t missing = 0; // arrivals that the current phase lacks
  int64_t bytes = 0;    // that the current phase expects, minus copied ones
  uint64_t phase = 0;   // number of completed phases
  /// The last tick of each warp, and of bulk copies, that precedes the arrivals
  /// of all phases, and of the completed phases: what a wait makes visible.
  std::vector<uint32_t> seen, completed;

  void see(const uint32_t *ticks) {
    for (uint32_t &tick : seen)
      tick = std::max(tick, *ticks++);
  }
  /// Starts the next phase if the current one is complete.
  bool tryComplete() {
    if (missing || bytes)
      return false;
    ++phase;
    missing = count;
    completed = seen;
    return true;
  }
};

/// The mbarriers of a block, by their offset in shared memory.
class MBarriers {
public:
  static constexpr unsigned size = 8;

  void clear() { barriers.clear(); }
  MBarrier &add(uint32_t offset) { return barriers[offset] = MBarrier(); }
  bool remove(uint32_t offset) { return barriers.erase(offset); }
  /// Returns null if there is none.
  MBarrier *get(uint32_t offset) {
    auto it = barriers.find(offset);
    return it == barriers.end() ? nullptr : &it->second;
  }
  /// Returns the initialization of an mbarrier that overlaps with the range, or
  /// null.
  const Instruction *find(uint64_t begin, uint64_t end) const {
    if (barriers.empty())
      return nullptr;
    auto it = barriers.lower_bound(end);
    if (it == barriers.begin() || std::prev(it)->first + size <= begin)
      return nullptr;
    return std::prev(it)->second.init;
  }

private:
  std::map<uint32_t, MBarrier> barriers;
};

} // namespace posenc::ptx

#endif // POSENC_TEST_PTX_MBARRIER_H

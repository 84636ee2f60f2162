//===- ReadSets.h - the warps that have read a byte -------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_PTX_READSETS_H
#define POSENC_TEST_PTX_READSETS_H

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

namespace posenc::ptx {

/// Sets of reads: for each warp of a block, the tick of the last read of a
/// lane, then for each warp that of the last read of all its lanes together; 0
/// for none. Equal sets are stored once, since neighboring bytes are mostly
/// read together.
class ReadSets {
public:
  /// Removes all sets but the empty one, which is number 0.
  void reset(uint32_t numWarps) {
    sets.assign(1, std::vector<uint32_t>(2 * numWarps, 0));
    next.clear();
    last = {};
  }
  /// Returns the number of the set that has one more read, at `index`.
  uint32_t add(uint32_t set, uint32_t index, uint32_t tick) {
    Key key(set, index, tick);
    if (key == last.first)
      return last.second;
    auto [it, isNew] = next.try_emplace(key, sets.size());
    if (isNew) {
      sets.push_back(sets[set]);
      sets.back()[index] = std::max(sets.back()[index], tick);
    }
    last = *it;
    return it->second;
  }
  const std::vector<uint32_t> &get(uint32_t set) const { return sets[set]; }

private:
  using Key = std::tuple<uint32_t, uint32_t, uint32_t>;
  std::vector<std::vector<uint32_t>> sets;
  std::map<Key, uint32_t> next;
  // The last result. No read has tick 0, so the empty one is never found.
  std::pair<Key, uint32_t> last;
};

} // namespace posenc::ptx

#endif // POSENC_TEST_PTX_READSETS_H

//===- ProxyFences.h - fences between generic and async proxy ---*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_PTX_PROXYFENCES_H
#define POSENC_TEST_PTX_PROXYFENCES_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace posenc::ptx {

/// The ticks at which the threads of a block executed a kind of fence.
class FenceHistory {
public:
  void reset(std::size_t threads) { ticks.assign(threads, {}); }
  void add(uint32_t thread, uint32_t tick) { ticks[thread].push_back(tick); }
  /// Returns the first fence of the thread that follows its accesses at `tick`;
  /// 0 if there is none.
  uint32_t find(uint32_t thread, uint32_t tick) const {
    const std::vector<uint32_t> &fences = ticks[thread];
    auto it = std::lower_bound(fences.begin(), fences.end(), tick);
    return it == fences.end() ? 0 : *it;
  }

private:
  std::vector<std::vector<uint32_t>> ticks; // per thread, ascending
};

} // namespace posenc::ptx

#endif // POSENC_TEST_PTX_PROXYFENCES_H

//===- Parallel.h - parallel loop over ranges -------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_REFERENCE_PARALLEL_H
#define POSENC_LIB_REFERENCE_PARALLEL_H

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstdint>
#include <mpfr.h>
#include <thread>
#include <vector>

namespace posenc::reference {

/// Calls body(begin, end) on all cores for ranges of at most \p grain indices
/// that cover [0, count). The ranges do not depend on the number of threads.
template <typename Body>
void parallelFor(int64_t count, int64_t grain, const Body &body) {
  assert(grain > 0 && "ranges are not empty");
  std::atomic<int64_t> next{0};
  auto work = [&] {
    for (int64_t begin; (begin = next.fetch_add(grain)) < count;)
      body(begin, std::min(begin + grain, count));
  };
  int64_t ranges = (count + grain - 1) / grain;
  int64_t cores = std::max<int64_t>(1, std::thread::hardware_concurrency());
  std::vector<std::thread> threads;
  for (int64_t i = 1; i < std::min(cores, ranges); ++i)
    threads.emplace_back([&] {
      work();
      // Each thread has its own MPFR cache of constants.
      mpfr_free_cache2(MPFR_FREE_LOCAL_CACHE);
    });
  work();
  for (std::thread &thread : threads)
    thread.join();
}

} // namespace posenc::reference

#endif // POSENC_LIB_REFERENCE_PARALLEL_H

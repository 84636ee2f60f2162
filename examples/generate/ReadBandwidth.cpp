//===- ReadBandwidth.cpp - how fast threads read memory -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ReadBandwidth.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

/// Adds all words in eight sums, which compilers turn into vectors.
static uint64_t addWords(const std::vector<uint64_t> &words) {
  uint64_t sums[8] = {};
  for (size_t i = 0; i + 8 <= words.size(); i += 8)
    for (size_t j = 0; j < 8; ++j)
      sums[j] += words[i + j];
  uint64_t total = 0;
  for (uint64_t sum : sums)
    total += sum;
  return total;
}

double measureReadBandwidth(unsigned numThreads) {
  // More than the caches of a core have.
  constexpr size_t kBytes = size_t{128} << 20;
  constexpr int kRuns = 5;
  std::vector<std::vector<uint64_t>> memory(numThreads);
  std::atomic<uint64_t> sink{0};
  double best = 0;
  // Run 0 allocates, so that each thread's memory is near to it.
  for (int run = 0; run <= kRuns; ++run) {
    auto start = std::chrono::steady_clock::now();
    std::vector<std::thread> threads;
    for (std::vector<uint64_t> &words : memory)
      threads.emplace_back([&words, &sink, run] {
        if (run == 0)
          words.assign(kBytes / sizeof(uint64_t), 1);
        sink += addWords(words);
      });
    for (std::thread &thread : threads)
      thread.join();
    std::chrono::duration<double> seconds =
        std::chrono::steady_clock::now() - start;
    if (run > 0)
      best = std::max(best, static_cast<double>(numThreads) * kBytes /
                                seconds.count());
  }
  return best;
}

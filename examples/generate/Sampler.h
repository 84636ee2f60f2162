//===- Sampler.h - the next token from logits -------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_EXAMPLES_GENERATE_SAMPLER_H
#define POSENC_EXAMPLES_GENERATE_SAMPLER_H

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

struct Sampling {
  /// 0 takes the most likely token.
  double temperature = 0;
  /// The number of most likely tokens to choose from; 0 means all.
  int64_t topK = 0;
  uint64_t seed = 0;
};

/// Chooses tokens. The same seed and logits give the same tokens.
class Sampler {
public:
  explicit Sampler(Sampling sampling)
      : sampling(sampling), random(sampling.seed) {}

  int64_t choose(const float *logits, int64_t vocabulary) {
    if (sampling.temperature == 0)
      return std::max_element(logits, logits + vocabulary) - logits;
    order.resize(vocabulary);
    std::iota(order.begin(), order.end(), int64_t{0});
    int64_t count =
        sampling.topK ? std::min(sampling.topK, vocabulary) : vocabulary;
    // Equal logits are in the order of their tokens.
    std::partial_sort(order.begin(), order.begin() + count, order.end(),
                      [&](int64_t a, int64_t b) {
                        return logits[a] != logits[b] ? logits[a] > logits[b]
                                                      : a < b;
                      });
    double greatest = logits[order[0]], total = 0;
    sums.clear();
    for (int64_t number = 0; number < count; ++number) {
      total +=
          std::exp((logits[order[number]] - greatest) / sampling.temperature);
      sums.push_back(total);
    }
    // 53 bits of the generator, whose numbers the standard defines.
    double at = static_cast<double>(random() >> 11) * 0x1p-53 * total;
    auto found = std::upper_bound(sums.begin(), sums.end(), at) - sums.begin();
    return order[std::min<int64_t>(found, count - 1)];
  }

private:
  Sampling sampling;
  std::mt19937_64 random;
  std::vector<int64_t> order;
  std::vector<double> sums;
};

#endif // POSENC_EXAMPLES_GENERATE_SAMPLER_H

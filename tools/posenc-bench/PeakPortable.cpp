//===- PeakPortable.cpp - FMA and read loops in portable C++ --------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PeakLoops.h"

using namespace mlir::posenc;

/// Results are stored here, so that the compiler keeps the computation.
static volatile double keptSum;

template <typename T>
static double fma(double flops, float factor, float addend) {
  constexpr int lanes = 64 / int(sizeof(T)), count = 4;
  struct Lanes {
    T values[lanes];
  };
  Lanes chains[count];
  for (int chain = 0; chain < count; ++chain)
    for (int lane = 0; lane < lanes; ++lane)
      chains[chain].values[lane] = static_cast<T>(chain + lane);
  T a = static_cast<T>(factor), b = static_cast<T>(addend);
  double done = runChains(flops, 2 * lanes, chains, [a, b](Lanes x) {
    for (int lane = 0; lane < lanes; ++lane)
      x.values[lane] = x.values[lane] * a + b;
    return x;
  });
  double sum = 0;
  for (const Lanes &chain : chains)
    for (T value : chain.values)
      sum += static_cast<double>(value);
  keptSum = sum;
  return done;
}

static uint32_t read(const char *data, int64_t bytes, int64_t ahead) {
  uint32_t sums[16] = {};
  uint32_t rest = readRun(data, bytes, ahead, [&sums](const char *at) {
    for (int line = 0; line < 4; ++line)
      for (int lane = 0; lane < 16; ++lane) {
        uint32_t word;
        __builtin_memcpy(&word, at + 64 * line + 4 * lane, sizeof(word));
        sums[lane] += word;
      }
  });
  for (uint32_t sum : sums)
    rest += sum;
  return rest;
}

const PeakLoops mlir::posenc::kPortablePeaks = {fma<double>, fma<float>,
                                                fma<float>, read};

//===- PeakLoops.h - loops at the peak rates of FMAs and reads --*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Files that are compiled for more than the baseline instruction set include
// this header. It calls no inline functions of other headers: the linker could
// keep their copy for the larger instruction set and use it everywhere.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TOOLS_BENCH_PEAKLOOPS_H
#define POSENC_TOOLS_BENCH_PEAKLOOPS_H

#include <stdint.h>

namespace mlir::posenc {

/// Runs FMAs in registers with at least `flops` floating-point operations and
/// returns the actual number. The factor 1 and the addend 0 keep the values
/// constant.
using FmaLoop = double (*)(double flops, float factor, float addend);

/// Reads `bytes` bytes and prefetches `ahead` bytes in advance (0: no
/// prefetches). Returns the sum of the 32-bit words and of the up to three
/// remaining bytes, modulo 2^32.
using ReadLoop = uint32_t (*)(const char *data, int64_t bytes, int64_t ahead);

struct PeakLoops {
  /// By the type of the factors; products of bf16 are accumulated in f32.
  FmaLoop f64, f32, bf16;
  ReadLoop read;
};

extern const PeakLoops kPortablePeaks;
#if defined(__x86_64__)
extern const PeakLoops kAVX2Peaks;
extern const PeakLoops kAVX512Peaks;
extern const PeakLoops kAVX512BF16Peaks;

/// Multiplies tiles of bf16 (TDPBF16PS) in place of FMAs.
double multiplyTiles(double flops, float factor, float addend);
/// Whether this CPU has AMX-BF16, and the process may use it.
bool mayUseAMX();
#endif

/// Applies `step`, which takes `flopsPerStep` operations, to `Count`
/// independent accumulators in turn, enough to hide the latency of a step.
/// Returns the number of operations.
template <int Count, typename Vector, typename Step>
inline __attribute__((always_inline)) double
runChains(double flops, double flopsPerStep, Vector (&chains)[Count],
          Step step) {
  constexpr int unrolled = 4;
  double flopsPerRound = flopsPerStep * Count * unrolled;
  int64_t rounds = static_cast<int64_t>(flops / flopsPerRound) + 1;
  for (int64_t round = 0; round < rounds; ++round)
    for (int i = 0; i < unrolled; ++i)
      for (int chain = 0; chain < Count; ++chain)
        chains[chain] = step(chains[chain]);
  return static_cast<double>(rounds) * flopsPerRound;
}

/// Calls step(address) for each block of 256 bytes, and returns the sum of the
/// remaining bytes as ReadLoop defines it.
template <typename Step>
inline __attribute__((always_inline)) uint32_t
readRun(const char *data, int64_t bytes, int64_t ahead, Step step) {
  int64_t i = 0;
  if (ahead == 0) {
    for (; i + 256 <= bytes; i += 256)
      step(data + i);
  } else {
    for (; i + 256 <= bytes; i += 256) {
      for (int line = 0; line < 256; line += 64)
        __builtin_prefetch(data + i + ahead + line);
      step(data + i);
    }
  }
  uint32_t rest = 0;
  for (; i + 4 <= bytes; i += 4) {
    uint32_t word;
    __builtin_memcpy(&word, data + i, sizeof(word));
    rest += word;
  }
  for (; i < bytes; ++i)
    rest += static_cast<unsigned char>(data[i]);
  return rest;
}

} // namespace mlir::posenc

#endif // POSENC_TOOLS_BENCH_PEAKLOOPS_H

//===- PeakTest.cpp - FMA and read loops of each ISA ----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PeakLoops.h"

#include "gtest/gtest.h"

#include <cstring>
#include <vector>

using namespace mlir::posenc;

namespace {

struct Peaks {
  const char *name;
  const PeakLoops *loops;
};

/// Returns the loops that this CPU can run.
std::vector<Peaks> getAllPeaks() {
  std::vector<Peaks> all = {{"portable", &kPortablePeaks}};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    all.push_back({"avx2", &kAVX2Peaks});
  if (__builtin_cpu_supports("avx512bw"))
    all.push_back({"avx512", &kAVX512Peaks});
  if (__builtin_cpu_supports("avx512bf16"))
    all.push_back({"avx512bf16", &kAVX512BF16Peaks});
  if (mayUseAMX()) {
    static PeakLoops amx = kAVX512BF16Peaks;
    amx.bf16 = multiplyTiles;
    all.push_back({"amx", &amx});
  }
#endif
  return all;
}

/// The sum of all words is correct, so no byte is skipped or read twice.
TEST(PeakTest, ReadsEachByteOnce) {
  std::vector<char> data(4096 + 3);
  for (size_t i = 0; i < data.size(); ++i)
    data[i] = static_cast<char>(i * 37 + i / 256);
  for (const Peaks &candidate : getAllPeaks())
    for (int64_t bytes : {0, 1, 3, 4, 7, 64, 255, 256, 260, 1000, 4096, 4099})
      for (int64_t ahead : {0, 512}) {
        uint32_t expected = 0;
        int64_t i = 0;
        for (; i + 4 <= bytes; i += 4) {
          uint32_t word;
          std::memcpy(&word, data.data() + i, sizeof(word));
          expected += word;
        }
        for (; i < bytes; ++i)
          expected += static_cast<unsigned char>(data[i]);
        EXPECT_EQ(candidate.loops->read(data.data(), bytes, ahead), expected)
            << candidate.name << ", " << bytes << " bytes";
      }
}

/// Loops run at least the requested number of operations, and at most one round
/// more, which is 4 tiles with AMX.
TEST(PeakTest, RunsRequestedOperations) {
  for (const Peaks &candidate : getAllPeaks())
    for (FmaLoop PeakLoops::*loop :
         {&PeakLoops::f64, &PeakLoops::f32, &PeakLoops::bf16})
      for (double flops : {1.0, 1e4, 1e6}) {
        double done = (candidate.loops->*loop)(flops, 1, 0);
        EXPECT_GE(done, flops) << candidate.name;
        EXPECT_LE(done, flops + 4 * 16384) << candidate.name;
      }
}

} // namespace

//===- ScaleTest.cpp - x *= a for each element type and ISA ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScaleLoops.h"

#include "gtest/gtest.h"

#include <cstring>
#include <vector>

using namespace mlir::posenc;

namespace {

struct Loops {
  const char *name;
  const ScaleLoops *loops;
};

/// Returns the loops that this CPU can run.
std::vector<Loops> getAllLoops() {
  std::vector<Loops> all = {{"portable", &kPortableLoops}};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2"))
    all.push_back({"avx2", &kAVX2Loops});
  if (__builtin_cpu_supports("avx512bw"))
    all.push_back({"avx512", &kAVX512Loops});
  if (__builtin_cpu_supports("avx512bf16"))
    all.push_back({"avx512bf16", &kAVX512BF16Loops});
#endif
  return all;
}

/// Two values of an element type and their products with 1.5. `before` is 3,
/// whose product 4.5 is exact. For 16-bit types, `odd` has a product halfway
/// between two values, which tests that results are rounded to nearest even.
template <typename T> struct Values {
  ScaleLoop ScaleLoops::*loop;
  T before, after, odd, oddAfter;
};

/// Expects that each loop scales the given runs of rows by 1.5 and nothing
/// else.
template <typename T> void expectScaled(const Values<T> &values) {
  constexpr int64_t rows = 6, rowBytes = 1024;
  constexpr int64_t perRow = rowBytes / int64_t(sizeof(T));
  const std::vector<std::vector<ByteRun>> forms = {{{0, 64}},
                                                   {{64, 128}},
                                                   {{0, 64}, {128, 128}},
                                                   {{0, 256}},
                                                   {{0, 192}, {256, 64}},
                                                   {{0, 320}},
                                                   {{0, 448}},
                                                   {{512, 512}},
                                                   {{0, 576}},
                                                   {{0, 1024}},
                                                   {{0, 8}},
                                                   {{64, 72}},
                                                   {{0, 136}, {256, 64}}};
  for (const Loops &candidate : getAllLoops())
    for (const std::vector<ByteRun> &runs : forms)
      for (int64_t count : {int64_t(1), rows}) {
        std::vector<T> data(rows * perRow), expected;
        for (size_t i = 0; i < data.size(); ++i)
          data[i] = i % 3 ? values.before : values.odd;
        expected = data;
        for (int64_t row = 0; row < count; ++row)
          for (const ByteRun &run : runs)
            for (int64_t at = run.offset; at < run.offset + run.bytes;
                 at += sizeof(T)) {
              T &value = expected[row * perRow + at / int64_t(sizeof(T))];
              value = value == values.before ? values.after : values.oddAfter;
            }
        (candidate.loops->*values.loop)({reinterpret_cast<char *>(data.data()),
                                         count, rowBytes, runs.data(),
                                         int64_t(runs.size())},
                                        1.5f);
        EXPECT_EQ(
            std::memcmp(data.data(), expected.data(), data.size() * sizeof(T)),
            0)
            << candidate.name << ", " << sizeof(T) << " bytes, runs of "
            << runs[0].bytes << ", " << count << " rows";
      }
}

TEST(ScaleTest, F64) {
  expectScaled<double>({&ScaleLoops::f64, 3, 4.5, 5, 7.5});
}
TEST(ScaleTest, F32) {
  expectScaled<float>({&ScaleLoops::f32, 3, 4.5f, 5, 7.5f});
}
// 1.5 x (1 + 1/1024) is 1.5 + 1.5/1024, halfway between 1.5 + 1/1024 and the
// even 1.5 + 2/1024.
TEST(ScaleTest, F16) {
  expectScaled<uint16_t>({&ScaleLoops::f16, 0x4200, 0x4480, 0x3c01, 0x3e02});
}
// 1.5 x (1 + 1/128) is halfway between two values, as for f16.
TEST(ScaleTest, BF16) {
  expectScaled<uint16_t>({&ScaleLoops::bf16, 0x4040, 0x4090, 0x3f81, 0x3fc2});
}

} // namespace

//===- RoundedFrequenciesTest.cpp - frequencies of transformers -----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The bits of `inv_freq` as functions of transformers 5.24 computed them on
// PyTorch 2.15, for 8 pairs. PyTorch's powers are not correctly rounded, so a
// frequency may differ by one unit in the last place.
//
//===----------------------------------------------------------------------===//

#include "TestUtils.h"

#include <cstdlib>
#include <cstring>

using namespace mlir;
using namespace mlir::posenc;

namespace {

struct Golden {
  const char *fields;
  uint32_t bits[8];
};

const Golden kGoldens[] = {
    {"base = 1.0e4",
     {0x3f800000, 0x3ea1e89b, 0x3dcccccd, 0x3d0186e3, 0x3c23d70a, 0x3b4f3e38,
      0x3a83126f, 0x39a5cb60}},
    {"base = 1.0e4, scaling = #posenc.linear<factor = 3>",
     {0x3eaaaaab, 0x3dd7e0cf, 0x3d088889, 0x3c2cb3d9, 0x3b5a740d, 0x3a8a297b,
      0x39aec33f, 0x38dd0f2b}},
    {"base = 5.0e5, scaling = #posenc.llama3<factor = 8, low_freq_factor = 1, "
     "high_freq_factor = 4, original_max_position = 8192>",
     {0x3f800000, 0x3e4693b0, 0x3d1a08c8, 0x3beef74f, 0x3a0995d2, 0x380fc8f8,
      0x36df10c4, 0x35ad07a7}},
    {"base = 1.0e4, scaling = #posenc.yarn<factor = 4, original_max_position = "
     "4096>",
     {0x3f800000, 0x3ea1e89b, 0x3dcccccd, 0x3cd27b30, 0x3bcccccc, 0x3ab55671,
      0x3983126f, 0x38a5cb60}},
    {"base = 1.5e5, scaling = #posenc.yarn<factor = 32, original_max_position "
     "= 4096, truncate = false>",
     {0x3f800000, 0x3e66d3fa, 0x3d502194, 0x3bdea840, 0x39ef543c, 0x37989328,
      0x3689928c, 0x35781728}},
    {"base = 1.0e4, scaling = #posenc.dynamic<factor = 2, max_position = 4096, "
     "length = 16384>",
     {0x3f800000, 0x3e753a99, 0x3d6ae938, 0x3c6106f8, 0x3b578f2e, 0x3a4e7d5f,
      0x3945cd40, 0x383d7ab5}},
    {"base = 1.0e4, scaling = #posenc.longrope<short_factors = [1, 1, 1, 1, 1, "
     "1, 1, 1], long_factors = [1, 2.3, 4.1, 8.7, 16.3, 32.9, 64.7, 127.1], "
     "original_max_position = 4096, length = 8192>",
     {0x3f800000, 0x3e0cca44, 0x3cc7ce0c, 0x3b6e35dd, 0x3a20d316, 0x38c992e2,
      0x3781a767, 0x3626f7eb}},
    {"base = 1.0e6, scaling = #posenc.proportional<rotated_pairs = 2, factor = "
     "8>",
     {0x3e000000, 0x3cb61887, 0, 0, 0, 0, 0, 0}},
};

struct RoundedFrequenciesTest : AttrTest {
  FrequenciesAttr frequencies(const Golden &golden, const char *precision) {
    return parse<FrequenciesAttr>("#posenc.frequencies<dim = 16, " +
                                  std::string(golden.fields) +
                                  ", precision = " + precision + ">");
  }
};

int64_t getBits(float value) {
  int32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

TEST_F(RoundedFrequenciesTest, AreThoseOfTransformers) {
  int64_t numEqual = 0, numRounded = 0;
  for (const Golden &golden : kGoldens) {
    auto rounded = frequencies(golden, "hf_f32").computeFrequencies();
    auto exact = frequencies(golden, "exact").computeFrequencies();
    ASSERT_EQ(rounded.size(), 8u);
    for (size_t pair = 0; pair < 8; ++pair) {
      float value = rounded[pair].toFloat();
      // All are numbers of f32.
      EXPECT_TRUE(rounded[pair] == ::posenc::BigFloat(value));
      int64_t difference = getBits(value) - int64_t(golden.bits[pair]);
      EXPECT_LE(std::abs(difference), 1) << golden.fields << ", pair " << pair;
      numEqual += difference == 0;
      numRounded += getBits(exact[pair].toFloat()) == golden.bits[pair];
    }
  }
  EXPECT_GE(numEqual, 60);
  // Rounding only the result gives other frequencies.
  EXPECT_LT(numRounded, 60);
}

TEST_F(RoundedFrequenciesTest, ListsAreRounded) {
  auto attr = parse<FrequenciesAttr>(
      "#posenc.frequencies<dim = 4, scaling = #posenc.explicit<values = [0.1, "
      "-0.3]>, precision = hf_f32>");
  auto values = attr.computeFrequencies();
  EXPECT_TRUE(values[0] == ::posenc::BigFloat(0.1f));
  EXPECT_TRUE(values[1] == ::posenc::BigFloat(-0.3f));
}

// Rules that keep the frequencies keep the precision.
TEST_F(RoundedFrequenciesTest, PrecisionIsKept) {
  auto attr = frequencies(kGoldens[3], "hf_f32");
  EXPECT_TRUE(attr.withUnitAttentionFactor().roundsAngles());
  EXPECT_TRUE(attr.withLength(100).roundsAngles());
}

} // namespace

//===- SpirvModuleTest.cpp - Reading SPIR-V modules -----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Vulkan.h"
#include "VulkanKernel.h"

#include <gmock/gmock.h>
#include <random>

using namespace posenc::runtime;
using namespace posenc::test;
using testing::ElementsAre;

// These tests need no device.

// Reads a module and returns the error, or "".
static std::string read(const Words &words, SpirvModule *out = nullptr) {
  // Memory of the exact size, so that a sanitizer detects reads past the end.
  Words exact(words);
  exact.shrink_to_fit();
  SpirvModule module;
  std::string error;
  bool isGood = module.read(exact.data(), exact.size(), error);
  EXPECT_EQ(isGood, error.empty());
  if (out)
    *out = module;
  return error;
}

TEST(SpirvModule, Requirements) {
  SpirvModule module;
  ASSERT_EQ(read(addKernel("f64"), &module), "");
  EXPECT_EQ(module.version, 0x10000u);
  EXPECT_THAT(module.capabilities, testing::Contains(10u));
  ASSERT_EQ(module.kernels.size(), 1u);
  EXPECT_EQ(module.kernels[0].name, "k");
  EXPECT_THAT(module.kernels[0].workgroupSize, ElementsAre(64, 1, 1));
}

TEST(SpirvModule, ChecksCapabilities) {
  SpirvModule plain, wide, whole;
  ASSERT_EQ(read(addKernel("f32"), &plain), "");
  ASSERT_EQ(read(addKernel("f64"), &wide), "");
  ASSERT_EQ(read(addKernel("i64"), &whole), "");
  posenc_vulkan_facts facts{};
  std::snprintf(facts.name, sizeof(facts.name), "small");
  EXPECT_EQ(checkCapabilities(plain, facts), POSENC_OK);
  EXPECT_EQ(checkCapabilities(wide, facts), POSENC_UNSUPPORTED);
  EXPECT_STREQ(posenc_last_error(),
               "small: has no Float64, which the module needs");
  EXPECT_EQ(checkCapabilities(whole, facts), POSENC_UNSUPPORTED);
  EXPECT_STREQ(posenc_last_error(),
               "small: has no Int64, which the module needs");
  facts.float64 = facts.int64 = 1;
  EXPECT_EQ(checkCapabilities(wide, facts), POSENC_OK);
  EXPECT_EQ(checkCapabilities(whole, facts), POSENC_OK);
}

/// Truncation between instructions is detected by the checksum of VulkanCode.
TEST(SpirvModule, RefusesTruncatedInstructions) {
  Words good = addKernel();
  for (size_t begin = 0, end = 5; begin < good.size(); begin = end) {
    if (begin)
      end = begin + (good[begin] >> 16);
    for (size_t size = begin + 1; size < end; ++size)
      EXPECT_NE(read(Words(good.begin(), good.begin() + size)), "") << size;
  }
}

TEST(SpirvModule, SurvivesDamage) {
  Words good = addKernel();
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    Words bad = good;
    for (unsigned n = random() % 4 + 1; n--;) {
      uint32_t &word = bad[random() % bad.size()];
      word = random() % 2 ? random() : word ^ 1u << random() % 32;
    }
    read(bad);
  }
}

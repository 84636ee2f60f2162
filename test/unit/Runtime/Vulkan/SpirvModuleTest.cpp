//===- SpirvModuleTest.cpp - Damaged SPIR-V modules -------------*- C++ -*-===//
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
using testing::UnorderedElementsAre;

// No device is needed here.

static std::string read(const Words &words, SpirvModule *out = nullptr) {
  // Memory of exactly this size, so that a sanitizer sees a read past the end.
  Words exact(words);
  exact.shrink_to_fit();
  SpirvModule module;
  std::string error;
  EXPECT_EQ(module.read(exact.data(), exact.size(), error), error.empty());
  if (out)
    *out = module;
  return error;
}

TEST(SpirvModule, TellsWhatAKernelUses) {
  SpirvModule module;
  ASSERT_EQ(read(addKernel("f64"), &module), "");
  EXPECT_EQ(module.version, 0x10000u);
  EXPECT_THAT(module.capabilities, testing::Contains(10u));
  ASSERT_EQ(module.kernels.size(), 1u);
  const SpirvKernel &kernel = module.kernels[0];
  EXPECT_EQ(kernel.name, "k");
  EXPECT_THAT(kernel.workgroup, ElementsAre(64, 1, 1));
  EXPECT_THAT(kernel.bindings, UnorderedElementsAre(0, 1, 2));
  EXPECT_EQ(kernel.pushBytes, 4u);
  EXPECT_EQ(kernel.workgroupBytes, 0u);
}

TEST(SpirvModule, NeedsWhatADeviceHas) {
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

TEST(SpirvModule, RefusesEveryCut) {
  Words good = addKernel();
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_NE(read(Words(good.begin(), good.begin() + size)), "") << size;
}

TEST(SpirvModule, RefusesBuffersOfOtherSets) {
  EXPECT_EQ(
      read(assemble(
          R"(spirv.module Logical GLSL450 requires #spirv.vce<v1.0, [Shader], [SPV_KHR_storage_buffer_storage_class]> {
               spirv.GlobalVariable @b bind(1, 0) : !spirv.ptr<!spirv.struct<(f32 [0])>, StorageBuffer>
               spirv.func @k() "None" {
                 %b = spirv.mlir.addressof @b : !spirv.ptr<!spirv.struct<(f32 [0])>, StorageBuffer>
                 %v = spirv.Load "StorageBuffer" %b : !spirv.struct<(f32 [0])>
                 spirv.Return
               }
               spirv.EntryPoint "GLCompute" @k
               spirv.ExecutionMode @k "LocalSize", 1, 1, 1
             })")),
      "k uses a buffer that is not in descriptor set 0");
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

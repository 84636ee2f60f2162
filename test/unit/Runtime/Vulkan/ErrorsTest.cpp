//===- ErrorsTest.cpp - Errors of Vulkan devices, buffers and kernels -----===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Vulkan.h"

#include "VulkanLoader.h"

#include <cstdlib>
#include <gmock/gmock.h>

using namespace posenc::runtime;
using namespace posenc::test;
using testing::HasSubstr;

namespace {

class VulkanErrors : public VulkanTest {
protected:
  void expectRefused(const Words &words, posenc_status status,
                     const char *text) {
    VulkanModule module(device->device);
    EXPECT_EQ(module.create(words.data(), words.size()), status);
    EXPECT_THAT(posenc_last_error(), HasSubstr(text));
  }
  void expectNoKernel(const Module &module, const char *name,
                      uint32_t numBuffers, posenc_status status,
                      const char *text) {
    VulkanKernel kernel(device->device);
    EXPECT_EQ(kernel.create(*module, name, numBuffers, 4), status);
    EXPECT_THAT(posenc_last_error(), HasSubstr(text));
  }
};

/// Sets an environment variable for the lifetime of the object.
class Environment {
public:
  Environment(const char *name, const char *value) : name(name) {
    if (const char *old = std::getenv(name))
      before = old;
    ::setenv(name, value, 1);
  }
  ~Environment() {
    if (before.empty())
      ::unsetenv(name);
    else
      ::setenv(name, before.c_str(), 1);
  }

private:
  const char *name;
  std::string before;
};

} // namespace

TEST(VulkanLoader, MissingLoader) {
  std::shared_ptr<posenc::runtime::VulkanInstance> instance;
  EXPECT_EQ(posenc::runtime::VulkanInstance::create("libnone.so.1", instance),
            POSENC_NOT_FOUND);
  EXPECT_THAT(posenc_last_error(), HasSubstr("no Vulkan loader: libnone.so.1"));
}

TEST(VulkanLoader, AnotherLibrary) {
  std::shared_ptr<posenc::runtime::VulkanInstance> instance;
  EXPECT_EQ(posenc::runtime::VulkanInstance::create("libc.so.6", instance),
            POSENC_UNSUPPORTED);
  EXPECT_THAT(posenc_last_error(), HasSubstr("libc.so.6: not a loader"));
}

TEST_F(VulkanErrors, NoDriver) {
  // The current and the older variable of the Vulkan loader.
  Environment files("VK_DRIVER_FILES", "/nonexistent.json"),
      names("VK_ICD_FILENAMES", "/nonexistent.json");
  uint32_t count = 77;
  EXPECT_EQ(posenc_vulkan_count_devices(&count), POSENC_OK);
  EXPECT_EQ(count, 0u);
  posenc_vulkan_device *opened = nullptr;
  EXPECT_EQ(posenc_vulkan_open(0, &opened), POSENC_NOT_FOUND);
  EXPECT_EQ(opened, nullptr);
  EXPECT_STREQ(posenc_last_error(), "no Vulkan device");
}

TEST_F(VulkanErrors, NoSuchDevice) {
  uint32_t count = 0;
  ASSERT_EQ(posenc_vulkan_count_devices(&count), POSENC_OK);
  posenc_vulkan_device *opened = nullptr;
  EXPECT_EQ(posenc_vulkan_open(count, &opened), POSENC_NOT_FOUND);
  EXPECT_EQ(opened, nullptr);
  EXPECT_THAT(posenc_last_error(), HasSubstr("no Vulkan device"));
  posenc_vulkan_facts facts;
  EXPECT_EQ(posenc_vulkan_query_device(~0u, &facts), POSENC_NOT_FOUND);
}

TEST_F(VulkanErrors, Facts) {
  posenc_vulkan_facts asked;
  ASSERT_EQ(posenc_vulkan_query_device(0, &asked), POSENC_OK);
  const posenc_vulkan_facts *known = posenc_vulkan_device_facts(device.get());
  EXPECT_STREQ(asked.name, known->name);
  EXPECT_STRNE(asked.name, "");
  // The limits that Vulkan guarantees.
  EXPECT_GE(known->subgroup_size, 1u);
  EXPECT_GE(known->max_workgroup_invocations, 128u);
  EXPECT_GE(known->max_grid[0], 65535u);
  EXPECT_GE(known->max_workgroup_bytes, 16384u);
  EXPECT_GE(known->max_push_bytes, 128u);
  EXPECT_GE(known->max_buffer_bytes, 1u << 27);
  EXPECT_GE(known->max_buffers, 4u);
}

TEST_F(VulkanErrors, DamagedModules) {
  Words good = addKernel();
  expectRefused({}, POSENC_BAD_LIBRARY, "not SPIR-V");
  Words empty = good;
  empty.resize(4);
  expectRefused(empty, POSENC_BAD_LIBRARY, "not SPIR-V");
  Words magic = good;
  magic[0] ^= 1;
  expectRefused(magic, POSENC_BAD_LIBRARY, "not SPIR-V");
  magic[0] = 0x03022307;
  expectRefused(magic, POSENC_BAD_LIBRARY, "not SPIR-V");
  Words bound = good;
  bound[3] = 0xffffffff;
  expectRefused(bound, POSENC_BAD_LIBRARY, "bad header");
  Words version = good;
  version[1] = 0x00010600;
  expectRefused(version, POSENC_UNSUPPORTED, "the version 1.6");
  Words zero = good;
  zero[5] &= 0xffff;
  expectRefused(zero, POSENC_BAD_LIBRARY, "word 5 has a length of 0");
  Words cut(good.begin(), good.begin() + 6);
  expectRefused(cut, POSENC_BAD_LIBRARY, "word 5 has a length of 2");
  Words header(good.begin(), good.begin() + 5);
  expectRefused(header, POSENC_BAD_LIBRARY, "without a compute kernel");
}

TEST_F(VulkanErrors, UnknownCapability) {
  expectRefused(
      assemble(
          R"(spirv.module Logical GLSL450 requires #spirv.vce<v1.0, [Shader, Geometry], []> {
               spirv.func @k() "None" { spirv.Return }
               spirv.EntryPoint "GLCompute" @k
               spirv.ExecutionMode @k "LocalSize", 1, 1, 1
             })"),
      POSENC_UNSUPPORTED, "capability 2");
}

TEST_F(VulkanErrors, WrongInterfaces) {
  Module module = createModule(addKernel());
  expectNoKernel(module, "other", 3, POSENC_NOT_FOUND,
                 "no kernel other; the module has k");
  expectNoKernel(module, "k", ~0u, POSENC_UNSUPPORTED,
                 "k takes 4294967295 buffers; the device allows ");
}

TEST_F(VulkanErrors, WorkgroupsBeyondTheLimits) {
  auto kernel = [](const char *size) {
    return assemble(
        R"(spirv.module Logical GLSL450 requires #spirv.vce<v1.0, [Shader], []> {
             spirv.func @k() "None" { spirv.Return }
             spirv.EntryPoint "GLCompute" @k
             spirv.ExecutionMode @k "LocalSize", )" +
        std::string(size) + "}");
  };
  createKernel(createModule(kernel("1, 1, 64")), "k", 0, 0);
  for (const char *size :
       {"65536, 65536, 65536", "1, 1, 0", "1048576, 1, 1", "1024, 1024, 1"})
    expectNoKernel(createModule(kernel(size)), "k", 0, POSENC_UNSUPPORTED,
                   "k has a workgroup of ");
}

TEST_F(VulkanErrors, WrongCopies) {
  Buffer buffer = createBuffer(10);
  char data[16] = {};
  uint64_t huge = ~uint64_t(0);
  for (auto [offset, bytes] : {std::pair<uint64_t, uint64_t>{0, 11},
                               {10, 1},
                               {11, 0},
                               {huge, 2},
                               {2, huge}}) {
    EXPECT_EQ(posenc_vulkan_upload(buffer.get(), offset, data, bytes),
              POSENC_INVALID_ARGUMENT);
    EXPECT_THAT(posenc_last_error(), HasSubstr("beyond the end"));
    EXPECT_EQ(posenc_vulkan_download(buffer.get(), offset, data, bytes),
              POSENC_INVALID_ARGUMENT);
  }
  EXPECT_EQ(posenc_vulkan_upload(buffer.get(), 10, nullptr, 0), POSENC_OK);
  EXPECT_EQ(posenc_vulkan_upload(buffer.get(), 0, nullptr, 1),
            POSENC_INVALID_ARGUMENT);
}

TEST_F(VulkanErrors, BuffersBeyondTheLimit) {
  posenc_vulkan_buffer *buffer = nullptr;
  uint64_t largest = posenc_vulkan_device_facts(device.get())->max_buffer_bytes;
  for (uint64_t bytes : {largest + 1, ~uint64_t(0)}) {
    EXPECT_EQ(posenc_vulkan_create_buffer(device.get(), bytes, &buffer),
              POSENC_UNSUPPORTED);
    EXPECT_EQ(buffer, nullptr);
    EXPECT_THAT(posenc_last_error(), HasSubstr("the largest has"));
  }
}

TEST(VulkanNull, Arguments) {
  EXPECT_EQ(posenc_vulkan_count_devices(nullptr), POSENC_INVALID_ARGUMENT);
  EXPECT_EQ(posenc_vulkan_query_device(0, nullptr), POSENC_INVALID_ARGUMENT);
  EXPECT_EQ(posenc_vulkan_open(0, nullptr), POSENC_INVALID_ARGUMENT);
  EXPECT_EQ(posenc_vulkan_device_facts(nullptr), nullptr);
  posenc_vulkan_buffer *buffer = nullptr;
  EXPECT_EQ(posenc_vulkan_create_buffer(nullptr, 1, &buffer),
            POSENC_INVALID_ARGUMENT);
  EXPECT_EQ(posenc_vulkan_buffer_bytes(nullptr), 0u);
  EXPECT_EQ(posenc_vulkan_upload(nullptr, 0, "", 1), POSENC_INVALID_ARGUMENT);
  EXPECT_EQ(posenc_vulkan_download(nullptr, 0, nullptr, 0),
            POSENC_INVALID_ARGUMENT);
  posenc_vulkan_close(nullptr);
  posenc_vulkan_destroy_buffer(nullptr);
}

//===- ErrorsTest.cpp - What the host refuses on a device -------*- C++ -*-===//
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

using namespace posenc::test;
using testing::HasSubstr;

namespace {

class VulkanErrors : public VulkanTest {
protected:
  void expectRefused(const Words &words, posenc_status status,
                     const char *text) {
    posenc_vulkan_module *module = nullptr;
    EXPECT_EQ(posenc_vulkan_create_module(device.get(), words.data(),
                                          words.size(), &module),
              status);
    EXPECT_EQ(module, nullptr);
    EXPECT_THAT(posenc_last_error(), HasSubstr(text));
  }
  void expectNoKernel(const Module &module, const char *name,
                      uint32_t numBuffers, uint32_t pushBytes,
                      posenc_status status, const char *text) {
    posenc_vulkan_kernel *kernel = nullptr;
    EXPECT_EQ(posenc_vulkan_create_kernel(module.get(), name, numBuffers,
                                          pushBytes, &kernel),
              status);
    EXPECT_EQ(kernel, nullptr);
    EXPECT_THAT(posenc_last_error(), HasSubstr(text));
  }
};

/// For the life of the object.
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
  // Names that the loader has had in turn.
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
  // What Vulkan promises.
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
  expectRefused({}, POSENC_INVALID_ARGUMENT, "words is NULL");
  Words empty = good;
  empty.resize(4);
  expectRefused(empty, POSENC_BAD_LIBRARY, "shorter than its header");
  Words magic = good;
  magic[0] ^= 1;
  expectRefused(magic, POSENC_BAD_LIBRARY, "wrong magic number");
  magic[0] = 0x03022307;
  expectRefused(magic, POSENC_BAD_LIBRARY, "other byte order");
  Words bound = good;
  bound[3] = 0xffffffff;
  expectRefused(bound, POSENC_BAD_LIBRARY, "bad header");
  Words version = good;
  version[1] = 0x00010600;
  expectRefused(version, POSENC_UNSUPPORTED, "the version 1.6");
  Words zero = good;
  zero[5] &= 0xffff;
  expectRefused(zero, POSENC_BAD_LIBRARY, "word 5 has a length of 0");
  Words cut = good;
  cut.pop_back();
  expectRefused(cut, POSENC_BAD_LIBRARY, "");
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
  expectNoKernel(module, "other", 3, 4, POSENC_NOT_FOUND,
                 "no kernel other; there are: k");
  expectNoKernel(module, "k", 2, 4, POSENC_INVALID_ARGUMENT,
                 "k uses the buffer at binding 2, but there are 2");
  expectNoKernel(module, "k", 3, 0, POSENC_INVALID_ARGUMENT,
                 "k has 4 bytes of push constants, not 0");
  expectNoKernel(module, "k", 3, 5, POSENC_INVALID_ARGUMENT, "multiple of 4");
  expectNoKernel(module, "k", 3, 0x80000000, POSENC_UNSUPPORTED,
                 "push constants: at most");
  expectNoKernel(module, "k", ~0u, 4, POSENC_UNSUPPORTED, "buffers: at most");
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
    expectNoKernel(createModule(kernel(size)), "k", 0, 0, POSENC_UNSUPPORTED,
                   "too large");
}

TEST_F(VulkanErrors, TooMuchSharedMemory) {
  Module module = createModule(assemble(
      R"(spirv.module Logical GLSL450 requires #spirv.vce<v1.0, [Shader], []> {
           spirv.GlobalVariable @s : !spirv.ptr<!spirv.array<1000000 x f32>, Workgroup>
           spirv.func @helper() "None" {
             %zero = spirv.Constant 0 : i32
             %one = spirv.Constant 1.0 : f32
             %s = spirv.mlir.addressof @s : !spirv.ptr<!spirv.array<1000000 x f32>, Workgroup>
             %p = spirv.AccessChain %s[%zero] : !spirv.ptr<!spirv.array<1000000 x f32>, Workgroup>, i32 -> !spirv.ptr<f32, Workgroup>
             spirv.Store "Workgroup" %p, %one : f32
             spirv.Return
           }
           spirv.func @k() "None" {
             spirv.FunctionCall @helper() : () -> ()
             spirv.Return
           }
           spirv.func @small() "None" { spirv.Return }
           spirv.EntryPoint "GLCompute" @k
           spirv.ExecutionMode @k "LocalSize", 1, 1, 1
           spirv.EntryPoint "GLCompute" @small
           spirv.ExecutionMode @small "LocalSize", 1, 1, 1
         })"));
  expectNoKernel(module, "k", 0, 0, POSENC_UNSUPPORTED,
                 "k shares 4000000 bytes in a workgroup");
  createKernel(module, "small", 0, 0);
}

TEST_F(VulkanErrors, WrongRuns) {
  Kernel kernel = createKernel(createModule(addKernel()), "k", 3, 4);
  Buffer buffer = createBuffer(256);
  posenc_vulkan_buffer *buffers[] = {buffer.get(), buffer.get(), buffer.get()};
  uint32_t grid[3] = {1, 1, 1}, n = 1;
  auto run = [&](const uint32_t *grid, posenc_vulkan_buffer *const *buffers,
                 uint32_t count, const void *push, uint32_t bytes) {
    return posenc_vulkan_run(kernel.get(), grid, buffers, count, push, bytes);
  };
  EXPECT_EQ(run(grid, buffers, 2, &n, 4), POSENC_INVALID_ARGUMENT);
  EXPECT_THAT(posenc_last_error(),
              HasSubstr("takes 3 buffers and 4 bytes of push constants, not 2 "
                        "and 4"));
  EXPECT_EQ(run(grid, buffers, 3, &n, 0), POSENC_INVALID_ARGUMENT);
  EXPECT_EQ(run(nullptr, buffers, 3, &n, 4), POSENC_INVALID_ARGUMENT);
  EXPECT_EQ(run(grid, nullptr, 3, &n, 4), POSENC_INVALID_ARGUMENT);
  EXPECT_EQ(run(grid, buffers, 3, nullptr, 4), POSENC_INVALID_ARGUMENT);
  EXPECT_EQ(posenc_vulkan_run(nullptr, grid, buffers, 3, &n, 4),
            POSENC_INVALID_ARGUMENT);
  uint32_t large[3] = {1, ~0u, 1};
  EXPECT_EQ(run(large, buffers, 3, &n, 4), POSENC_UNSUPPORTED);
  EXPECT_THAT(posenc_last_error(), HasSubstr("no grid of 1x4294967295x1"));
  buffers[1] = nullptr;
  EXPECT_EQ(run(grid, buffers, 3, &n, 4), POSENC_INVALID_ARGUMENT);
  EXPECT_STREQ(posenc_last_error(), "buffer 1 is NULL");

  posenc_vulkan_device *other = nullptr;
  ASSERT_EQ(posenc_vulkan_open(0, &other), POSENC_OK);
  Device owner(other);
  posenc_vulkan_buffer *foreign = nullptr;
  ASSERT_EQ(posenc_vulkan_create_buffer(other, 256, &foreign), POSENC_OK);
  Buffer foreignOwner(foreign);
  buffers[1] = foreign;
  EXPECT_EQ(run(grid, buffers, 3, &n, 4), POSENC_INVALID_ARGUMENT);
  EXPECT_STREQ(posenc_last_error(), "buffer 1 is of another device");
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
  posenc_vulkan_module *module = nullptr;
  uint32_t word = 0;
  EXPECT_EQ(posenc_vulkan_create_module(nullptr, &word, 1, &module),
            POSENC_INVALID_ARGUMENT);
  posenc_vulkan_kernel *kernel = nullptr;
  EXPECT_EQ(posenc_vulkan_create_kernel(nullptr, "k", 0, 0, &kernel),
            POSENC_INVALID_ARGUMENT);
  posenc_vulkan_close(nullptr);
  posenc_vulkan_destroy_buffer(nullptr);
  posenc_vulkan_destroy_module(nullptr);
  posenc_vulkan_destroy_kernel(nullptr);
}

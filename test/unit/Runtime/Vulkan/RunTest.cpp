//===- RunTest.cpp - Kernels on a Vulkan device ---------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Vulkan.h"

#include "VulkanBuffer.h"

#include <numeric>
#include <thread>

using namespace posenc::test;

namespace {

class VulkanRun : public VulkanTest {
protected:
  /// Adds a[i] = i and b[i] = 2i for i < n in workgroups of 64. Other elements
  /// of the output must not change.
  template <typename T> void checkAdd(const char *type, uint32_t n) {
    uint32_t size = n + 5;
    std::vector<T> a(size), b(size), out(size, T(-1));
    std::iota(a.begin(), a.end(), T(0));
    for (uint32_t i = 0; i < size; ++i)
      b[i] = T(2 * i);
    Kernel kernel = createKernel(createModule(addKernel(type)), "k", 3, 4);
    std::vector<Buffer> buffers;
    std::vector<posenc_vulkan_buffer *> raw;
    for (std::vector<T> *data : {&a, &b, &out}) {
      buffers.push_back(createBuffer(size * sizeof(T)));
      raw.push_back(buffers.back().get());
      ASSERT_EQ(
          posenc_vulkan_upload(raw.back(), 0, data->data(), size * sizeof(T)),
          POSENC_OK);
    }
    ASSERT_EQ(kernel->run((n + 63) / 64, raw.data(), &n), POSENC_OK)
        << posenc_last_error();
    ASSERT_EQ(posenc_vulkan_download(raw[2], 0, out.data(), size * sizeof(T)),
              POSENC_OK);
    for (uint32_t i = 0; i < size; ++i)
      ASSERT_EQ(out[i], i < n ? T(3 * i) : T(-1)) << i;
  }
};

} // namespace

TEST_F(VulkanRun, AddsArrays) {
  checkAdd<float>("f32", 1000);
  checkAdd<int32_t>("i32", 1);
  checkAdd<float>("f32", 0);
}

TEST_F(VulkanRun, AddsWideTypesWhereTheDeviceHasThem) {
  const posenc_vulkan_facts *facts = posenc_vulkan_device_facts(device.get());
  if (facts->float64)
    checkAdd<double>("f64", 777);
  if (facts->int64)
    checkAdd<int64_t>("i64", 65);
  if (!facts->float64 || !facts->int64)
    GTEST_SKIP() << facts->name << " lacks f64 or i64";
}

TEST_F(VulkanRun, RunsManyTimes) {
  constexpr uint32_t n = 64;
  Kernel kernel = createKernel(createModule(addKernel("i32")), "k", 3, 4);
  Buffer sum = createBuffer(4 * n), one = createBuffer(4 * n);
  std::vector<int32_t> zeros(n, 0), ones(n, 1);
  posenc_vulkan_upload(sum.get(), 0, zeros.data(), 4 * n);
  posenc_vulkan_upload(one.get(), 0, ones.data(), 4 * n);
  // In place: each run reads the result of the previous one.
  posenc_vulkan_buffer *buffers[] = {sum.get(), one.get(), sum.get()};
  for (int i = 0; i < 500; ++i)
    ASSERT_EQ(kernel->run(1, buffers, &n), POSENC_OK);
  posenc_vulkan_download(sum.get(), 0, zeros.data(), 4 * n);
  EXPECT_EQ(zeros, std::vector<int32_t>(n, 500));
}

TEST_F(VulkanRun, TakesTurnsAmongThreads) {
  constexpr uint32_t n = 64;
  Kernel kernel = createKernel(createModule(addKernel("i32")), "k", 3, 4);
  auto work = [&](int32_t value) {
    Buffer sum = createBuffer(4 * n), step = createBuffer(4 * n);
    std::vector<int32_t> sums(n, 0), steps(n, value);
    posenc_vulkan_upload(sum.get(), 0, sums.data(), 4 * n);
    posenc_vulkan_upload(step.get(), 0, steps.data(), 4 * n);
    posenc_vulkan_buffer *buffers[] = {sum.get(), step.get(), sum.get()};
    for (int i = 0; i < 100; ++i)
      EXPECT_EQ(kernel->run(1, buffers, &n), POSENC_OK);
    posenc_vulkan_download(sum.get(), 0, sums.data(), 4 * n);
    EXPECT_EQ(sums, std::vector<int32_t>(n, 100 * value));
  };
  std::thread first(work, 3), second(work, 7);
  first.join();
  second.join();
}

TEST_F(VulkanRun, KernelsKeepTheirDeviceAlive) {
  Module module = createModule(addKernel("i32"));
  Kernel kernel = createKernel(module, "k", 3, 4);
  Buffer buffer = createBuffer(256);
  module.reset();
  device.reset();
  std::vector<int32_t> data(64, 21);
  posenc_vulkan_upload(buffer.get(), 0, data.data(), 256);
  posenc_vulkan_buffer *buffers[] = {buffer.get(), buffer.get(), buffer.get()};
  uint32_t n = 64;
  ASSERT_EQ(kernel->run(1, buffers, &n), POSENC_OK);
  posenc_vulkan_download(buffer.get(), 0, data.data(), 256);
  EXPECT_EQ(data, std::vector<int32_t>(64, 42));
}

TEST_F(VulkanRun, RunsNothingOnAnEmptyGrid) {
  Kernel kernel = createKernel(createModule(addKernel("i32")), "k", 3, 4);
  Buffer buffer = createBuffer(0);
  EXPECT_EQ(posenc_vulkan_buffer_bytes(buffer.get()), 0u);
  posenc_vulkan_buffer *buffers[] = {buffer.get(), buffer.get(), buffer.get()};
  uint32_t n = 64;
  EXPECT_EQ(kernel->run(0, buffers, &n), POSENC_OK);
}

TEST_F(VulkanRun, CopiesPartsOfBuffers) {
  std::string text = "0123456789", read(4, ' ');
  Buffer buffer = createBuffer(10);
  ASSERT_EQ(posenc_vulkan_upload(buffer.get(), 0, text.data(), 10), POSENC_OK);
  ASSERT_EQ(posenc_vulkan_upload(buffer.get(), 3, "ab", 2), POSENC_OK);
  ASSERT_EQ(posenc_vulkan_download(buffer.get(), 2, &read[0], 4), POSENC_OK);
  EXPECT_EQ(read, "2ab5");
}

// Devices whose memory is all mapped use the staging buffer only in this test.
TEST_F(VulkanRun, CopiesThroughAStagingBuffer) {
  using posenc::runtime::VulkanBuffer;
  constexpr size_t bytes = (16 << 20) + 4321;
  std::vector<char> sent(bytes), received(bytes);
  for (size_t i = 0; i < bytes; ++i)
    sent[i] = static_cast<char>(i * 2654435761u >> 13);
  VulkanBuffer buffer(device->device);
  ASSERT_EQ(buffer.create(bytes + 8, VulkanBuffer::Location::DeviceUnmapped),
            POSENC_OK);
  ASSERT_EQ(buffer.upload(8, sent.data(), bytes), POSENC_OK);
  ASSERT_EQ(buffer.download(8, received.data(), bytes), POSENC_OK);
  EXPECT_EQ(sent, received);
}

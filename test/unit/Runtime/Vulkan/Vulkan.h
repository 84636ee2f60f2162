//===- Vulkan.h - Test fixture for Vulkan devices ---------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_UNIT_RUNTIME_VULKAN_VULKAN_H
#define POSENC_TEST_UNIT_RUNTIME_VULKAN_VULKAN_H

#include "VulkanKernel.h"

#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

namespace posenc::test {

template <typename T, void (*destroy)(T *)> struct Destroy {
  void operator()(T *object) const { destroy(object); }
};
template <typename T, void (*destroy)(T *)>
using Owned = std::unique_ptr<T, Destroy<T, destroy>>;
using Device = Owned<posenc_vulkan_device, posenc_vulkan_close>;
using Buffer = Owned<posenc_vulkan_buffer, posenc_vulkan_destroy_buffer>;
using Module = std::unique_ptr<runtime::VulkanModule>;
using Kernel = std::unique_ptr<runtime::VulkanKernel>;

using Words = std::vector<uint32_t>;

/// Assembles `text`, a spirv.module in MLIR, to SPIR-V.
Words assemble(const std::string &text);

/// Returns a module with one kernel @k and workgroups of 64: out[i] = a[i] +
/// b[i] for i < n, a push constant. `type` is i32, i64, f32 or f64.
Words addKernel(const std::string &type = "f32");

/// A test that opens the first Vulkan device. Skipped if there is none.
class VulkanTest : public testing::Test {
protected:
  void SetUp() override;

  Buffer createBuffer(uint64_t bytes);
  Module createModule(const Words &words);
  Kernel createKernel(const Module &module, const char *name,
                      uint32_t numBuffers, uint32_t pushBytes);

  Device device;
};

} // namespace posenc::test

#endif // POSENC_TEST_UNIT_RUNTIME_VULKAN_VULKAN_H

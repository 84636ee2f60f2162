//===- VulkanArithmeticTest.cpp - rounding of Vulkan arithmetic -----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VulkanKernel.h"
#include "VulkanSupport.h"

#include "posenc/Codegen/SpirvKernels.h"
#include "posenc/Pipelines/Pipelines.h"
#include "posenc/Registration/Registration.h"

#include "mlir/Dialect/SPIRV/IR/SPIRVOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/SPIRV/Serialization.h"
#include "gtest/gtest.h"

#include <cmath>
#include <cstring>
#include <random>

namespace {

class VulkanArithmetic : public testing::Test {
protected:
  void SetUp() override {
    std::string reason = ::posenc::test::whyNoVulkan();
    if (!reason.empty())
      GTEST_SKIP() << reason;
  }

  /// Runs kernel @k, which has memref arguments and workgroups of 64, on
  /// `count` elements, a multiple of 64. `memory` has the bytes of each memref,
  /// and gets what the kernel writes.
  void run(const std::string &text, std::vector<std::vector<char> *> memory,
           uint32_t count, bool fusedFma = false) {
    mlir::DialectRegistry registry;
    mlir::posenc::registerAllDialects(registry);
    mlir::MLIRContext context(registry);
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    ASSERT_TRUE(module);
    mlir::PassManager manager(&context);
    mlir::posenc::PosencToSPIRVOptions options;
    options.fusedFma = fusedFma;
    mlir::posenc::buildGpuToSPIRVPipeline(manager, options);
    ASSERT_TRUE(succeeded(manager.run(*module)));
    llvm::SmallVector<uint32_t> words;
    ASSERT_TRUE(succeeded(mlir::spirv::serialize(
        *module->getOps<mlir::spirv::ModuleOp>().begin(), words)));

    posenc_vulkan_device *device = nullptr;
    uint32_t numBuffers = memory.size();
    std::vector<uint32_t> push(numBuffers + 1, 0);
    ASSERT_EQ(posenc_vulkan_open(0, &device), POSENC_OK);
    {
      ::posenc::runtime::VulkanModule code(device->device);
      ::posenc::runtime::VulkanKernel kernel(device->device);
      ASSERT_EQ(code.create(words.data(), words.size()), POSENC_OK)
          << posenc_last_error();
      ASSERT_EQ(kernel.create(code, "k", numBuffers, 4 * push.size()),
                POSENC_OK)
          << posenc_last_error();
      std::vector<posenc_vulkan_buffer *> buffers(numBuffers);
      for (uint32_t i = 0; i < numBuffers; ++i) {
        uint64_t bytes = memory[i]->size();
        ASSERT_EQ(posenc_vulkan_create_buffer(device, bytes, &buffers[i]),
                  POSENC_OK);
        posenc_vulkan_upload(buffers[i], 0, memory[i]->data(), bytes);
      }
      ASSERT_EQ(count % 64, 0u);
      EXPECT_EQ(kernel.run(count / 64, buffers.data(), push.data()), POSENC_OK)
          << posenc_last_error();
      for (uint32_t i = 0; i < numBuffers; ++i) {
        posenc_vulkan_download(buffers[i], 0, memory[i]->data(),
                               memory[i]->size());
        posenc_vulkan_destroy_buffer(buffers[i]);
      }
    }
    posenc_vulkan_close(device);
  }

  template <typename T>
  static std::vector<char> toBytes(const std::vector<T> &v) {
    std::vector<char> bytes(v.size() * sizeof(T));
    std::memcpy(bytes.data(), v.data(), bytes.size());
    return bytes;
  }
  template <typename T>
  static std::vector<T> fromBytes(const std::vector<char> &bytes) {
    std::vector<T> v(bytes.size() / sizeof(T));
    std::memcpy(v.data(), bytes.data(), bytes.size());
    return v;
  }

  template <typename T> void checkFma(const char *type);
};

const char *const kIndices = R"(
      %block = gpu.block_id x
      %t = gpu.thread_id x
      %c64 = arith.constant 64 : index
      %base = arith.muli %block, %c64 : index
      %i = arith.addi %base, %t : index
)";

std::string makeKernel(const std::string &arguments, const std::string &body) {
  return "gpu.module @kernels {\n gpu.func @k(" + arguments +
         ") kernel attributes {known_block_size = array<i32: 64, 1, 1>} {" +
         kIndices + body + "\n gpu.return\n }\n}";
}

std::string replaceAll(std::string text, const std::string &from,
                       const std::string &to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos;
       at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

} // namespace

template <typename T> void VulkanArithmetic::checkFma(const char *type) {
  constexpr uint32_t count = 64 * 1024;
  std::mt19937_64 random(5);
  std::vector<T> a(count), b(count), c(count);
  for (uint32_t i = 0; i < count; ++i) {
    auto draw = [&](int range) {
      double fraction = 1 + double(random() >> 12) * 0x1p-52;
      return T(std::ldexp(random() % 2 ? fraction : -fraction,
                          int(random() % (2 * range + 1)) - range));
    };
    a[i] = draw(20);
    b[i] = draw(20);
    c[i] = draw(60);
    // Sums with cancellation, and sums near a tie.
    if (i % 4 == 1)
      c[i] = -a[i] * b[i];
    if (i % 4 == 2)
      c[i] = T(std::ldexp(a[i] * b[i], int(random() % 5) - 2 +
                                           std::numeric_limits<T>::digits));
    if (i % 4 == 3) {
      a[i] = T(std::ldexp(T(random() % 4096), 0));
      b[i] = T(std::ldexp(T(random() % 4096 + 1),
                          -std::numeric_limits<T>::digits - 8));
      c[i] = T(random() % 8);
    }
  }
  std::string text = makeKernel(
      "%a: memref<?xT>, %b: memref<?xT>, %c: memref<?xT>, %o: memref<?xT>",
      R"(
      %x = memref.load %a[%i] : memref<?xT>
      %y = memref.load %b[%i] : memref<?xT>
      %z = memref.load %c[%i] : memref<?xT>
      %r = math.fma %x, %y, %z : T
      memref.store %r, %o[%i] : memref<?xT>)");
  text = replaceAll(text, "xT>", std::string("x") + type + ">");
  text = replaceAll(text, ": T\n", std::string(": ") + type + "\n");
  std::vector<char> am = toBytes(a), bm = toBytes(b), cm = toBytes(c),
                    om(count * sizeof(T));
  run(text, {&am, &bm, &cm, &om}, count);
  std::vector<T> o = fromBytes<T>(om);
  size_t wrong = 0, roundedTwice = 0;
  for (uint32_t i = 0; i < count; ++i) {
    wrong += o[i] != std::fma(a[i], b[i], c[i]);
    volatile T product = a[i] * b[i];
    roundedTwice += product + c[i] != std::fma(a[i], b[i], c[i]);
  }
  EXPECT_EQ(wrong, 0u);
  // The check would detect a product that is rounded before the addition.
  EXPECT_GT(roundedTwice, count / 8);
}

TEST_F(VulkanArithmetic, FusesF32) { checkFma<float>("f32"); }
TEST_F(VulkanArithmetic, FusesF64) { checkFma<double>("f64"); }

TEST_F(VulkanArithmetic, WidensF16) {
  constexpr uint32_t count = 65536;
  std::vector<uint16_t> all(count);
  for (uint32_t i = 0; i < count; ++i)
    all[i] = i;
  std::vector<char> in = toBytes(all), out(4 * count);
  run(makeKernel("%x: memref<?xf16>, %o: memref<?xf32>", R"(
      %v = memref.load %x[%i] : memref<?xf16>
      %r = arith.extf %v : f16 to f32
      memref.store %r, %o[%i] : memref<?xf32>)"),
      {&in, &out}, count);
  std::vector<float> got = fromBytes<float>(out);
  for (uint32_t i = 0; i < count; ++i) {
    double magnitude =
        i & 0x7c00 ? std::ldexp(0x400 + (i & 0x3ff), (i >> 10 & 31) - 25)
                   : std::ldexp(i & 0x3ff, -24);
    if ((i & 0x7c00) == 0x7c00)
      magnitude = i & 0x3ff ? NAN : INFINITY;
    double expected = i & 0x8000 ? -magnitude : magnitude;
    if (std::isnan(expected))
      ASSERT_TRUE(std::isnan(got[i])) << i;
    else
      ASSERT_TRUE(got[i] == expected &&
                  std::signbit(got[i]) == std::signbit(expected))
          << i << ": " << got[i];
  }
}

/// Returns the bits, as f32, of every bf16 number, of the midpoint to the next
/// one, and of the neighbours of the midpoint.
static std::vector<uint32_t> makeEdges() {
  std::vector<uint32_t> edges;
  for (uint32_t i = 0; i < 65536; ++i) {
    uint32_t midpoint = (i << 16) + 0x8000;
    for (uint32_t bits : {i << 16, midpoint, midpoint - 1, midpoint + 1})
      edges.push_back(bits);
  }
  return edges;
}

TEST_F(VulkanArithmetic, NarrowsToBF16) {
  std::vector<uint32_t> edges = makeEdges();
  uint32_t count = edges.size();
  std::vector<char> in = toBytes(edges), out(2 * count);
  run(makeKernel("%x: memref<?xf32>, %o: memref<?xbf16>", R"(
      %v = memref.load %x[%i] : memref<?xf32>
      %r = arith.truncf %v : f32 to bf16
      memref.store %r, %o[%i] : memref<?xbf16>)"),
      {&in, &out}, count);
  std::vector<uint16_t> got = fromBytes<uint16_t>(out);
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t bits = edges[i],
             expected = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    if ((bits & 0x7fffffff) > 0x7f800000)
      ASSERT_GT(got[i] & 0x7fff, 0x7f80) << bits;
    else
      ASSERT_EQ(got[i], expected) << bits;
  }
}

TEST_F(VulkanArithmetic, NarrowsToF16) {
  // Every f16 number, the midpoint to the next one, and the neighbours of the
  // midpoint, as f32.
  std::vector<float> values;
  for (uint32_t i = 0; i < 0x7c00; ++i) {
    auto widen = [](uint32_t h) {
      return h & 0x7c00 ? std::ldexp(0x400 + (h & 0x3ff), int(h >> 10) - 25)
                        : std::ldexp(h & 0x3ff, -24);
    };
    float low = widen(i), midpoint = (widen(i) + widen(i + 1)) / 2;
    for (float value : {low, midpoint, std::nextafter(midpoint, 0.0f),
                        std::nextafter(midpoint, INFINITY)})
      values.insert(values.end(), {value, -value});
  }
  for (float value :
       {65519.99f, 65520.0f, 1e30f, INFINITY, 1e-30f, 1e-8f, 0.0f})
    values.insert(values.end(), {value, -value});
  values.push_back(NAN);
  values.resize((values.size() + 63) / 64 * 64, 1.0f);
  uint32_t count = values.size();
  std::vector<char> in = toBytes(values), out(2 * count);
  run(makeKernel("%x: memref<?xf32>, %o: memref<?xf16>", R"(
      %v = memref.load %x[%i] : memref<?xf32>
      %r = arith.truncf %v : f32 to f16
      memref.store %r, %o[%i] : memref<?xf16>)"),
      {&in, &out}, count);
  std::vector<uint16_t> got = fromBytes<uint16_t>(out);
  for (uint32_t i = 0; i < count; ++i) {
    _Float16 expected = static_cast<_Float16>(values[i]);
    uint16_t bits;
    std::memcpy(&bits, &expected, 2);
    if (std::isnan(values[i]))
      ASSERT_GT(got[i] & 0x7fff, 0x7c00);
    else
      ASSERT_EQ(got[i], bits) << values[i];
  }
}

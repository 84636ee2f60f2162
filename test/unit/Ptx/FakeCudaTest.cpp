//===- FakeCudaTest.cpp - the fake CUDA driver ----------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel.h"
#include "ptx/TensorMap.h"

#include <dlfcn.h>

#include <thread>

using namespace posenc::test;

namespace {

// Opens the driver at run time and calls its functions by name.
class PtxFakeCuda : public testing::Test {
protected:
  void SetUp() override {
    library = dlopen(POSENC_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
    ASSERT_TRUE(library) << dlerror();
    ASSERT_EQ(call("cuInit", 0u), 0);
    ASSERT_EQ(call("cuDevicePrimaryCtxRetain", &context, 0), 0);
    ASSERT_EQ(call("cuCtxSetCurrent", context), 0);
  }

  template <typename... T> int call(const char *name, T... arguments) {
    auto *function = reinterpret_cast<int (*)(T...)>(dlsym(library, name));
    if (!function) {
      ADD_FAILURE() << "no " << name;
      return -1;
    }
    return function(arguments...);
  }

  // Loads a PTX module and returns its kernel `k`.
  void *load(const std::string &text) {
    void *module = nullptr, *function = nullptr;
    EXPECT_EQ(call("cuModuleLoadData", &module, text.c_str()), 0);
    EXPECT_EQ(call("cuModuleGetFunction", &function, module, "k"), 0);
    return function;
  }
  // Loads a library and returns its kernel `k`, which runs on all devices.
  void *loadKernel(const std::string &text) {
    void *module = nullptr, *kernel = nullptr, *none = nullptr;
    EXPECT_EQ(call("cuLibraryLoadData", &module, text.c_str(), none, none, 0u,
                   none, none, 0u),
              0);
    EXPECT_EQ(call("cuLibraryGetKernel", &kernel, module, "k"), 0);
    return kernel;
  }
  // Makes the primary context of a device current.
  void use(int device) {
    void *primary = nullptr;
    EXPECT_EQ(call("cuDevicePrimaryCtxRetain", &primary, device), 0);
    EXPECT_EQ(call("cuCtxSetCurrent", primary), 0);
  }
  uint64_t allocate(size_t bytes) {
    uint64_t address = 0;
    EXPECT_EQ(call("cuMemAlloc_v2", &address, bytes), 0);
    return address;
  }
  int launch(void *function, unsigned threads, void *stream,
             std::vector<void *> params, unsigned sharedBytes = 0) {
    return call("cuLaunchKernel", function, 1u, 1u, 1u, threads, 1u, 1u,
                sharedBytes, stream, params.data(),
                static_cast<void **>(nullptr));
  }

  void *library = nullptr, *context = nullptr;
};

// A kernel that adds n to each element.
std::string makeAdd(const std::string &body = "") {
  return makeModule(".param .u64 out, .param .u32 n",
                    "ld.param.b64 %d0, [out]; ld.param.b32 %r1, [n];\n"
                    "mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 4;\n"
                    "add.s64 %d1, %d0, %d1; ld.global.b32 %r2, [%d1];\n"
                    "add.s32 %r2, %r2, %r1; st.global.b32 [%d1], %r2;\n" +
                        body,
                    ".maxntid 64, 1, 1");
}

} // namespace

TEST_F(PtxFakeCuda, LaunchesOnStreams) {
  void *function = load(makeAdd()), *stream = nullptr, *event = nullptr;
  ASSERT_EQ(call("cuStreamCreate", &stream, 1u), 0);
  ASSERT_EQ(call("cuEventCreate", &event, 0u), 0);
  std::vector<uint32_t> host(64, 5);
  uint64_t device = allocate(256);
  uint32_t n = 3;
  EXPECT_EQ(call("cuMemcpyHtoDAsync_v2", device, (void *)host.data(),
                 size_t(256), stream),
            0);
  EXPECT_EQ(launch(function, 64, stream, {&device, &n}), 0);
  EXPECT_EQ(launch(function, 32, stream, {&device, &n}), 0);
  EXPECT_EQ(call("cuEventRecord", event, stream), 0);
  EXPECT_EQ(call("cuEventSynchronize", event), 0);
  EXPECT_EQ(call("cuMemcpyDtoH_v2", (void *)host.data(), device, size_t(256)),
            0);
  EXPECT_EQ(host[0], 11u);
  EXPECT_EQ(host[63], 8u);
  // More threads than .maxntid, and an invalid stream.
  EXPECT_EQ(launch(function, 65, stream, {&device, &n}), 1);
  EXPECT_EQ(launch(function, 64, &n, {&device, &n}), 400);
  EXPECT_EQ(call("cuStreamDestroy_v2", stream), 0);
  EXPECT_EQ(launch(function, 64, stream, {&device, &n}), 400);
  EXPECT_EQ(call("cuMemFree_v2", device), 0);
}

TEST_F(PtxFakeCuda, DeviceProperties) {
  int value = 0;
  char name[64];
  EXPECT_EQ(call("cuDeviceGetCount", &value), 0);
  EXPECT_EQ(value, 2);
  EXPECT_EQ(call("cuDeviceGet", &value, 2), 101);
  EXPECT_EQ(call("cuDeviceGetName", name, 64, 0), 0);
  EXPECT_STREQ(name, "Posenc PTX interpreter");
  EXPECT_EQ(call("cuDeviceGetAttribute", &value, 75, 0), 0);
  EXPECT_EQ(value, 9);
  EXPECT_EQ(call("cuDeviceGetAttribute", &value, 10, 0), 0);
  EXPECT_EQ(value, 32);
  EXPECT_EQ(call("cuDeviceGetAttribute", &value, 9999, 0), 1);
  const char *text = nullptr;
  EXPECT_EQ(call("cuGetErrorString", 700, &text), 0);
  EXPECT_STREQ(text, "an illegal memory access was encountered");
  EXPECT_EQ(call("cuGetErrorName", 209, &text), 0);
  EXPECT_STREQ(text, "CUDA_ERROR_NO_BINARY_FOR_GPU");
  void *address = nullptr;
  int status = -1;
  EXPECT_EQ(call("cuGetProcAddress_v2", "cuMemAlloc", &address, 12000,
                 uint64_t(0), &status),
            0);
  EXPECT_EQ(address, dlsym(library, "cuMemAlloc_v2"));
  EXPECT_EQ(call("cuGetProcAddress_v2", "cuNothing", &address, 12000,
                 uint64_t(0), &status),
            500);
  // Unsupported functions are not exported.
  EXPECT_EQ(dlsym(library, "cuTensorMapEncodeIm2col"), nullptr);
  uint64_t device = allocate(100), base = 0;
  EXPECT_EQ(call("cuPointerGetAttribute", (void *)&value, 2, device + 99), 0);
  EXPECT_EQ(value, 2);
  EXPECT_EQ(call("cuPointerGetAttribute", (void *)&base, 11, device + 99), 0);
  EXPECT_EQ(base, device);
  EXPECT_EQ(call("cuPointerGetAttribute", (void *)&value, 2, device + 100), 1);
}

// More than 48 KiB of shared memory has to be permitted to a kernel, up to the
// limit of the architecture; both include the static shared memory.
TEST_F(PtxFakeCuda, DynamicSharedMemory) {
  constexpr unsigned kDefault = 48 << 10, kLimit = 227 << 10, kStatic = 64;
  enum { kMaxDynamicSharedBytes = 8 };
  void *plain = loadKernel(makeModule("", ""));
  void *mixed =
      loadKernel(makeModule("", ".shared .align 4 .b8 s[64];\n"
                                "mov.b64 %d0, s; st.shared.b32 [%d0], 0;"));
  for (auto [function, bytes] :
       {std::pair(plain, 0u), std::pair(mixed, kStatic)}) {
    auto permit = [&, function = function](unsigned bytes) {
      return call("cuKernelSetAttribute", int{kMaxDynamicSharedBytes},
                  static_cast<int>(bytes), function, 0);
    };
    EXPECT_EQ(launch(function, 1, nullptr, {}, kDefault - bytes), 0);
    EXPECT_EQ(launch(function, 1, nullptr, {}, kDefault - bytes + 1), 1);
    EXPECT_EQ(permit(kLimit - bytes + 1), 1);
    EXPECT_EQ(launch(function, 1, nullptr, {}, kDefault - bytes + 1), 1);
    EXPECT_EQ(permit(kLimit - bytes), 0);
    EXPECT_EQ(launch(function, 1, nullptr, {}, kLimit - bytes), 0);
    EXPECT_EQ(launch(function, 1, nullptr, {}, kLimit - bytes + 1), 1);
  }
  EXPECT_EQ(
      call("cuKernelSetAttribute", int{kMaxDynamicSharedBytes}, 1024, plain, 2),
      101);
  EXPECT_EQ(call("cuKernelSetAttribute", int{kMaxDynamicSharedBytes}, 1024,
                 static_cast<void *>(this), 0),
            400);
}

namespace {

// The arguments of cuTensorMapEncodeTiled: a tensor of 3 x 100 x 64 bf16, and
// boxes of 1 x 80 x 64.
struct TensorMapArguments {
  int type = 9;
  uint32_t rank = 3;
  uint64_t address = 0x10000;
  uint64_t sizes[5] = {64, 100, 3, 1, 1};
  uint64_t strides[4] = {128, 12800, 38400, 38400};
  uint32_t box[5] = {64, 80, 1, 1, 1};
  uint32_t steps[5] = {1, 1, 1, 1, 1};
  int interleave = 0, swizzle = 3, promotion = 2, fill = 0;
};

} // namespace

TEST_F(PtxFakeCuda, TensorMaps) {
  using Arguments = TensorMapArguments;
  posenc::ptx::TensorMap map;
  auto encode = [&](Arguments a, size_t misalignment = 0) {
    alignas(64) char bytes[256] = {};
    int result = call("cuTensorMapEncodeTiled",
                      static_cast<void *>(bytes + misalignment), a.type, a.rank,
                      reinterpret_cast<void *>(a.address),
                      static_cast<const uint64_t *>(a.sizes),
                      static_cast<const uint64_t *>(a.strides),
                      static_cast<const uint32_t *>(a.box),
                      static_cast<const uint32_t *>(a.steps), a.interleave,
                      a.swizzle, a.promotion, a.fill);
    std::memcpy(&map, bytes, sizeof(map));
    return result;
  };
  EXPECT_EQ(encode({}), 0);
  EXPECT_EQ(map.check(), nullptr);
  EXPECT_EQ(map.rank, 3);
  EXPECT_EQ(map.elementBytes, 2);
  EXPECT_EQ(map.swizzle, posenc::ptx::TensorMap::Swizzle128);
  EXPECT_EQ(map.address, 0x10000u);
  EXPECT_EQ(map.sizes[1], 100u);
  EXPECT_EQ(map.strides[1], 12800u);
  EXPECT_EQ(map.box[1], 80u);
  EXPECT_EQ(encode({}, /*misalignment=*/32), 1);
  const std::pair<const char *, void (*)(Arguments &)> faults[] = {
      {"type", [](Arguments &a) { a.type = 13; }},
      {"rank", [](Arguments &a) { a.rank = 6; }},
      {"address", [](Arguments &a) { a.address += 8; }},
      {"null", [](Arguments &a) { a.address = 0; }},
      {"empty", [](Arguments &a) { a.sizes[1] = 0; }},
      {"size", [](Arguments &a) { a.sizes[1] = (1ull << 32) + 1; }},
      {"stride", [](Arguments &a) { a.strides[0] = 136; }},
      {"large stride", [](Arguments &a) { a.strides[1] = 1ull << 40; }},
      {"negative stride", [](Arguments &a) { a.strides[1] = -12800ull; }},
      {"box", [](Arguments &a) { a.box[1] = 257; }},
      {"empty box", [](Arguments &a) { a.box[2] = 0; }},
      {"narrow row", [](Arguments &a) { a.box[0] = 4; }},
      {"row wider than the swizzle pattern",
       [](Arguments &a) { a.swizzle = 2; }},
      {"swizzle", [](Arguments &a) { a.swizzle = 4; }},
      {"steps", [](Arguments &a) { a.steps[1] = 2; }},
  };
  for (auto [name, change] : faults) {
    Arguments arguments;
    change(arguments);
    EXPECT_EQ(encode(arguments), 1) << name;
  }
  Arguments wide;
  wide.swizzle = 0;
  wide.box[0] = 128;
  EXPECT_EQ(encode(wide), 0);
  wide.fill = 1;
  EXPECT_EQ(encode(wide), 801);
}

TEST_F(PtxFakeCuda, RefusesUnsupportedImages) {
  void *module = nullptr;
  auto loadText = [&](const std::string &text) {
    return call("cuModuleLoadData", &module, text.c_str());
  };
  auto withTarget = [](const std::string &target) {
    return ".version 8.6\n.target " + target +
           "\n.address_size 64\n.entry k()\n{\nret;\n}\n";
  };
  EXPECT_EQ(loadText("\177ELF 64-bit"), 209);
  EXPECT_EQ(loadText("\x50\xed\x55\xba fat"), 209);
  EXPECT_EQ(loadText("rubbish"), 218);
  EXPECT_EQ(loadText(withTarget("sm_100")), 218);
  EXPECT_EQ(loadText(withTarget("sm_80a")), 218);
  EXPECT_EQ(loadText(withTarget("sm_90a")), 0);
  EXPECT_EQ(loadText(withTarget("sm_70")), 0);
  EXPECT_EQ(call("cuModuleUnload", module), 0);
  EXPECT_EQ(call("cuModuleUnload", module), 400);
  void *function = nullptr;
  EXPECT_EQ(loadText(withTarget("sm_80")), 0);
  EXPECT_EQ(call("cuModuleGetFunction", &function, module, "other"), 500);
}

TEST_F(PtxFakeCuda, GraphsAreCapturedAndLaunched) {
  void *function = load(makeAdd());
  void *stream = nullptr, *graph = nullptr, *executable = nullptr;
  ASSERT_EQ(call("cuStreamCreate", &stream, 1u), 0);
  uint64_t device = allocate(256);
  uint32_t n = 2, value = 0;
  ASSERT_EQ(call("cuMemsetD8_v2", device, (unsigned char)0, size_t(256)), 0);
  ASSERT_EQ(call("cuStreamBeginCapture_v2", stream, 0), 0);
  int status = 0;
  EXPECT_EQ(call("cuStreamIsCapturing", stream, &status), 0);
  EXPECT_EQ(status, 1);
  EXPECT_EQ(launch(function, 64, stream, {&device, &n}), 0);
  // Arguments are read when the launch is captured.
  n = 100;
  EXPECT_EQ(launch(function, 64, stream, {&device, &n}), 0);
  n = 0;
  EXPECT_EQ(call("cuStreamEndCapture", stream, &graph), 0);
  EXPECT_EQ(call("cuGraphInstantiateWithFlags", &executable, graph, 0ull), 0);
  EXPECT_EQ(call("cuGraphDestroy", graph), 0);
  auto read = [&] {
    EXPECT_EQ(call("cuMemcpyDtoH_v2", (void *)&value, device, size_t(4)), 0);
    return value;
  };
  EXPECT_EQ(read(), 0u);
  for (uint32_t i = 1; i < 4; ++i) {
    EXPECT_EQ(call("cuGraphLaunch", executable, stream), 0);
    EXPECT_EQ(call("cuStreamSynchronize", stream), 0);
    EXPECT_EQ(read(), 102 * i);
  }
  EXPECT_EQ(call("cuGraphExecDestroy", executable), 0);
}

TEST_F(PtxFakeCuda, CallsForbiddenDuringCapture) {
  std::string text = makeAdd();
  void *function = load(text), *module = nullptr;
  uint64_t device = allocate(256), other = 0;
  uint32_t n = 2;
  ASSERT_EQ(call("cuMemsetD8_v2", device, (unsigned char)0, size_t(256)), 0);
  auto capture = [&](int mode, unsigned flags, auto body) {
    void *stream = nullptr, *graph = nullptr;
    EXPECT_EQ(call("cuStreamCreate", &stream, flags), 0);
    EXPECT_EQ(call("cuStreamBeginCapture_v2", stream, mode), 0);
    body(stream);
    int result = call("cuStreamEndCapture", stream, &graph);
    EXPECT_EQ(call("cuStreamDestroy_v2", stream), 0);
    return result;
  };
  // Synchronization, allocation, module loading and synchronous copies.
  EXPECT_EQ(capture(2, 1,
                    [&](void *stream) {
                      EXPECT_EQ(call("cuStreamSynchronize", stream), 900);
                      EXPECT_EQ(launch(function, 64, stream, {&device, &n}),
                                901);
                    }),
            901);
  EXPECT_EQ(capture(0, 1,
                    [&](void *) {
                      EXPECT_EQ(call("cuMemAlloc_v2", &other, size_t(4)), 900);
                    }),
            901);
  EXPECT_EQ(capture(1, 1,
                    [&](void *) {
                      EXPECT_EQ(call("cuModuleLoadData", &module, text.c_str()),
                                900);
                    }),
            901);
  EXPECT_EQ(capture(0, 1,
                    [&](void *) {
                      EXPECT_EQ(call("cuMemcpyDtoH_v2", (void *)&n, device,
                                     size_t(4)),
                                900);
                    }),
            901);
  // A thread in relaxed mode may load modules.
  EXPECT_EQ(
      capture(0, 1,
              [&](void *) {
                int mode = 2;
                EXPECT_EQ(call("cuThreadExchangeStreamCaptureMode", &mode), 0);
                EXPECT_EQ(mode, 0);
                EXPECT_EQ(call("cuModuleLoadData", &module, text.c_str()), 0);
                EXPECT_EQ(call("cuThreadExchangeStreamCaptureMode", &mode), 0);
                EXPECT_EQ(mode, 2);
              }),
      0);
  // A global capture also forbids calls of other threads; a thread-local one
  // does not.
  for (int mode : {0, 1})
    EXPECT_EQ(capture(mode, 1,
                      [&](void *) {
                        std::thread([&] {
                          EXPECT_EQ(call("cuCtxSetCurrent", context), 0);
                          EXPECT_EQ(call("cuMemAlloc_v2", &other, size_t(4)),
                                    mode ? 0 : 900);
                        }).join();
                      }),
              mode ? 0 : 901);
  // The default stream synchronizes with blocking streams only.
  EXPECT_EQ(capture(2, 0,
                    [&](void *) {
                      EXPECT_EQ(launch(function, 64, nullptr, {&device, &n}),
                                906);
                    }),
            901);
  EXPECT_EQ(capture(2, 1,
                    [&](void *) {
                      EXPECT_EQ(launch(function, 64, nullptr, {&device, &n}),
                                0);
                    }),
            0);
  EXPECT_EQ(call("cuStreamBeginCapture_v2", (void *)nullptr, 0), 900);
}

// Functions, streams and events belong to a device. Kernels of libraries run on
// all of them, with attributes for each.
TEST_F(PtxFakeCuda, SeveralDevices) {
  void *function = load(makeAdd()), *kernel = loadKernel(makeAdd());
  void *stream = nullptr, *event = nullptr, *onFirst = nullptr,
       *onSecond = nullptr;
  ASSERT_EQ(call("cuStreamCreate", &stream, 1u), 0);
  ASSERT_EQ(call("cuEventCreate", &event, 0u), 0);
  EXPECT_EQ(call("cuKernelGetFunction", &onFirst, kernel), 0);
  uint64_t first = allocate(256);
  use(1);
  int device = 0;
  EXPECT_EQ(call("cuCtxGetDevice", &device), 0);
  EXPECT_EQ(device, 1);
  uint64_t second = allocate(256);
  EXPECT_EQ(call("cuPointerGetAttribute", (void *)&device, 9, first), 0);
  EXPECT_EQ(device, 0);
  EXPECT_EQ(call("cuPointerGetAttribute", (void *)&device, 9, second), 0);
  EXPECT_EQ(device, 1);
  EXPECT_EQ(call("cuKernelGetFunction", &onSecond, kernel), 0);
  EXPECT_NE(onFirst, onSecond);
  std::vector<uint32_t> host(64, 5);
  uint32_t n = 3;
  EXPECT_EQ(call("cuMemcpyHtoD_v2", second, (void *)host.data(), size_t(256)),
            0);
  EXPECT_EQ(launch(kernel, 64, nullptr, {&second, &n}), 0);
  EXPECT_EQ(launch(onSecond, 64, nullptr, {&second, &n}), 0);
  EXPECT_EQ(launch(onFirst, 64, nullptr, {&second, &n}), 400);
  EXPECT_EQ(launch(function, 64, nullptr, {&second, &n}), 400);
  EXPECT_EQ(launch(kernel, 64, stream, {&second, &n}), 400);
  EXPECT_EQ(call("cuEventRecord", event, (void *)nullptr), 400);
  EXPECT_EQ(call("cuEventRecord", event, stream), 0);
  // Copies take addresses of all devices.
  EXPECT_EQ(call("cuMemcpyDtoD_v2", first, second, size_t(256)), 0);
  EXPECT_EQ(call("cuMemcpyDtoH_v2", (void *)host.data(), first, size_t(256)),
            0);
  EXPECT_EQ(host[63], 11u);
  enum { kMaxDynamicSharedBytes = 8 };
  auto permit = [&](void *handle, int index) {
    return call("cuKernelSetAttribute", int{kMaxDynamicSharedBytes}, 64 << 10,
                handle, index);
  };
  EXPECT_EQ(permit(kernel, 0), 0);
  EXPECT_EQ(permit(onSecond, 1), 400);
  EXPECT_EQ(launch(kernel, 64, nullptr, {&second, &n}, 64 << 10), 1);
  EXPECT_EQ(permit(kernel, 1), 0);
  EXPECT_EQ(launch(onSecond, 64, nullptr, {&second, &n}, 64 << 10), 0);
}

// Each of these tests runs in its own process, since a fault is sticky.
using PtxFakeCudaDeathTest = PtxFakeCuda;

TEST_F(PtxFakeCudaDeathTest, FaultsAreSticky) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto fail = [&] {
    void *function = load(makeAdd());
    uint64_t device = allocate(128);
    uint32_t n = 1;
    std::vector<uint32_t> host(32);
    call("cuMemcpyHtoD_v2", device, (void *)host.data(), size_t(128));
    // The launch succeeds; the fault of the kernel fails all later calls.
    bool isGood =
        launch(function, 64, nullptr, {&device, &n}) == 0 &&
        call("cuCtxSynchronize") == 700 &&
        call("cuMemAlloc_v2", &device, size_t(4)) == 700 &&
        launch(function, 32, nullptr, {&device, &n}) == 700 &&
        call("cuMemcpyDtoH_v2", (void *)host.data(), device, size_t(4)) == 700;
    _exit(isGood ? 7 : 8);
  };
  EXPECT_EXIT(fail(), testing::ExitedWithCode(7),
              "fake CUDA: k: line .*thread \\(32, 0, 0\\): ld.global.b32: 4 "
              "bytes .*byte 128 of 'device memory', which has 128");
}

// The memory of another device is out of bounds.
TEST_F(PtxFakeCudaDeathTest, MemoryOfAnotherDevice) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto fail = [&] {
    void *kernel = loadKernel(makeAdd());
    uint64_t first = allocate(256);
    uint32_t n = 1;
    call("cuMemsetD8_v2", first, (unsigned char)0, size_t(256));
    use(1);
    bool isGood = launch(kernel, 64, nullptr, {&first, &n}) == 0 &&
                  call("cuCtxSynchronize") == 700;
    _exit(isGood ? 7 : 8);
  };
  EXPECT_EXIT(fail(), testing::ExitedWithCode(7), "no buffer");
}

// The last release of a context destroys what belongs to it. A library stays,
// but its kernels forget their attributes.
TEST_F(PtxFakeCudaDeathTest, LastRelease) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  enum { kMaxDynamicSharedBytes = 8 };
  auto release = [&] {
    void *function = load(makeAdd()), *kernel = loadKernel(makeAdd());
    void *other = nullptr, *stream = nullptr, *event = nullptr;
    uint64_t device = allocate(256);
    uint32_t n = 1;
    EXPECT_EQ(call("cuKernelGetFunction", &other, kernel), 0);
    EXPECT_EQ(call("cuStreamCreate", &stream, 1u), 0);
    EXPECT_EQ(call("cuEventCreate", &event, 0u), 0);
    auto prepare = [&] {
      EXPECT_EQ(call("cuMemsetD8_v2", device, (unsigned char)0, size_t(256)),
                0);
      EXPECT_EQ(launch(kernel, 64, nullptr, {&device, &n}), 0);
    };
    prepare();
    EXPECT_EQ(call("cuKernelSetAttribute", int{kMaxDynamicSharedBytes},
                   64 << 10, kernel, 0),
              0);
    EXPECT_EQ(launch(kernel, 64, nullptr, {&device, &n}, 64 << 10), 0);
    // The second release of two retains.
    use(0);
    EXPECT_EQ(call("cuDevicePrimaryCtxRelease_v2", 0), 0);
    EXPECT_EQ(launch(function, 64, stream, {&device, &n}), 0);
    EXPECT_EQ(call("cuDevicePrimaryCtxRelease_v2", 0), 0);
    EXPECT_EQ(call("cuDevicePrimaryCtxRelease_v2", 0), 201);
    EXPECT_EQ(launch(kernel, 64, nullptr, {&device, &n}), 709);
    EXPECT_EQ(call("cuCtxSetCurrent", context), 201);
    use(0);
    EXPECT_EQ(call("cuMemFree_v2", device), 1);
    EXPECT_EQ(call("cuStreamSynchronize", stream), 400);
    EXPECT_EQ(call("cuEventDestroy_v2", event), 400);
    device = allocate(256);
    prepare();
    EXPECT_EQ(launch(kernel, 64, nullptr, {&device, &n}, 64 << 10), 1);
    for (void *handle : {function, other})
      EXPECT_EQ(launch(handle, 64, nullptr, {&device, &n}), 400);
    _exit(HasFailure() ? 8 : 7);
  };
  EXPECT_EXIT(release(), testing::ExitedWithCode(7), "");
}

TEST_F(PtxFakeCudaDeathTest, ReadsOfUninitializedMemory) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto fail = [&] {
    void *function = load(makeAdd());
    uint64_t device = allocate(256);
    uint32_t n = 1;
    bool isGood = launch(function, 64, nullptr, {&device, &n}) == 0 &&
                  call("cuCtxSynchronize") == 719;
    _exit(isGood ? 7 : 8);
  };
  EXPECT_EXIT(fail(), testing::ExitedWithCode(7), "has not been written");
}

// The largest shared memory of a block in each architecture.
TEST_F(PtxFakeCudaDeathTest, SharedMemoryLimits) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (auto [capability, kilobytes] :
       {std::pair("75", 64), std::pair("80", 163), std::pair("86", 99),
        std::pair("89", 99), std::pair("90", 227), std::pair("100", 227),
        std::pair("120", 99)}) {
    setenv("POSENC_FAKE_CUDA_SM", capability, 1);
    auto check = [&, kilobytes = kilobytes] {
      enum { kMaxDynamicSharedBytes = 8, kOptInSharedMemory = 97 };
      void *function =
          loadKernel(".version 8.6\n.target sm_75\n.address_size 64\n"
                     ".entry k()\n{\nret;\n}\n");
      auto permit = [&](int bytes) {
        return call("cuKernelSetAttribute", int{kMaxDynamicSharedBytes}, bytes,
                    function, 0);
      };
      int limit = 0;
      bool isGood =
          permit(kilobytes << 10) == 0 && permit((kilobytes << 10) + 1) == 1 &&
          call("cuDeviceGetAttribute", &limit, int{kOptInSharedMemory}, 0) ==
              0 &&
          limit == kilobytes << 10;
      _exit(isGood ? 7 : 8);
    };
    EXPECT_EXIT(check(), testing::ExitedWithCode(7), "") << capability;
  }
  unsetenv("POSENC_FAKE_CUDA_SM");
}

TEST_F(PtxFakeCudaDeathTest, ComputeCapability) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  // The child process starts again with this environment.
  setenv("POSENC_FAKE_CUDA_SM", "80,75", 1);
  auto check = [&] {
    auto loadFor = [&](const std::string &target) {
      std::string text = ".version 8.6\n.target " + target +
                         "\n.address_size 64\n.entry k()\n{\nret;\n}\n";
      void *module = nullptr;
      return call("cuModuleLoadData", &module, text.c_str());
    };
    bool isGood = loadFor("sm_90") == 218 && loadFor("sm_80") == 0 &&
                  loadFor("sm_75") == 0;
    use(1);
    int major = 0;
    isGood &= loadFor("sm_80") == 218 && loadFor("sm_75") == 0 &&
              call("cuDeviceGetAttribute", &major, 75, 1) == 0 && major == 7;
    _exit(isGood ? 7 : 8);
  };
  EXPECT_EXIT(check(), testing::ExitedWithCode(7),
              "PTX for sm_90 does not run on sm_80(.|\n)*"
              "PTX for sm_80 does not run on sm_75");
  unsetenv("POSENC_FAKE_CUDA_SM");
}

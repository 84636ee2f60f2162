//===- DevicesTest.cpp - calls on several CUDA devices --------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Forms.h"

#include "posenc/runtime/cuda.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <unistd.h>

using namespace posenc;
using namespace posenc::test;

namespace {

class CudaDevices : public CudaTest {
protected:
  void SetUp() override {
    CudaTest::SetUp();
    if (IsSkipped() || HasFatalFailure())
      return;
    for (int device : {0, 1})
      cuda("cuDevicePrimaryCtxRetain", &contexts[device], device);
  }
  void use(int device) { cuda("cuCtxSetCurrent", contexts[device]); }
  static int getCurrent() {
    int device = -1;
    tryCuda("cuCtxGetDevice", &device);
    return device;
  }
  void *contexts[2] = {};
};

/// The tensors of `odd` on a device, whose context must be current.
struct OddCall {
  OddCall(int device, uint64_t seed) {
    std::mt19937_64 random(seed);
    for (Buffer *buffer : {&x, &p}) {
      buffer->fill(random);
      buffer->upload();
    }
    for (Buffer *buffer : {&x, &p, &o})
      buffer->device.deviceId = device;
  }
  std::vector<uint64_t> pass(bool isHost = false) {
    std::vector<uint64_t> words;
    for (Buffer *buffer : {&x, &p, &o})
      words.push_back(reinterpret_cast<uintptr_t>(isHost ? &buffer->host
                                                         : &buffer->device));
    return words;
  }
  Buffer x{POSENC_F32, {2, 3, 3, 6}}, p{POSENC_I64, {2, 3}},
      o{POSENC_F32, {2, 3, 3, 6}};
};

} // namespace

// A call runs on the device of its tensors, whichever context is current, which
// stays the current one.
TEST_F(CudaDevices, FollowTheTensors) {
  for (int current : {0, 1, 0})
    for (int device : {1, 0}) {
      use(device);
      OddCall odd(device, 10 * current + device);
      use(current);
      EXPECT_EQ(call("odd", "_cuda", odd.pass()), 0) << message;
      EXPECT_EQ(getCurrent(), current);
      EXPECT_EQ(call("odd", "_dl", odd.pass(/*isHost=*/true)), 0) << message;
      odd.o.compare("result");
    }
}

// Kernels with more than 48 KiB of shared memory are permitted that on both.
TEST_F(CudaDevices, PermitSharedMemory) {
  readLog("");
  for (int device : {0, 1, 1, 0}) {
    use(device);
    Buffer in(POSENC_F32, {32768}), out(POSENC_F32, {32768});
    std::mt19937_64 random(device);
    in.fill(random);
    in.upload();
    in.device.deviceId = out.device.deviceId = device;
    ASSERT_EQ(call("reverse_large", "_cuda",
                   {reinterpret_cast<uintptr_t>(&in.device),
                    reinterpret_cast<uintptr_t>(&out.device)},
                   /*stream=*/nullptr, POSENC_CUDA_LAUNCHES),
              0)
        << message;
    const auto *from = reinterpret_cast<const uint32_t *>(in.bytes.data());
    std::reverse_copy(from, from + 32768,
                      reinterpret_cast<uint32_t *>(out.bytes.data()));
    out.compare("reverse");
  }
  std::string launch = "launch reverse 1x1x1 128x1x1 131072";
  EXPECT_EQ(readLog("launch"),
            (std::vector<std::string>{launch, launch + " on device 1",
                                      launch + " on device 1", launch}));
}

// Threads call one library on both devices, which loads its code once for each,
// also if their first calls are at the same time. This needs a process of its
// own, since tests before have loaded the code.
TEST_F(CudaDevices, SeveralThreads) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto run = [&] {
    readLog("");
    std::string error;
    runtime::Function function = library.find("odd", error);
    std::atomic<int> numReady{0}, numGood{0};
    auto callOften = [&](int thread) {
      std::mt19937_64 random(thread);
      std::vector<float> x(2 * 3 * 3 * 6), y(x.size()), expected(x.size());
      std::vector<int64_t> p(2 * 3, thread);
      for (float &value : x)
        value = float(int32_t(random()) >> 8);
      int64_t shape[] = {2, 3, 3, 6};
      posenc_value inputs[] = {
          runtime::tensor({x.data(), POSENC_F32, 4, shape}),
          runtime::tensor({p.data(), POSENC_I64, 2, shape})};
      posenc_value output = runtime::tensor({y.data(), POSENC_F32, 4, shape});
      posenc_value host =
          runtime::tensor({expected.data(), POSENC_F32, 4, shape});
      bool isGood = posenc_call(function.get(), inputs, 2, &host, 1) == 0;
      ++numReady;
      while (numReady < 4)
        std::this_thread::yield();
      for (int i = 0; i < 6; ++i) {
        std::fill(y.begin(), y.end(), 0.0f);
        isGood &= posenc_cuda_call(function.get(), (thread + i) % 2, inputs, 2,
                                   &output, 1) == 0 &&
                  !std::memcmp(y.data(), expected.data(), 4 * y.size());
      }
      numGood += isGood;
    };
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; ++thread)
      threads.emplace_back(callOften, thread);
    for (std::thread &thread : threads)
      thread.join();
    std::vector<std::string> loads = readLog("load");
    std::sort(loads.begin(), loads.end());
    for (const std::string &line : loads)
      std::fprintf(stderr, "%s;", line.c_str());
    _exit(numGood == 4 ? 7 : 8);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(7),
              "^load sm_80;load sm_80 on device 1;$");
}

// The runtime creates the context of each device once, and nobody else retains
// it: kernels and their attributes would end with it.
TEST_F(CudaDevices, KeepTheirContexts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto countContexts = [&] {
    cuda("cuCtxSetCurrent", (void *)nullptr);
    for (int device : {0, 0, 1})
      cuda("cuDevicePrimaryCtxRelease_v2", device);
    readLog("");
    std::string error;
    runtime::Function function = library.find("odd", error);
    std::vector<float> x(2 * 3 * 3 * 6), y(x.size());
    std::vector<int64_t> p(2 * 3);
    int64_t shape[] = {2, 3, 3, 6};
    posenc_value inputs[] = {runtime::tensor({x.data(), POSENC_F32, 4, shape}),
                             runtime::tensor({p.data(), POSENC_I64, 2, shape})},
                 output = runtime::tensor({y.data(), POSENC_F32, 4, shape});
    for (int device : {1, 0, 1, 0, 1})
      if (posenc_cuda_call(function.get(), device, inputs, 2, &output, 1))
        _exit(8);
    for (const std::string &line : readLog("context"))
      std::fprintf(stderr, "%s;", line.c_str());
    _exit(7);
  };
  EXPECT_EXIT(countContexts(), testing::ExitedWithCode(7),
              "^context created on device 1;context created;$");
}

// Each device has the best code for its architecture.
TEST_F(CudaDevices, DifferentArchitectures) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  // The child process starts again with this environment.
  setenv("POSENC_FAKE_CUDA_SM", "90,80", 1);
  auto run = [&] {
    int32_t codes[2];
    for (int device : {1, 0}) {
      use(device);
      Buffer in(POSENC_BF16, {3, 20, 64}), out(POSENC_BF16, {3, 20, 64});
      in.upload();
      in.device.deviceId = out.device.deviceId = device;
      codes[device] = call("copy", "_cuda",
                           {reinterpret_cast<uintptr_t>(&in.device),
                            reinterpret_cast<uintptr_t>(&out.device)},
                           /*stream=*/nullptr, POSENC_CUDA_MAPS);
      std::fprintf(stderr, "%s\n", message.c_str());
    }
    _exit(codes[0] == 0 && codes[1] == 13 ? 7 : 8);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(7),
              "copy: there are no kernels for this GPU, of compute capability "
              "8.0");
  unsetenv("POSENC_FAKE_CUDA_SM");
}

// Tensors on two devices, a stream of another device, and a device that does
// not exist.
TEST_F(CudaDevices, WrongDevice) {
  use(1);
  OddCall second(1, 2);
  void *stream = nullptr;
  cuda("cuStreamCreate", &stream, 1u);
  use(0);
  OddCall first(0, 1);
  std::vector<uint64_t> mixed = first.pass();
  mixed[2] = second.pass()[2];
  EXPECT_EQ(call("odd", "_cuda", mixed), 5);
  EXPECT_NE(message.find("is on device 1, another one on device 0"),
            std::string::npos)
      << message;
  EXPECT_EQ(call("odd", "_cuda", first.pass(), stream), 14);
  EXPECT_NE(message.find("a kernel cannot be launched: invalid resource "
                         "handle"),
            std::string::npos)
      << message;
  EXPECT_EQ(call("odd", "_cuda", second.pass(), stream), 0) << message;
  EXPECT_EQ(getCurrent(), 0);
  for (Buffer *buffer : {&first.x, &first.p, &first.o})
    buffer->device.deviceId = 2;
  EXPECT_EQ(call("odd", "_cuda", first.pass()), 14);
  EXPECT_NE(message.find("the device is unknown to the driver: invalid device "
                         "ordinal"),
            std::string::npos)
      << message;
  cuda("cuStreamDestroy_v2", stream);
}

// A tensor that is not on the device that it names is a fault, not a result
// from another place.
TEST_F(CudaDevices, MemoryOfAnotherDevice) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto fail = [&] {
    use(0);
    OddCall odd(0, 1);
    for (Buffer *buffer : {&odd.x, &odd.p, &odd.o})
      buffer->device.deviceId = 1;
    bool isGood = call("odd", "_cuda", odd.pass()) == 0 &&
                  tryCuda("cuCtxSynchronize") == 700;
    _exit(isGood ? 7 : 8);
  };
  EXPECT_EXIT(fail(), testing::ExitedWithCode(7), "no buffer");
}

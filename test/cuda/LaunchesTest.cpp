//===- LaunchesTest.cpp - how kernels are launched ------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Forms.h"

#include <algorithm>
#include <cstring>
#include <unistd.h>

using namespace posenc;
using namespace posenc::test;

namespace {

/// Functions of gpu-launches.mlir, whose kernels are written by hand.
class CudaLaunches : public CudaTest {
protected:
  /// Calls a function with one input and one output on the device.
  int32_t run(const std::string &function, Buffer &in, Buffer &out) {
    return call(function, "_cuda",
                {reinterpret_cast<uintptr_t>(&in.device),
                 reinterpret_cast<uintptr_t>(&out.device)},
                /*stream=*/nullptr, POSENC_CUDA_LAUNCHES);
  }
  std::mt19937_64 random{5};
};

} // namespace

// The kernel gets the dynamic shared memory of each launch.
TEST_F(CudaLaunches, DynamicSharedMemory) {
  readLog("");
  for (auto [name, count] :
       {std::pair("reverse_small", 4096), std::pair("reverse_large", 32768)}) {
    Buffer in(POSENC_F32, {count}), out(POSENC_F32, {count});
    in.fill(random);
    in.upload();
    ASSERT_EQ(run(name, in, out), 0) << message;
    const auto *from = reinterpret_cast<const uint32_t *>(in.bytes.data());
    std::reverse_copy(from, from + count,
                      reinterpret_cast<uint32_t *>(out.bytes.data()));
    out.compare(name);
  }
  EXPECT_EQ(readLog("launch"),
            (std::vector<std::string>{"launch reverse 1x1x1 128x1x1 16384",
                                      "launch reverse 1x1x1 128x1x1 131072"}));
}

// A GPU with less shared memory is an error, also of the launches that would
// fit, since the kernel as a whole cannot be loaded.
TEST_F(CudaLaunches, TooLittleSharedMemory) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  // The child process starts again with this environment.
  setenv("POSENC_FAKE_CUDA_SM", "86", 1);
  auto check = [&] {
    Buffer in(POSENC_F32, {4096}), out(POSENC_F32, {4096});
    in.upload();
    int32_t first = run("reverse_small", in, out);
    int32_t second = run("reverse_small", in, out);
    std::fprintf(stderr, "%s\n", message.c_str());
    _exit(first == 14 && second == 14 ? 7 : 8);
  };
  EXPECT_EXIT(check(), testing::ExitedWithCode(7),
              "reverse_small: a kernel needs 131072 bytes of dynamic shared "
              "memory in each block, of which this GPU has at most 101376: "
              "invalid argument");
  unsetenv("POSENC_FAKE_CUDA_SM");
}

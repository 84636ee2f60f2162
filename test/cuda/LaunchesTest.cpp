//===- LaunchesTest.cpp - how kernels are launched ------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Forms.h"
#include "ptx/TensorMap.h"

#include <algorithm>
#include <cstring>
#include <unistd.h>

using namespace posenc;
using namespace posenc::test;

namespace {

/// Functions of gpu-launches.mlir and gpu-tensor-maps.mlir, whose kernels are
/// written by hand.
class CudaLaunches : public CudaTest {
protected:
  /// Calls a function with one input and one output on the device.
  int32_t run(const std::string &function, Buffer &in, Buffer &out,
              const char *library = POSENC_CUDA_LAUNCHES) {
    return call(function, "_cuda",
                {reinterpret_cast<uintptr_t>(&in.device),
                 reinterpret_cast<uintptr_t>(&out.device)},
                /*stream=*/nullptr, library);
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

// A kernel gets its tensor map by value: the tensor's address, its sizes and
// strides in the order of the driver, and the box.
TEST_F(CudaLaunches, TensorMap) {
  auto getMap = [&](Buffer &in) {
    Buffer out(POSENC_I64, {16});
    EXPECT_EQ(run("map_words", in, out), 0) << message;
    cuda("cuCtxSynchronize");
    ptx::TensorMap map;
    cuda("cuMemcpyDtoH_v2", static_cast<void *>(&map), out.getAddress(),
         sizeof(map));
    EXPECT_EQ(map.check(), nullptr);
    return map;
  };
  // Rows of 64 elements and 8 more, a first element after 16 others.
  Buffer view(POSENC_BF16, {3, 100, 64}, {/*before=*/16, /*after=*/8});
  view.upload();
  ptx::TensorMap map = getMap(view);
  EXPECT_EQ(map.rank, 3);
  EXPECT_EQ(map.elementBytes, 2);
  EXPECT_EQ(map.swizzle, ptx::TensorMap::Swizzle128);
  EXPECT_EQ(map.address, view.getAddress() + 32);
  const uint64_t sizes[] = {64, 100, 3}, strides[] = {144, 14400};
  const uint32_t box[] = {64, 80, 1};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(map.sizes[i], sizes[i]) << i;
    EXPECT_EQ(map.box[i], box[i]) << i;
    if (i < 2)
      EXPECT_EQ(map.strides[i], strides[i]) << i;
  }
  // The strides of dimensions without further elements do not matter. The
  // driver refuses empty tensors, of which a kernel copies nothing.
  Buffer one(POSENC_BF16, {1, 1, 64}), empty(POSENC_BF16, {2, 0, 64});
  int64_t odd[] = {3, 5, 1};
  one.device.strides = odd;
  one.upload();
  EXPECT_EQ(getMap(one).strides[0], 128u);
  EXPECT_EQ(getMap(empty).sizes[1], 1u);
}

// The driver refuses tensors that are not aligned.
TEST_F(CudaLaunches, UnalignedTensorMap) {
  Buffer out(POSENC_I64, {16});
  for (Layout layout : {Layout{1, 0}, Layout{0, 4}}) {
    Buffer in(POSENC_BF16, {3, 100, 64}, layout);
    EXPECT_EQ(run("map_words", in, out), 14);
    EXPECT_NE(message.find("map_words: a tensor cannot be copied in tiles: its "
                           "address and strides must be multiples of 16 bytes: "
                           "invalid argument"),
              std::string::npos)
        << message;
  }
}

// Kernels load and store tiles by tensor maps; the last tile of each group has
// rows outside of the tensor.
TEST_F(CudaLaunches, CopiesOfTiles) {
  Buffer in(POSENC_BF16, {3, 20, 64}, {/*before=*/16, /*after=*/8});
  Buffer out(POSENC_BF16, {3, 20, 64}, {/*before=*/8, /*after=*/24});
  in.fill(random);
  in.upload();
  out.fill(random);
  out.upload();
  ASSERT_EQ(run("copy", in, out, POSENC_CUDA_MAPS), 0) << message;
  cuda("cuCtxSynchronize");
  for (int row = 0; row < 3 * 20; ++row)
    std::memcpy(out.bytes.data() + 2 * (8 + row * 88),
                in.bytes.data() + 2 * (16 + row * 72), 128);
  out.compare("copy");
}

//===- TypesTest.cpp - Element types, status names and arrays -------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/runtime/types.h"
#include "posenc/runtime/Array.h"

#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>

using namespace posenc::runtime;

extern "C" int posencTestCInterface(const char *path);
bool posencTestWithoutExceptions(const char *path);

namespace {

TEST(Types, NamesAndSizes) {
  const size_t sizes[] = {0, 8, 4, 2, 2, 8, 4, 8, 1, 1, 1, 1, 1};
  for (posenc_dtype dtype = POSENC_F64; dtype <= POSENC_U8; ++dtype) {
    EXPECT_EQ(posenc_dtype_size(dtype), sizes[dtype]);
    EXPECT_EQ(posenc_dtype_from_name(posenc_dtype_name(dtype)), dtype);
  }
  EXPECT_STREQ(posenc_dtype_name(POSENC_BF16), "bf16");
  for (posenc_dtype dtype : {0, -1, 13, INT32_MIN, INT32_MAX}) {
    EXPECT_EQ(posenc_dtype_size(dtype), 0u);
    EXPECT_STREQ(posenc_dtype_name(dtype), "invalid");
  }
  for (const char *name : {"", "f33", "invalid", "F32", "f32 "})
    EXPECT_EQ(posenc_dtype_from_name(name), POSENC_DTYPE_INVALID);
  EXPECT_EQ(posenc_dtype_from_name(nullptr), POSENC_DTYPE_INVALID);
}

TEST(Types, StatusNames) {
  EXPECT_STREQ(posenc_status_name(POSENC_OK), "ok");
  EXPECT_STREQ(posenc_status_name(POSENC_KERNEL_FAILED), "kernel failed");
  EXPECT_STREQ(posenc_status_name(POSENC_UNSUPPORTED), "unsupported");
  EXPECT_STREQ(posenc_status_name(-1), "unknown status");
  EXPECT_STREQ(posenc_status_name(10), "unknown status");
}

TEST(Types, Arrays) {
  std::string error;
  Array array;
  EXPECT_EQ(array.numElements(), 0u);
  ASSERT_TRUE(Array::allocate(POSENC_F16, {3, 5}, array, error)) << error;
  EXPECT_EQ(array.sizeInBytes(), 30u);
  EXPECT_EQ(array.numElements(), 15u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(array.data()) % 64, 0u);
  EXPECT_EQ(array.dataAs<uint16_t>()[14], 0);
  Array moved = std::move(array);
  EXPECT_EQ(moved.tensor().rank, 2);
  EXPECT_EQ(moved.tensor().shape[1], 5);
  EXPECT_EQ(moved.value().kind, POSENC_TENSOR);

  ASSERT_TRUE(Array::allocate(POSENC_F64, {}, array, error)) << error;
  EXPECT_EQ(array.numElements(), 1u);
  ASSERT_TRUE(Array::allocate(POSENC_F64, {4, 0}, array, error)) << error;
  EXPECT_NE(array.data(), nullptr);

  EXPECT_FALSE(Array::allocate(POSENC_DTYPE_INVALID, {1}, array, error));
  EXPECT_FALSE(Array::allocate(POSENC_F32, {-1}, array, error));
  EXPECT_FALSE(Array::allocate(POSENC_F32, {INT64_MAX, 2}, array, error));
  EXPECT_FALSE(Array::allocate(POSENC_F32, {INT64_MAX, 2, 0}, array, error));
  EXPECT_FALSE(Array::allocate(POSENC_I8, {INT64_MAX}, array, error));
  EXPECT_EQ(error, "out of memory: 9223372036854775807 bytes");
  EXPECT_FALSE(
      Array::allocate(POSENC_I8, std::vector<int64_t>(33, 1), array, error));
  EXPECT_EQ(array.shape(), (std::vector<int64_t>{4, 0}));
}

TEST(Types, InterfaceForC) {
  EXPECT_EQ(posencTestCInterface(POSENC_TEST_KERNELS), 0);
}

TEST(Types, InterfaceWithoutExceptions) {
  EXPECT_TRUE(posencTestWithoutExceptions(POSENC_TEST_KERNELS));
}

} // namespace

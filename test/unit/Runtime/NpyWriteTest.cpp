//===- NpyWriteTest.cpp - Writing .npy files ------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Support.h"
#include "posenc/runtime/npy.h"

#include <csignal>
#include <cstring>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

using namespace posenc::runtime;
using namespace posenc::test;

namespace {

class NpyWrite : public testing::Test {
protected:
  TempDir folder;
  std::string error;
};

TEST_F(NpyWrite, RoundTrips) {
  const std::vector<std::vector<int64_t>> shapes = {
      {}, {1}, {5}, {2, 3}, {0}, {2, 0, 4}, std::vector<int64_t>(32, 1)};
  for (posenc_dtype dtype = POSENC_F64; dtype <= POSENC_I1; ++dtype)
    for (const std::vector<int64_t> &shape : shapes) {
      Array array, back;
      ASSERT_TRUE(Array::allocate(dtype, shape, array, error)) << error;
      for (size_t i = 0; i < array.sizeInBytes(); ++i)
        array.dataAs<char>()[i] = static_cast<char>(i);
      std::string path = folder.path("x.npy");
      ASSERT_TRUE(writeNpy(path, array.tensor(), error)) << error;
      ASSERT_TRUE(readNpy(path, back, error)) << error;
      EXPECT_EQ(back.dtype(), dtype == POSENC_INDEX ? POSENC_I64 : dtype);
      EXPECT_EQ(back.shape(), shape);
      EXPECT_EQ(std::memcmp(back.data(), array.data(), array.sizeInBytes()), 0);
      EXPECT_EQ(folder.numFiles(), 1u);
    }
}

TEST_F(NpyWrite, MatchesNumPy) {
  uint16_t data[2] = {0x3F80, 0x4000};
  int64_t shape[] = {2};
  std::string path = folder.path("x.npy");
  ASSERT_TRUE(writeNpy(path, {data, POSENC_BF16, 1, shape}, error)) << error;
  std::string text =
      "{'descr': '<u2', 'fortran_order': False, 'shape': (2,), }";
  std::string expected = std::string("\x93NUMPY\1\0\x76\0", 10) + text +
                         std::string(0x76 - text.size() - 1, ' ') + "\n" +
                         std::string("\x80\x3F\0\x40", 4);
  EXPECT_EQ(readFile(path), expected);

  std::string header;
  ASSERT_TRUE(makeNpyHeader({data, POSENC_BF16, 1, shape}, header, error));
  EXPECT_EQ(header + std::string("\x80\x3F\0\x40", 4), expected);
  EXPECT_FALSE(makeNpyHeader({nullptr, POSENC_BF16, 1, shape}, header, error));
  EXPECT_EQ(error, "the data is NULL");
}

TEST_F(NpyWrite, RefusesBadTensors) {
  float data[4] = {};
  int64_t good[] = {4}, negative[] = {-1}, huge[] = {INT64_MAX};
  std::string path = folder.path("x.npy");
  writeFile(path, "old");
  EXPECT_FALSE(writeNpy(path, {data, 0, 1, good}, error));
  EXPECT_FALSE(writeNpy(path, {data, 99, 1, good}, error));
  EXPECT_FALSE(writeNpy(path, {data, POSENC_F32, -1, good}, error));
  EXPECT_FALSE(writeNpy(path, {data, POSENC_F32, 33, good}, error));
  EXPECT_FALSE(writeNpy(path, {data, POSENC_F32, 1, nullptr}, error));
  EXPECT_FALSE(writeNpy(path, {data, POSENC_F32, 1, negative}, error));
  EXPECT_FALSE(writeNpy(path, {data, POSENC_F32, 1, huge}, error));
  EXPECT_FALSE(writeNpy(path, {nullptr, POSENC_F32, 1, good}, error));
  EXPECT_EQ(error, path + ": the data is NULL");
  EXPECT_EQ(readFile(path), "old");
  EXPECT_EQ(folder.numFiles(), 1u);
}

TEST_F(NpyWrite, FailuresLeaveNothingBehind) {
  std::vector<float> data(1 << 16);
  int64_t shape[] = {1 << 16};
  posenc_tensor tensor = {data.data(), POSENC_F32, 1, shape};
  std::string path = folder.path("x.npy");
  writeFile(path, "old");

  // A limit on the size of files simulates a full disk.
  struct rlimit before, limited;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  limited = before;
  limited.rlim_cur = 1 << 14;
  auto *handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limited), 0);
  bool written = writeNpy(path, tensor, error);
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_FALSE(written);
  EXPECT_EQ(error, path + ": File too large");
  EXPECT_EQ(readFile(path), "old");
  EXPECT_EQ(folder.numFiles(), 1u);

  EXPECT_FALSE(writeNpy(folder.path("no/x.npy"), tensor, error));
  EXPECT_FALSE(writeNpy(folder.path(""), tensor, error));
  EXPECT_FALSE(writeNpy("", tensor, error));
  EXPECT_FALSE(writeNpy(path + std::string("\0y", 2), tensor, error));
  EXPECT_FALSE(writeNpy(folder.path(std::string(300, 'a')), tensor, error));
  EXPECT_EQ(folder.numFiles(), 1u);

  ASSERT_TRUE(writeNpy(path, tensor, error)) << error;
  EXPECT_EQ(folder.numFiles(), 1u);
  EXPECT_GT(readFile(path).size(), size_t(1 << 18));
}

TEST_F(NpyWrite, DevicesAndLinksSurvive) {
  float data[1] = {1};
  posenc_tensor tensor = {data, POSENC_F32, 0, nullptr};
  EXPECT_TRUE(writeNpy("/dev/null", tensor, error)) << error;
  EXPECT_FALSE(writeNpy("/dev/full", tensor, error));
  struct stat info;
  ASSERT_EQ(::stat("/dev/null", &info), 0);
  EXPECT_TRUE(S_ISCHR(info.st_mode));

  writeFile(folder.path("real.npy"), "old");
  std::filesystem::create_symlink("real.npy", folder.path("link.npy"));
  ASSERT_TRUE(writeNpy(folder.path("link.npy"), tensor, error)) << error;
  EXPECT_TRUE(std::filesystem::is_symlink(folder.path("link.npy")));
  EXPECT_GT(readFile(folder.path("real.npy")).size(), 3u);
}

TEST_F(NpyWrite, PermissionsFollowTheMask) {
  float data[1] = {1};
  posenc_tensor tensor = {data, POSENC_F32, 0, nullptr};
  mode_t before = ::umask(027);
  bool written = writeNpy(folder.path("x.npy"), tensor, error);
  ::umask(before);
  ASSERT_TRUE(written) << error;
  struct stat info;
  ASSERT_EQ(::stat(folder.path("x.npy").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
}

} // namespace

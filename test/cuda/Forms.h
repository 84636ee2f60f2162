//===- Forms.h - compiled kernels called on a GPU that is none --*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TEST_CUDA_FORMS_H
#define POSENC_TEST_CUDA_FORMS_H

#include "posenc/runtime/Library.h"

#include "gtest/gtest.h"

#include <functional>
#include <random>

namespace posenc::test {

/// As DLPack has it.
struct Tensor {
  void *data = nullptr;
  int32_t deviceType = 1, deviceId = 0;
  int32_t ndim = 0;
  uint8_t code = 0, bits = 0;
  uint16_t lanes = 1;
  int64_t *shape = nullptr, *strides = nullptr;
  uint64_t byteOffset = 0;
};

/// How a tensor lies in its buffer: so many elements before it, and after each
/// of its rows, and with the first dimension from the end on.
struct Layout {
  int64_t before = 0, behind = 0;
  bool isReversed = false;
};

/// A tensor on the host and one on the device, which begin as the same.
class Buffer {
public:
  Buffer(posenc_dtype dtype, std::vector<int64_t> shape,
         const Layout &layout = {});
  Buffer(const Buffer &) = delete;
  ~Buffer();

  Tensor host, device;
  /// Of the host, with what lies around the tensor.
  std::vector<uint8_t> bytes;

  /// Numbers of the type, or positions.
  void fill(std::mt19937_64 &random);
  /// Copies all to the device. What is not, nobody has written there.
  void upload();
  unsigned long long getAddress() const { return address; }
  /// Expects the bytes of the device to be those of the host.
  void compare(const std::string &name);

private:
  void writeElement(int64_t index, std::mt19937_64 &random);

  posenc_dtype dtype;
  std::vector<int64_t> shape, strides;
  unsigned long long address = 0;
};

/// A test of the library of forms, with the driver in its place.
class CudaTest : public testing::Test {
protected:
  void SetUp() override;
  void TearDown() override { readLog(""); }

  /// Calls a function of the driver, which must succeed.
  template <typename... T> void cuda(const char *name, T... arguments) {
    EXPECT_EQ(tryCuda(name, arguments...), 0) << name;
  }
  template <typename... T>
  static int tryCuda(const char *name, T... arguments) {
    return reinterpret_cast<int (*)(T...)>(findCuda(name))(arguments...);
  }
  static void *findCuda(const char *name);

  /// Calls a function of the library at `path`, the one of forms if it is
  /// empty: tensors and scalars, then for the suffix "_cuda" a stream. The
  /// message is kept.
  int32_t call(const std::string &function, const std::string &suffix,
               const std::vector<uint64_t> &arguments, void *stream = nullptr,
               const std::string &path = "");

  /// Runs a function on both, and compares what they write. `sizes` are of n0,
  /// n1 and so on. Outputs may be the inputs.
  void check(const std::string &function, const std::vector<int64_t> &sizes,
             const Layout &layout = {}, bool isInPlace = false);

  /// Lines that the driver has written since the last call of this, which
  /// begin with a word, or all.
  std::vector<std::string> readLog(const std::string &word);

  runtime::Library library;
  std::string message;

  friend class Buffer;
};

} // namespace posenc::test

#endif // POSENC_TEST_CUDA_FORMS_H

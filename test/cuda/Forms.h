//===- Forms.h - calls compiled kernels on the fake CUDA driver -*- C++ -*-===//
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
#include <optional>
#include <random>

namespace posenc::test {

/// DLTensor of DLPack.
struct Tensor {
  void *data = nullptr;
  int32_t deviceType = 1, deviceId = 0;
  int32_t ndim = 0;
  uint8_t code = 0, bits = 0;
  uint16_t lanes = 1;
  int64_t *shape = nullptr, *strides = nullptr;
  uint64_t byteOffset = 0;
};

/// The layout of a tensor in its buffer: padding elements before it and after
/// each row, and whether the stride of the first dimension is negative.
struct Layout {
  int64_t before = 0, after = 0;
  bool isReversed = false;
};

/// A tensor on the host and its copy on the device.
class Buffer {
public:
  Buffer(posenc_dtype dtype, std::vector<int64_t> shape,
         const Layout &layout = {});
  Buffer(const Buffer &) = delete;
  ~Buffer();

  Tensor host, device;
  /// The host memory, including the padding.
  std::vector<uint8_t> bytes;

  /// Fills the host memory with random numbers, or positions for integer types.
  void fill(std::mt19937_64 &random);
  /// Copies all host memory to the device. Before, device memory is
  /// uninitialized.
  void upload();
  unsigned long long getAddress() const { return address; }
  /// Expects that device and host memory are equal.
  void compare(const std::string &name);

private:
  void writeElement(int64_t index, std::mt19937_64 &random);

  posenc_dtype dtype;
  std::vector<int64_t> shape, strides;
  unsigned long long address = 0;
};

/// Tests of kernel libraries with the fake CUDA driver. `library` contains the
/// functions of gpu-forms.mlir, one for each kind ("form") of kernel.
class CudaTest : public testing::Test {
protected:
  void SetUp() override;
  void TearDown() override { readLog(""); }

  /// Calls a function of the driver and expects success.
  template <typename... T> void cuda(const char *name, T... arguments) {
    EXPECT_EQ(tryCuda(name, arguments...), 0) << name;
  }
  /// Calls a function of the driver and returns its CUresult.
  template <typename... T>
  static int tryCuda(const char *name, T... arguments) {
    return reinterpret_cast<int (*)(T...)>(findCuda(name))(arguments...);
  }
  static void *findCuda(const char *name);

  /// Calls the entry point of `function` with `suffix` ("_dl" or "_cuda") in
  /// the library at `path`, by default `library`. `arguments` are tensor
  /// addresses and scalars. Calls on the device get `workspace`. Sets `message`
  /// and returns the status code.
  int32_t call(const std::string &function, const std::string &suffix,
               const std::vector<uint64_t> &arguments, void *stream = nullptr,
               const std::string &path = "");

  /// Returns what `<function>_cuda_workspace` returns for the dynamic sizes;
  /// nullopt if `library` has no such function.
  std::optional<int64_t> getWorkspace(const std::string &function,
                                      const std::vector<int64_t> &sizes);

  /// Runs a function on the CPU and on the device and compares all tensors.
  /// `sizes` are the dynamic sizes n0, n1, ... With isInPlace, output i is
  /// input i.
  void check(const std::string &function, const std::vector<int64_t> &sizes,
             const Layout &layout = {}, bool isInPlace = false);

  /// Returns the lines of the driver log since the last call that start with
  /// `word`, or all lines for "".
  std::vector<std::string> readLog(const std::string &word);

  runtime::Library library;
  std::string message;
  uint64_t workspace = 0;

  friend class Buffer;
};

} // namespace posenc::test

#endif // POSENC_TEST_CUDA_FORMS_H

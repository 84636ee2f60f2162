//===- FunctionsTest.cpp - math functions in PTX match the CPU ------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Forms.h"

#include <cmath>
#include <cstring>
#include <unistd.h>

using namespace posenc;
using namespace posenc::test;

namespace {

/// Elementwise functions of gpu-functions.mlir, compiled for the CPU and to
/// PTX.
class CudaFunctions : public CudaTest {
protected:
  void SetUp() override {
    CudaTest::SetUp();
    if (IsSkipped() || HasFatalFailure())
      return;
    std::string error;
    functions = runtime::Library::open(POSENC_CUDA_FUNCTIONS, error);
    ASSERT_TRUE(functions) << error;
  }

  /// Calls a function on the CPU and on the device and expects equal bits. NaNs
  /// are equal.
  void compare(runtime::Function function);

  runtime::Library functions;
};

/// The width and mantissa bits of a floating-point format.
struct Format {
  unsigned bits, mantissa;

  bool isNaN(uint64_t value) const {
    uint64_t infinity = ((uint64_t{1} << (bits - 1 - mantissa)) - 1)
                        << mantissa;
    return (value & ~(uint64_t{1} << (bits - 1))) > infinity;
  }
};

Format getFormat(posenc_dtype dtype) {
  switch (dtype) {
  case POSENC_F64:
    return {64, 52};
  case POSENC_F32:
    return {32, 23};
  case POSENC_F16:
    return {16, 10};
  default:
    return {16, 7};
  }
}

/// Returns arguments with both signs, all exponents (every third one for f64)
/// and some mantissas, and ordinary magnitudes; for 16 bits, every seventh
/// number.
std::vector<uint64_t> makeArguments(const Format &format) {
  std::vector<uint64_t> result;
  if (format.bits == 16) {
    for (uint64_t bits = 0; bits < 0x10000; bits += 7)
      result.push_back(bits);
    return result;
  }
  std::mt19937_64 random(13);
  uint64_t mask = (uint64_t{1} << format.mantissa) - 1;
  uint64_t exponents = uint64_t{1} << (format.bits - 1 - format.mantissa);
  uint64_t step = format.bits == 64 ? 3 : 1;
  for (uint64_t exponent = 0; exponent < exponents;
       exponent += exponent + step < exponents ? step : 1)
    for (uint64_t mantissa : {uint64_t{0}, mask, uint64_t(random()) & mask})
      for (uint64_t sign : {0, 1})
        result.push_back(sign << (format.bits - 1) |
                         exponent << format.mantissa | mantissa);
  // Magnitudes that are ordinary arguments of most functions.
  for (int i = 0; i < 600; ++i) {
    double value = std::ldexp(double(int32_t(random())), -28 + int(i % 8));
    float narrow = float(value);
    uint64_t bits = 0;
    if (format.bits == 64)
      std::memcpy(&bits, &value, 8);
    else
      std::memcpy(&bits, &narrow, 4);
    result.push_back(bits);
  }
  return result;
}

} // namespace

void CudaFunctions::compare(runtime::Function function) {
  std::string name = function.name();
  SCOPED_TRACE(name);
  posenc_dtype dtype = function.input(0).dtype();
  Format format = getFormat(dtype);
  std::vector<uint64_t> arguments = makeArguments(format);
  auto count = static_cast<int64_t>(arguments.size());
  size_t width = format.bits / 8;
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<uint64_t> host, device;
  for (size_t operand = 0; operand <= function.numInputs(); ++operand) {
    auto buffer = std::make_unique<Buffer>(dtype, std::vector<int64_t>{count});
    for (int64_t at = 0; at < count; ++at) {
      // The second operand has the same values in another order.
      uint64_t bits = arguments[operand ? at * 7919 % count : at];
      std::memcpy(buffer->bytes.data() + at * width, &bits, width);
    }
    buffer->upload();
    host.push_back(reinterpret_cast<uintptr_t>(&buffer->host));
    device.push_back(reinterpret_cast<uintptr_t>(&buffer->device));
    buffers.push_back(std::move(buffer));
  }
  ASSERT_EQ(call(name, "_dl", host, nullptr, POSENC_CUDA_FUNCTIONS), 0)
      << message;
  ASSERT_EQ(call(name, "_cuda", device, nullptr, POSENC_CUDA_FUNCTIONS), 0)
      << message;
  cuda("cuCtxSynchronize");
  const std::vector<uint8_t> &expected = buffers.back()->bytes;
  std::vector<uint8_t> found(expected.size());
  cuda("cuMemcpyDtoH_v2", static_cast<void *>(found.data()),
       buffers.back()->getAddress(), found.size());
  for (int64_t at = 0; at < count; ++at) {
    uint64_t onHost = 0, onDevice = 0;
    std::memcpy(&onHost, expected.data() + at * width, width);
    std::memcpy(&onDevice, found.data() + at * width, width);
    if (format.isNaN(onHost) && format.isNaN(onDevice))
      continue;
    ASSERT_EQ(onHost, onDevice)
        << "argument 0x" << std::hex << arguments[at] << ", element " << at;
  }
}

TEST_F(CudaFunctions, MatchTheCpu) {
  for (size_t i = 0; i < functions.numFunctions(); ++i)
    compare(functions.function(i));
}

// A seeded fault: another rounding mode is detected.
TEST_F(CudaFunctions, RoundingFaultIsDetected) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  // The child process starts again with this environment.
  setenv("POSENC_FAKE_CUDA_EDIT", "cvt.rn.f32.f64=>cvt.rz.f32.f64", 1);
  auto run = [&] {
    std::string error;
    compare(functions.find("sin_f32", error));
    std::fprintf(stderr, "%s\n", message.c_str());
    _exit(HasFailure() ? 7 : 8);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(7), "");
  unsetenv("POSENC_FAKE_CUDA_EDIT");
}

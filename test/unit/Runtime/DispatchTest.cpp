//===- DispatchTest.cpp - Calls with any number of arguments --------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MemoryLibrary.h"

#include <gtest/gtest.h>
#include <utility>

using namespace posenc::runtime;
using namespace posenc::test;

namespace {

constexpr size_t maxScalars = POSENC_MAX_ARGUMENTS - 1;

/// Every third scalar has 32 bits, as in signature().
template <size_t I>
using Scalar = std::conditional_t<I % 3 == 1, int32_t, int64_t>;

/// A kernel of `I...` scalars that writes them to its output.
template <size_t... I> void *makeKernel(std::index_sequence<I...>) {
  int32_t (*kernel)(Scalar<I>..., int64_t *) =
      +[](Scalar<I>... scalars, int64_t *out) -> int32_t {
    int64_t values[] = {scalars..., 0};
    for (size_t i = 0; i < sizeof...(I); ++i)
      out[i] = values[i];
    return 0;
  };
  return addressOf(kernel);
}

template <size_t... Count>
std::vector<std::pair<size_t, void *>>
makeKernels(std::index_sequence<Count...>) {
  return {{Count, makeKernel(std::make_index_sequence<Count>())}...};
}

std::string signature(size_t numScalars) {
  std::string inputs;
  for (size_t i = 0; i < numScalars; ++i)
    inputs += (i ? "," : "") +
              scalarJson("s" + std::to_string(i), i % 3 == 1 ? "i32" : "i64");
  return libraryJson(functionJson(
      "f", inputs, tensorJson("y", "i64", std::to_string(numScalars)), ""));
}

/// Every number up to 40, and those around the ends of larger ranges.
TEST(Dispatch, NumbersOfArguments) {
  auto kernels = makeKernels(std::make_index_sequence<41>());
  for (auto kernel :
       makeKernels(std::index_sequence<62, 63, 64, 126, 127, 128, 200, 254, 255,
                                       256, 400, maxScalars>()))
    kernels.push_back(kernel);
  for (auto [count, kernel] : kernels) {
    std::string error;
    Library library = openMemory(signature(count), {{"m_f", kernel}}, error);
    ASSERT_TRUE(library) << error;
    std::vector<posenc_value> inputs;
    for (size_t i = 0; i < count; ++i)
      inputs.push_back(scalar(i % 2 ? -int64_t(i) - 1 : int64_t(i) + 1000000));
    std::vector<Array> results;
    ASSERT_TRUE(library.find("f", error).call(inputs, results, error)) << error;
    for (size_t i = 0; i < count; ++i)
      EXPECT_EQ(results[0].dataAs<int64_t>()[i], inputs[i].scalar)
          << i << " of " << count;
  }
}

TEST(Dispatch, RefusesMoreArguments) {
  std::string error;
  int32_t (*kernel)() = [] { return 0; };
  Library library = openMemory(signature(maxScalars + 1),
                               {{"m_f", addressOf(kernel)}}, error);
  // The signature can be queried.
  ASSERT_TRUE(library) << error;
  Function function = library.find("f", error);
  EXPECT_EQ(function.numInputs(), maxScalars + 1);
  std::vector<posenc_value> inputs(maxScalars + 1, scalar(0));
  int64_t out[maxScalars + 1];
  std::vector<int64_t> shape = {maxScalars + 1};
  posenc_value output = view(out, POSENC_I64, shape);
  EXPECT_EQ(
      posenc_call(function.get(), inputs.data(), inputs.size(), &output, 1),
      POSENC_UNSUPPORTED);
  EXPECT_STREQ(posenc_last_error(),
               "f: 513 arguments; at most 512 can be passed");
  EXPECT_EQ(
      posenc_output_shape(function.get(), inputs.data(), inputs.size(), 0, out),
      POSENC_UNSUPPORTED);
}

int32_t pick(const int64_t *x, int64_t width, int32_t *y, const uint16_t *z,
             int64_t *out, int64_t n, int64_t m) {
  out[0] = x[0];
  out[1] = width;
  out[2] = y[0];
  out[3] = z[0];
  out[4] = n;
  out[5] = m;
  return 0;
}

/// Scalars keep their position between tensors; a later scalar may be the size
/// of a tensor.
TEST(Dispatch, MixedSignature) {
  std::string error;
  Library library = openMemory(
      libraryJson(functionJson("pick",
                               tensorJson("x", "i64", "\"n\",\"width\"") + "," +
                                   scalarJson("width", "index") + "," +
                                   tensorJson("y", "i32", "\"m\",\"n\"") + "," +
                                   tensorJson("z", "bf16", ""),
                               tensorJson("out", "i64", "6"), "\"n\",\"m\"")),
      {{"m_pick", addressOf(pick)}}, error);
  ASSERT_TRUE(library) << error;
  int64_t x[6] = {11};
  int32_t y[8] = {-22};
  uint16_t z = 0x3F80;
  std::vector<int64_t> xShape = {2, 3}, yShape = {4, 2};
  std::vector<Array> results;
  Function function = library.find("pick", error);
  ASSERT_TRUE(
      function.call({view(x, POSENC_I64, xShape), scalar(3),
                     view(y, POSENC_I32, yShape), view(&z, POSENC_BF16, {})},
                    results, error))
      << error;
  const int64_t expected[] = {11, 3, -22, 0x3F80, 2, 4};
  for (int i = 0; i < 6; ++i)
    EXPECT_EQ(results[0].dataAs<int64_t>()[i], expected[i]) << i;
  // A type of the same size is refused.
  EXPECT_FALSE(
      function.call({view(x, POSENC_I64, xShape), scalar(3),
                     view(y, POSENC_I32, yShape), view(&z, POSENC_F16, {})},
                    results, error));
  EXPECT_EQ(error, "pick: input 'z' is f16, expected bf16");
  EXPECT_FALSE(
      function.call({view(x, POSENC_I64, xShape), scalar(2),
                     view(y, POSENC_I32, yShape), view(&z, POSENC_BF16, {})},
                    results, error));
  EXPECT_EQ(error, "pick: input 'x' has size 3 in dimension 1, but input "
                   "'width' is 2");
}

TEST(Dispatch, RefusesAnotherProcessor) {
#if defined(__x86_64__)
  std::string error;
  int32_t (*kernel)() = [] { return 0; };
  struct {
    const char *targets;
    bool runs;
  } cases[] = {
      {"", true},
      {"\"x86-64\"", true},
      {"\"cuda:sm_90\"", true},
      {"\"x86-64:something-new\"", true},
      {"\"x86-64+feature-of-the-future\"", true},
      {"\"x86-64-v2\",\"x86-64-v4+avx512fp16\"",
       __builtin_cpu_supports("x86-64-v2") != 0},
      {"\"x86-64-v4+avx512fp16\"", __builtin_cpu_supports("x86-64-v4") &&
                                       __builtin_cpu_supports("avx512fp16")},
      {"\"x86-64:x86-64-v4+avx512bf16\",\"cuda:sm_90\"",
       __builtin_cpu_supports("x86-64-v4") &&
           __builtin_cpu_supports("avx512bf16") &&
           __builtin_cpu_supports("avx512vnni")},
  };
  for (const auto &item : cases) {
    Library library =
        openMemory(libraryJson(functionJson("f", "", "", ""), item.targets),
                   {{"m_f", addressOf(kernel)}}, error);
    ASSERT_TRUE(library) << error;
    EXPECT_EQ(posenc_call(library.function(0).get(), nullptr, 0, nullptr, 0),
              item.runs ? POSENC_OK : POSENC_UNSUPPORTED)
        << item.targets;
  }
#endif
}

} // namespace

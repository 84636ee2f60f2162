//===- PropertiesTest.cpp - properties of correct kernels -----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Harness.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <thread>

using namespace posenc;
using namespace posenc::test;

namespace {

std::string getRope(bool interleaved, const std::string &dtype, int64_t headDim,
                    bool inverse = false, const std::string &scaling = "") {
  std::string type =
      "tensor<?x?x" + std::to_string(headDim) + "x" + dtype + ">";
  return "func.func @f(%x: " + type + ", %p: tensor<?xi64>) -> " + type +
         " {\n  %r = posenc.rope " + (interleaved ? "interleaved" : "half") +
         (inverse ? " inverse" : "") +
         " #posenc.frequencies<dim = " + std::to_string(headDim) + scaling +
         "> ins(%x : " + type +
         ") positions(%p : tensor<?xi64>) dims = [0] outs(%x : " + type +
         ")\n  return %r : " + type + "\n}\n";
}

runtime::Array rotate(const Kernel &kernel, const runtime::Array &x,
                      const std::vector<int64_t> &positions) {
  runtime::Array p = makePositions(
      POSENC_I64, {static_cast<int64_t>(positions.size())}, positions);
  std::vector<runtime::Array> results =
      kernel.call("f", {x.value(), p.value()});
  return results.empty() ? runtime::Array() : std::move(results.front());
}

class PairingTest : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Both, PairingTest, testing::Values(false, true),
                         [](const testing::TestParamInfo<bool> &info) {
                           return info.param ? "Interleaved" : "Half";
                         });

TEST_P(PairingTest, ScoresDependOnRelativePositionOnly) {
  constexpr int64_t dim = 64;
  Kernel kernel(getRope(GetParam(), "f64", dim));
  runtime::Array q = makeRandom(POSENC_F64, {1, 1, dim}, 1);
  runtime::Array k = makeRandom(POSENC_F64, {1, 1, dim}, 2);
  auto score = [&](int64_t a, int64_t b) {
    runtime::Array rotatedQ = rotate(kernel, q, {a});
    runtime::Array rotatedK = rotate(kernel, k, {b});
    double sum = 0;
    for (int64_t i = 0; i < dim; ++i)
      sum += rotatedQ.dataAs<double>()[i] * rotatedK.dataAs<double>()[i];
    return sum;
  };
  double expected = score(17, 5);
  for (int64_t shift : {1, 1000, 1000000, 2147483000, -77})
    EXPECT_NEAR(score(17 + shift, 5 + shift), expected, 1e-12) << shift;
  EXPECT_GT(std::abs(score(18, 5) - expected), 1e-3);
}

TEST_P(PairingTest, KeepsNorms) {
  constexpr int64_t dim = 32, tokens = 9;
  Kernel kernel(getRope(GetParam(), "f64", dim));
  runtime::Array x = makeRandom(POSENC_F64, {tokens, 2, dim}, 3);
  runtime::Array y = rotate(kernel, x, hardPositions(tokens));
  for (int64_t row = 0; row < 2 * tokens; ++row) {
    double before = 0, after = 0;
    for (int64_t i = 0; i < dim; ++i) {
      before += std::pow(x.dataAs<double>()[row * dim + i], 2);
      after += std::pow(y.dataAs<double>()[row * dim + i], 2);
    }
    EXPECT_NEAR(after, before, 1e-13 * before);
  }
}

TEST_P(PairingTest, PositionZeroIsTheIdentity) {
  for (const char *dtype : {"f32", "f64", "bf16", "f16"}) {
    Kernel kernel(getRope(GetParam(), dtype, 24));
    posenc_dtype type = std::string(dtype) == "f32"    ? POSENC_F32
                        : std::string(dtype) == "f64"  ? POSENC_F64
                        : std::string(dtype) == "bf16" ? POSENC_BF16
                                                       : POSENC_F16;
    runtime::Array x = makeRandom(type, {3, 2, 24}, 4);
    runtime::Array y = rotate(kernel, x, {0, 0, 0});
    EXPECT_EQ(std::memcmp(x.data(), y.data(), x.sizeInBytes()), 0) << dtype;
  }
}

TEST_P(PairingTest, InverseUndoesRopeUnderAnAttentionFactor) {
  std::string yarn = ", scaling = #posenc.yarn<factor = 8, "
                     "original_max_position = 4096>";
  Kernel forward(getRope(GetParam(), "f64", 32, false, yarn));
  Kernel inverse(getRope(GetParam(), "f64", 32, true, yarn));
  std::vector<int64_t> positions = hardPositions(11);
  runtime::Array x = makeRandom(POSENC_F64, {11, 3, 32}, 5);
  runtime::Array y = rotate(inverse, rotate(forward, x, positions), positions);
  for (size_t i = 0; i < x.numElements(); ++i)
    EXPECT_NEAR(y.dataAs<double>()[i], x.dataAs<double>()[i], 1e-14);
}

TEST_P(PairingTest, NaNStaysInItsPair) {
  constexpr int64_t dim = 22;
  Kernel kernel(getRope(GetParam(), "f32", dim));
  std::vector<int64_t> positions{123456789};
  runtime::Array x = makeRandom(POSENC_F32, {1, 2, dim}, 6);
  runtime::Array clean = rotate(kernel, x, positions);
  for (int64_t lane = 0; lane < dim; ++lane) {
    float old = x.dataAs<float>()[lane];
    x.dataAs<float>()[lane] = std::numeric_limits<float>::quiet_NaN();
    runtime::Array y = rotate(kernel, x, positions);
    x.dataAs<float>()[lane] = old;
    int64_t partner = GetParam() ? lane ^ 1 : (lane + dim / 2) % dim;
    for (int64_t i = 0; i < 2 * dim; ++i) {
      if (i == lane || i == partner)
        EXPECT_TRUE(std::isnan(y.dataAs<float>()[i])) << lane << " " << i;
      else
        EXPECT_EQ(y.dataAs<float>()[i], clean.dataAs<float>()[i])
            << lane << " " << i;
    }
  }
}

TEST(PropertiesTest, PairingsAreEqualUpToPermutation) {
  constexpr int64_t dim = 80, tokens = 13;
  for (const char *dtype : {"f32", "f64"}) {
    posenc_dtype type = dtype[1] == '3' ? POSENC_F32 : POSENC_F64;
    size_t bytes = posenc_dtype_size(type);
    Kernel half(getRope(false, dtype, dim));
    Kernel interleaved(getRope(true, dtype, dim));
    auto permute = [&](const runtime::Array &from) {
      runtime::Array to = makeRandom(type, from.shape(), 0);
      for (int64_t row = 0; row < tokens; ++row)
        for (int64_t i = 0; i < dim; ++i) {
          int64_t old = i < dim / 2 ? 2 * i : 2 * (i - dim / 2) + 1;
          std::memcpy(to.dataAs<char>() + (row * dim + i) * bytes,
                      from.dataAs<char>() + (row * dim + old) * bytes, bytes);
        }
      return to;
    };
    runtime::Array x = makeRandom(type, {tokens, 1, dim}, 7);
    std::vector<int64_t> positions = hardPositions(tokens);
    runtime::Array a = permute(rotate(interleaved, x, positions));
    runtime::Array b = rotate(half, permute(x), positions);
    EXPECT_EQ(std::memcmp(a.data(), b.data(), a.sizeInBytes()), 0) << dtype;
  }
}

TEST(PropertiesTest, SinusoidShiftsByRotation) {
  // rope(PE(p), -k) = PE(p + k) for rows of (sin, cos) pairs.
  std::string table = "tensor<?x1x48xf64>";
  Kernel kernel(
      "func.func @f(%x: " + table + ", %k: tensor<?xi64>) -> " + table +
      " {\n  %r = posenc.rope interleaved inverse #posenc.frequencies<dim = "
      "48> ins(%x : " +
      table +
      ") positions(%k : tensor<?xi64>) dims = [0] "
      "outs(%x : " +
      table + ")\n  return %r : " + table +
      "\n}\n"
      "func.func @table(%p: tensor<?xi64>) -> tensor<?x48xf64> {\n"
      "  %c0 = arith.constant 0 : index\n"
      "  %n = tensor.dim %p, %c0 : tensor<?xi64>\n"
      "  %e = tensor.empty(%n) : tensor<?x48xf64>\n"
      "  %r = posenc.sinusoidal interleaved #posenc.frequencies<dim = 48> "
      "positions(%p : tensor<?xi64>) outs(%e : tensor<?x48xf64>)\n"
      "  return %r : tensor<?x48xf64>\n}\n");
  std::vector<int64_t> from{7, 0, 1000000, -5}, shift{3, 2147483647, 17, -9},
      to(4);
  for (int i = 0; i < 4; ++i)
    to[i] = from[i] + shift[i];
  auto getTable = [&](const std::vector<int64_t> &positions) {
    runtime::Array p = makePositions(POSENC_I64, {4}, positions);
    return std::move(kernel.call("table", {p.value()}).at(0));
  };
  runtime::Array rows = getTable(from), expected = getTable(to);
  int64_t shape[] = {4, 1, 48};
  posenc_value x = runtime::tensor({rows.data(), POSENC_F64, 3, shape});
  // The rotation by -k*f of the pair (sin, cos) is the inverse rope by k.
  runtime::Array k = makePositions(POSENC_I64, {4}, shift);
  std::vector<runtime::Array> shifted = kernel.call("f", {x, k.value()});
  ASSERT_EQ(shifted.size(), 1u);
  for (int i = 0; i < 4 * 48; ++i)
    EXPECT_NEAR(shifted[0].dataAs<double>()[i], expected.dataAs<double>()[i],
                1e-15);
}

TEST(PropertiesTest, InPlaceMatchesOutOfPlace) {
  for (bool interleaved : {false, true})
    for (const char *dtype : {"f32", "bf16"}) {
      posenc_dtype type = dtype[0] == 'f' ? POSENC_F32 : POSENC_BF16;
      Kernel kernel(getRope(interleaved, dtype, 90));
      runtime::Array x = makeRandom(type, {17, 3, 90}, 8);
      runtime::Array p = makePositions(POSENC_I64, {17}, hardPositions(17));
      std::vector<runtime::Array> expected =
          kernel.call("f", {x.value(), p.value()});
      ASSERT_EQ(expected.size(), 1u);
      std::string error;
      runtime::Function f = kernel.getLibrary().find("f", error);
      ASSERT_TRUE(f.call({x.value(), p.value()},
                         std::vector<posenc_value>{x.value()}, error))
          << error;
      EXPECT_EQ(std::memcmp(x.data(), expected[0].data(), x.sizeInBytes()), 0);
    }
}

TEST(PropertiesTest, BitsDoNotDependOnThreads) {
  Kernel kernel(getRope(false, "f32", 128));
  // Large enough for several tasks.
  runtime::Array x = makeRandom(POSENC_F32, {301, 8, 128}, 9);
  std::vector<int64_t> positions = hardPositions(301);
  runtime::Array alone = rotate(kernel, x, positions);
  static int64_t threads, tasks;
  for (int64_t n : {1, 2, 3, 5}) {
    threads = n;
    tasks = 0;
    posenc_library_set_parallel_for(
        kernel.getLibrary().get(),
        [](void *, void (*body)(void *, int64_t), void *arg, int64_t count) {
          tasks = count;
          std::vector<std::thread> pool;
          for (int64_t first = 0; first < threads; ++first)
            pool.emplace_back([=] {
              for (int64_t i = first; i < count; i += threads)
                body(arg, i);
            });
          for (std::thread &thread : pool)
            thread.join();
        },
        nullptr);
    runtime::Array y = rotate(kernel, x, positions);
    EXPECT_GT(tasks, 1);
    EXPECT_EQ(std::memcmp(y.data(), alone.data(), y.sizeInBytes()), 0) << n;
  }
}

TEST(PropertiesTest, OverlapIsRefusedBeforeAnyWrite) {
  // With two results of one input, the second op would read what the first op
  // wrote in place.
  std::string type = "tensor<?x4x8xf32>";
  Kernel kernel(
      "func.func @f(%x: " + type + ", %p: tensor<?xi64>) -> (" + type + ", " +
      type +
      ") {\n  %a = posenc.rope half #posenc.frequencies<dim = 8> ins(%x "
      ": " +
      type + ") positions(%p : tensor<?xi64>) dims = [0] outs(%x : " + type +
      ")\n  %b = posenc.rope interleaved #posenc.frequencies<dim = 8> "
      "ins(%x : " +
      type +
      ") positions(%p : tensor<?xi64>) dims = [0] outs(%x "
      ": " +
      type + ")\n  return %a, %b : " + type + ", " + type + "\n}\n");
  runtime::Array x = makeRandom(POSENC_F32, {3, 4, 8}, 10);
  runtime::Array copy = makeRandom(POSENC_F32, {3, 4, 8}, 10);
  runtime::Array other = makeRandom(POSENC_F32, {3, 4, 8}, 11);
  runtime::Array p = makePositions(POSENC_I64, {3}, {1, 2, 3});
  std::string error;
  runtime::Function f = kernel.getLibrary().find("f", error);
  EXPECT_FALSE(f.call({x.value(), p.value()},
                      std::vector<posenc_value>{x.value(), other.value()},
                      error));
  EXPECT_EQ(std::memcmp(x.data(), copy.data(), x.sizeInBytes()), 0);
}

} // namespace

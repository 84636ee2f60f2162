//===- MathExhaustiveTest.cpp - math functions of every f32 ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `make test-exhaustive` runs these tests, which takes two hours. The reference
// is the f64 result of this machine's libm, whose error is 2^-28 of a unit in
// the last place of f32. POSENC_EXHAUSTIVE_STEP=N tests every Nth number only.
//
//===----------------------------------------------------------------------===//

#include "MathFunctions.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iostream>

using namespace posenc;
using namespace posenc::test;

namespace {

const Kernel &getKernel() {
  static const Kernel kernel(makeMathModule(POSENC_F32));
  return kernel;
}

float toFloat(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// Returns the error in units in the last place, or 1e30 if only one of the two
/// is a NaN or an infinity, or if a zero has the wrong sign.
double measure(float result, double exact) {
  constexpr double kMismatch = 1e30;
  if (std::isnan(exact) || std::isnan(result))
    return std::isnan(exact) && std::isnan(result) ? 0 : kMismatch;
  if (result == 0 && std::signbit(result) != std::signbit(exact))
    return kMismatch;
  if (std::isinf(exact) || std::isinf(result)) {
    bool overflows = std::isinf(static_cast<float>(exact));
    return overflows && double(result) == double(float(exact)) ? 0 : kMismatch;
  }
  int exponent = exact == 0 ? -126 : std::ilogb(exact);
  return std::fabs(result - exact) *
         std::ldexp(1.0, 23 - std::max(exponent, -126));
}

class MathExhaustive : public testing::TestWithParam<MathFunction> {};

/// The largest error of all functions, in ulp, that docs/numerics.md publishes;
/// it is that of tanh, 2.419.
constexpr double kLargest = 2.42;

TEST_P(MathExhaustive, EveryF32IsWithinTheBound) {
  const MathFunction &function = GetParam();
  const char *text = std::getenv("POSENC_EXHAUSTIVE_STEP");
  uint64_t step = text ? std::max(1ul, std::strtoul(text, nullptr, 10)) : 1;
  constexpr uint64_t kBatch = 1 << 20;
  double worst = 0;
  float worstAt = 0;
  bool isSymmetric = function.symmetry != MathFunction::None;
  uint64_t end = isSymmetric ? uint64_t{1} << 31 : uint64_t{1} << 32;
  std::vector<float> arguments;
  auto run = [&] {
    int64_t count = static_cast<int64_t>(arguments.size());
    runtime::Array x = makeRandom(POSENC_F32, {0}, 1);
    std::string error;
    ASSERT_TRUE(runtime::Array::allocate(POSENC_F32, {count}, x, error));
    std::memcpy(x.data(), arguments.data(), count * sizeof(float));
    auto *source = static_cast<float *>(x.data());
    std::vector<runtime::Array> results =
        getKernel().call(function.name, {x.value()});
    ASSERT_EQ(results.size(), 1u);
    const auto *values = static_cast<const float *>(results[0].data());
    for (int64_t i = 0; i < count; ++i) {
      double error =
          measure(values[i], function.ofLibm(double(arguments[i]), 0));
      if (error > worst) {
        worst = error;
        worstAt = arguments[i];
      }
    }
    if (!isSymmetric)
      return;
    for (int64_t i = 0; i < count; ++i)
      source[i] = -source[i];
    std::vector<runtime::Array> mirrored =
        getKernel().call(function.name, {x.value()});
    ASSERT_EQ(mirrored.size(), 1u);
    const auto *others = static_cast<const float *>(mirrored[0].data());
    bool isOdd = function.symmetry == MathFunction::Odd;
    for (int64_t i = 0; i < count; ++i) {
      float expected = isOdd ? -values[i] : values[i];
      bool isSame = std::isnan(expected)
                        ? std::isnan(others[i])
                        : std::memcmp(&expected, &others[i], 4) == 0;
      ASSERT_TRUE(isSame) << function.name << " of " << source[i];
    }
  };
  for (uint64_t bits = 0; bits < end; bits += step) {
    arguments.push_back(toFloat(static_cast<uint32_t>(bits)));
    if (arguments.size() == kBatch || bits + step >= end) {
      run();
      if (HasFatalFailure())
        return;
      arguments.clear();
    }
  }
  std::printf("%-6s f32: largest error %.3f ulp at %a\n", function.name, worst,
              double(worstAt));
  std::fflush(stdout);
  EXPECT_LE(worst, kLargest) << function.name << " of " << worstAt;
}

std::vector<MathFunction> getUnary() {
  std::vector<MathFunction> unary;
  for (const MathFunction &function : getMathFunctions())
    if (function.arity == 1)
      unary.push_back(function);
  return unary;
}

INSTANTIATE_TEST_SUITE_P(F32, MathExhaustive, testing::ValuesIn(getUnary()),
                         [](const auto &info) { return info.param.name; });

} // namespace

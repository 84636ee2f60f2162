//===- ComparisonTest.cpp - comparison of attention results ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Comparison.h"

#include "llvm/Support/raw_ostream.h"

#include <gtest/gtest.h>
#include <limits>

using namespace mlir::posenc;
using posenc::reference::DType;
using posenc::runtime::Array;
namespace reference = posenc::reference;

namespace {

/// Two rows of an f32 attention result. The second row has no
/// visible key.
class ComparisonTest : public ::testing::Test {
protected:
  ComparisonTest() {
    expected.type = DType::F32;
    expected.array = {{2, 2}, {0.5, 1, 0, 0}, {1, 2, -1, -1}};
    expected.isAttention = true;
    expected.largest = {4, 4, 4, 4};
    std::string error;
    EXPECT_TRUE(Array::allocate(POSENC_F32, {2, 2}, result, error)) << error;
    for (int i = 0; i < 4; ++i)
      element(i) = float(expected.array.values[i]);
  }

  float &element(int number) { return result.dataAs<float>()[number]; }

  /// Returns whether the result is within the limits; captures the output in
  /// `out` and `err`.
  bool compare(const Limits &limits = {}) {
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    bool within = compareResult(0, result, expected, limits);
    llvm::errs().flush();
    out = testing::internal::GetCapturedStdout();
    err = testing::internal::GetCapturedStderr();
    return within;
  }

  ReferenceValue expected;
  Array result;
  std::string out, err;
};

TEST_F(ComparisonTest, Exact) {
  EXPECT_TRUE(compare());
  EXPECT_EQ(out, "result #0: max error 0.00 ulp (abs 0.0e+00) at [0,0] "
                 "rel 0.0e+00\n");
  EXPECT_EQ(err, "");
  // The sign of zero is ignored.
  element(3) = -0.0f;
  EXPECT_TRUE(compare());
}

TEST_F(ComparisonTest, UlpsAreRelativeToTheMagnitude) {
  element(1) += 0x1p-22f;
  EXPECT_TRUE(compare()) << err;
  // The unit at 2 is 2^-22.
  EXPECT_EQ(out, "result #0: max error 1.00 ulp (abs 2.4e-07) at [0,1] "
                 "rel 2.1e-07\n");
}

TEST_F(ComparisonTest, RelativeErrorHasALimit) {
  element(1) += 0x1p-17f;
  EXPECT_FALSE(compare());
  EXPECT_EQ(err, "error: result #0: the relative error is 6.82e-06; the limit "
                 "is 2e-06\n");
  EXPECT_TRUE(compare({std::nullopt, 1e-5})) << err;
  EXPECT_FALSE(compare({std::nullopt, 1e-6}));
}

TEST_F(ComparisonTest, EveryElementHasABound) {
  element(1) += 0x1p-14f;
  EXPECT_FALSE(compare({std::nullopt, 1}));
  // 8 eps * 2 + 64 eps * 4.
  EXPECT_EQ(err, "error: result #0: an element is off by 1.8824 times its "
                 "bound\n");
  EXPECT_TRUE(compare({512, 1})) << err;
  EXPECT_FALSE(compare({255, 1}));
  EXPECT_EQ(err, "error: result #0: off by 256 ulp; the limit is 255\n");
}

TEST_F(ComparisonTest, Mismatches) {
  element(2) = 0x1p-100f;
  EXPECT_FALSE(compare({1e9, 1e9}));
  EXPECT_EQ(out, "result #0: max error inf ulp (abs inf) at [1,0] "
                 "rel 0.0e+00\n");
  EXPECT_EQ(err, "error: result #0: a row without a visible key is not 0\n");
  element(2) = 0;
  element(0) = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(compare());
  EXPECT_EQ(err, "error: result #0: a NaN in place of a number\n");
  expected.array.shape = {4};
  EXPECT_FALSE(compare());
  EXPECT_EQ(err, "error: result #0: the shapes differ\n");
}

TEST_F(ComparisonTest, OtherResultsHaveNoRelativeLimit) {
  expected.isAttention = false;
  expected.limitUlp = 4;
  element(1) += 0x1p-22f;
  EXPECT_TRUE(compare()) << err;
  EXPECT_EQ(out, "result #0: max error 1.00 ulp (abs 2.4e-07) at [0,1]\n");
}

} // namespace

//===- LimitTest.cpp - error bounds of results ----------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestSupport.h"

using namespace mlir;
using namespace mlir::posenc;

namespace {

class LimitTest : public InterpreterTest {
protected:
  /// Returns the cosine table of `type` for one position.
  ReferenceValue table(StringRef type, StringRef scaling, int64_t position) {
    std::string tensor = ("tensor<1x2x" + type + ">").str();
    auto results =
        run("func.func @f(%p: tensor<1xi64>) -> " + tensor +
                " { %e = tensor.empty() : " + tensor +
                " %c, %s = posenc.sincos #posenc.frequencies<dim = 4" +
                scaling.str() +
                "> positions(%p : tensor<1xi64>) outs(%e, %e : " + tensor +
                ", " + tensor + ") return %c : " + tensor + " }",
            {tensorOf(DType::I64, {1}, {static_cast<long double>(position)})});
    return results.empty() ? ReferenceValue() : results[0];
  }

  /// Returns the results of two successive rotations.
  std::vector<ReferenceValue> chain(StringRef type, DType dtype) {
    std::string tensor = ("tensor<1x4x" + type + ">").str();
    std::string rest =
        " positions(%p : tensor<1xi64>) dims = [0] outs(%x : " + tensor + ")";
    return run("func.func @f(%x: " + tensor + ", %p: tensor<1xi64>) -> (" +
                   tensor + ", " + tensor +
                   ") { %0 = posenc.rope half #posenc.frequencies<dim = 4>"
                   " ins(%x : " +
                   tensor + ")" + rest +
                   " %1 = posenc.rope half #posenc.frequencies<dim = 4>"
                   " ins(%0 : " +
                   tensor + ")" + rest + " return %0, %1 : " + tensor + ", " +
                   tensor + " }",
               {tensorOf(dtype, {1, 4}, {1, 2, 3, 4}),
                tensorOf(DType::I64, {1}, {1})});
  }
};

TEST_F(LimitTest, Tables) {
  EXPECT_EQ(table("f32", "", 1).limitUlp, 1);
  EXPECT_EQ(table("f32", "", 1).absoluteSlack, 0x1p-61);
  EXPECT_EQ(table("f64", "", 1).limitUlp, 2);
  EXPECT_EQ(table("f64", "", 1).absoluteSlack, 0x1p-60);
  EXPECT_DOUBLE_EQ(table("bf16", "", 1).limitUlp, 0.6);
  StringRef yarn = ", scaling = #posenc.yarn<factor = 4.0, "
                   "original_max_position = 4096.0>";
  EXPECT_EQ(table("f32", yarn, 1).limitUlp, 2);
  EXPECT_EQ(table("f32", yarn, 1).absoluteSlack, 0x1p-61);
}

TEST_F(LimitTest, LimitsGrowWithFarPositions) {
  EXPECT_EQ(table("f64", "", int64_t(1) << 31).absoluteSlack, 0x1p-60);
  EXPECT_EQ(table("f64", "", -(int64_t(1) << 31)).absoluteSlack, 0x1p-60);
  EXPECT_EQ(table("f64", "", int64_t(1) << 60).absoluteSlack,
            0x1p-60 + 0x1p-34);
  EXPECT_EQ(table("f64", "", INT64_MIN).absoluteSlack, 0x1p-60 + 0x1p-31);
}

TEST_F(LimitTest, RotationsInheritTheLimitOfTheirOperand) {
  auto f32 = chain("f32", DType::F32);
  ASSERT_EQ(f32.size(), 2u);
  EXPECT_EQ(f32[0].limitUlp, 4);
  EXPECT_EQ(f32[1].limitUlp, 4 + 3 * 4.5);
  auto bf16 = chain("bf16", DType::BF16);
  ASSERT_EQ(bf16.size(), 2u);
  EXPECT_DOUBLE_EQ(bf16[0].limitUlp, 0.51);
  EXPECT_DOUBLE_EQ(bf16[1].limitUlp, 0.51 + 3 * 1.01);
  EXPECT_EQ(bf16[1].absoluteSlack, 0);
}

} // namespace

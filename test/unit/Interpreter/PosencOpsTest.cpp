//===- PosencOpsTest.cpp - tables and rotations against their formulas ----===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestSupport.h"

#include <cmath>

using namespace mlir;
using namespace mlir::posenc;

namespace {

void expectNear(const std::vector<long double> &values,
                const std::vector<long double> &expected) {
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(double(values[i]), double(expected[i]), 1e-15) << i;
}

TEST_F(InterpreterTest, SincosOfTensorAndScalar) {
  auto results = run(R"(
    func.func @f(%p: tensor<2xi32>) -> (tensor<2x2xf32>, tensor<2x2xf32>) {
      %e = tensor.empty() : tensor<2x2xf32>
      %c, %s = posenc.sincos #posenc.frequencies<dim = 4>
        positions(%p : tensor<2xi32>)
        outs(%e, %e : tensor<2x2xf32>, tensor<2x2xf32>)
      return %c, %s : tensor<2x2xf32>, tensor<2x2xf32>
    })",
                     {tensorOf(DType::I32, {2}, {3, -1})});
  ASSERT_EQ(results.size(), 2u);
  expectNear(results[0].array.values, {std::cos(3.0L), std::cos(0.03L),
                                       std::cos(1.0L), std::cos(0.01L)});
  expectNear(results[1].array.values, {std::sin(3.0L), std::sin(0.03L),
                                       -std::sin(1.0L), -std::sin(0.01L)});
  // A scalar position is the first of consecutive positions.
  expectNear(runOne(R"(
    func.func @f(%p: i64) -> tensor<3x1xf64> {
      %e = tensor.empty() : tensor<3x1xf64>
      %c, %s = posenc.sincos #posenc.frequencies<dim = 2>
        positions(%p : i64) outs(%e, %e : tensor<3x1xf64>, tensor<3x1xf64>)
      return %s : tensor<3x1xf64>
    })",
                    {scalarOf(-1)}),
             {std::sin(-1.0L), 0, std::sin(1.0L)});
}

TEST_F(InterpreterTest, SincosWithAxes) {
  expectNear(runOne(R"(
    func.func @f(%p: tensor<2x1xi64>) -> tensor<1x3xf64> {
      %e = tensor.empty() : tensor<1x3xf64>
      %c, %s = posenc.sincos #posenc.frequencies<dim = 6, base = 1.0,
        scaling = #posenc.linear<factor = 2.0>>
        axes #posenc.axes<contiguous, [1, 2]>
        positions(%p : tensor<2x1xi64>)
        outs(%e, %e : tensor<1x3xf64>, tensor<1x3xf64>)
      return %s : tensor<1x3xf64>
    })",
                    {tensorOf(DType::I64, {2, 1}, {1, 3})}),
             {std::sin(0.5L), std::sin(1.5L), std::sin(1.5L)});
}

TEST_F(InterpreterTest, SinusoidalOfSeveralDimensions) {
  const char *text = R"(
    func.func @f(%p: tensor<1x2xindex>) -> tensor<1x2x2xf64> {
      %e = tensor.empty() : tensor<1x2x2xf64>
      %t = posenc.sinusoidal cos_sin #posenc.frequencies<dim = 2>
        positions(%p : tensor<1x2xindex>) outs(%e : tensor<1x2x2xf64>)
      return %t : tensor<1x2x2xf64>
    })";
  expectNear(runOne(text, {tensorOf(DType::I64, {1, 2}, {2, 5})}),
             {std::cos(2.0L), std::sin(2.0L), std::cos(5.0L), std::sin(5.0L)});
  EXPECT_EQ(shape, (Shape{1, 2, 2}));
}

TEST_F(InterpreterTest, RopeOfSeveralTensors) {
  auto results = run(R"(
    func.func @f(%q: tensor<2x?x3xf64>, %k: tensor<1x?x3xf64>, %p: tensor<?xi64>)
        -> (tensor<2x?x3xf64>, tensor<1x?x3xf64>) {
      %r:2 = posenc.rope half #posenc.frequencies<dim = 2>
        ins(%q, %k : tensor<2x?x3xf64>, tensor<1x?x3xf64>)
        positions(%p : tensor<?xi64>) dims = [1] offset = 1
        outs(%q, %k : tensor<2x?x3xf64>, tensor<1x?x3xf64>)
      return %r#0, %r#1 : tensor<2x?x3xf64>, tensor<1x?x3xf64>
    })",
                     {tensorOf(DType::F64, {2, 1, 3}, {5, 1, 0, 6, 0, 1}),
                      tensorOf(DType::F64, {1, 1, 3}, {7, 1, 1}),
                      tensorOf(DType::I64, {1}, {4})});
  ASSERT_EQ(results.size(), 2u);
  long double c = std::cos(4.0L), s = std::sin(4.0L);
  expectNear(results[0].array.values, {5, c, s, 6, -s, c});
  expectNear(results[1].array.values, {7, c - s, c + s});
  // Copied lanes have the magnitude -1.
  EXPECT_EQ(results[0].array.magnitude[0], -1);
  EXPECT_NEAR(double(results[0].array.magnitude[1]), 1, 1e-15);
  EXPECT_NEAR(double(results[1].array.magnitude[2]), std::sqrt(2.0), 1e-15);
}

// Two rotations of different channels. The lanes that the second one copies
// were rotated by the first, so they are not exact.
TEST_F(InterpreterTest, CopiedLanesKeepTheirMagnitude) {
  auto results = run(R"(
    func.func @f(%x: tensor<1x5xf32>, %p: tensor<1xi64>) -> tensor<1x5xf32> {
      %a = posenc.rope half #posenc.frequencies<dim = 2>
        ins(%x : tensor<1x5xf32>) positions(%p : tensor<1xi64>) dims = [0]
        outs(%x : tensor<1x5xf32>)
      %r = posenc.rope half #posenc.frequencies<dim = 2>
        ins(%a : tensor<1x5xf32>) positions(%p : tensor<1xi64>) dims = [0]
        offset = 2 outs(%a : tensor<1x5xf32>)
      return %r : tensor<1x5xf32>
    })",
                     {tensorOf(DType::F32, {1, 5}, {1, 0, 0, 1, 7}),
                      tensorOf(DType::I64, {1}, {4})});
  ASSERT_EQ(results.size(), 1u);
  long double c = std::cos(4.0L), s = std::sin(4.0L);
  expectNear(results[0].array.values, {c, s, -s, c, 7});
  // Only the lane that neither operation rotates is exact.
  EXPECT_NEAR(double(results[0].array.magnitude[0]), 1, 1e-15);
  EXPECT_NEAR(double(results[0].array.magnitude[1]), 1, 1e-15);
  EXPECT_NEAR(double(results[0].array.magnitude[3]), 1, 1e-15);
  EXPECT_EQ(results[0].array.magnitude[4], -1);
}

TEST_F(InterpreterTest, RotateByGivenTables) {
  const char *text = R"(
    func.func @f(%x: tensor<1x4xf32>, %c: tensor<1x2xf32>, %s: tensor<1x2xf32>)
        -> tensor<1x4xf32> {
      %r = posenc.rotate interleaved inverse ins(%x : tensor<1x4xf32>)
        tables(%c, %s : tensor<1x2xf32>) dims = [0] outs(%x : tensor<1x4xf32>)
      return %r : tensor<1x4xf32>
    })";
  EXPECT_EQ(runOne(text, {tensorOf(DType::F32, {1, 4}, {1, 2, 3, 4}),
                          tensorOf(DType::F32, {1, 2}, {2, 0}),
                          tensorOf(DType::F32, {1, 2}, {0, 1})}),
            (Elements{2, 4, 4, -3}));
}

TEST_F(InterpreterTest, TablesAreRoundedBeforeTheyAreRead) {
  const char *text = R"(
    func.func @f(%x: tensor<1x2xf64>, %p: tensor<1xi64>) -> tensor<1x2xf64> {
      %e = tensor.empty() : tensor<1x1xbf16>
      %c, %s = posenc.sincos #posenc.frequencies<dim = 2>
        positions(%p : tensor<1xi64>)
        outs(%e, %e : tensor<1x1xbf16>, tensor<1x1xbf16>)
      %r = posenc.rotate half ins(%x : tensor<1x2xf64>)
        tables(%c, %s : tensor<1x1xbf16>) dims = [0] outs(%x : tensor<1x2xf64>)
      return %r : tensor<1x2xf64>
    })";
  auto rounded = [](long double value) {
    return ::posenc::reference::roundTo(DType::BF16, value);
  };
  EXPECT_EQ(runOne(text, {tensorOf(DType::F64, {1, 2}, {1, 0}),
                          tensorOf(DType::I64, {1}, {1})}),
            (Elements{rounded(std::cos(1.0L)), rounded(std::sin(1.0L))}));
}

} // namespace

//===- TensorOpsTest.cpp - shapes, slices and integers --------------------===//
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

TEST_F(InterpreterTest, ArgumentsArePassedOnBitByBit) {
  auto results = run("func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {"
                     "  return %x : tensor<2xf32> }",
                     {tensorOf(DType::F32, {2}, {1, 2})});
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].array.values, (Elements{1, 2}));
  EXPECT_EQ(results[0].array.magnitude, (Elements{-1, -1}));
  EXPECT_EQ(results[0].limitUlp, 0);
}

TEST_F(InterpreterTest, Dim) {
  EXPECT_EQ(runOne("func.func @f(%x: tensor<?x?xf32>) -> index {"
                   "  %c1 = arith.constant 1 : index"
                   "  %d = tensor.dim %x, %c1 : tensor<?x?xf32>"
                   "  return %d : index }",
                   {tensorOf(DType::F32, {1, 2}, {0, 0})}),
            (Elements{2}));
  EXPECT_TRUE(shape.empty());
}

TEST_F(InterpreterTest, CollapseAndExpandKeepTheElements) {
  const char *text = R"(
    func.func @f(%x: tensor<?x2x3xf32>, %n: index) -> tensor<3x?x2xf32> {
      %c = tensor.collapse_shape %x [[0, 1, 2]]
        : tensor<?x2x3xf32> into tensor<?xf32>
      %e = tensor.expand_shape %c [[0, 1, 2]] output_shape [3, %n, 2]
        : tensor<?xf32> into tensor<3x?x2xf32>
      return %e : tensor<3x?x2xf32>
    })";
  auto x = tensorOf(DType::F32, {2, 2, 3}, {});
  for (int i = 0; i < 12; ++i)
    x.array.values.push_back(i);
  EXPECT_EQ(runOne(text, {x, scalarOf(2)}), x.array.values);
  EXPECT_EQ(shape, (Shape{3, 2, 2}));
  run(text, {x, scalarOf(3)});
  EXPECT_EQ(message, "changes the number of elements");
  run(text, {x, scalarOf(-2)});
  EXPECT_EQ(message, "expected a non-negative size, got -2");
}

TEST_F(InterpreterTest, CastChecksTheSizes) {
  const char *text = R"(
    func.func @f(%x: tensor<?xf32>) -> tensor<3xf32> {
      %c = tensor.cast %x : tensor<?xf32> to tensor<3xf32>
      return %c : tensor<3xf32>
    })";
  EXPECT_EQ(runOne(text, {tensorOf(DType::F32, {3}, {1, 2, 3})}),
            (Elements{1, 2, 3}));
  run(text, {tensorOf(DType::F32, {2}, {1, 2})});
  EXPECT_EQ(message, "sizes 2 do not match 'tensor<3xf32>'");
}

TEST_F(InterpreterTest, ExtractSlice) {
  const char *text = R"(
    func.func @f(%x: tensor<3x4xf32>, %o: index, %s: index) -> tensor<2xf32> {
      %e = tensor.extract_slice %x[%o, 1] [1, 2] [1, %s]
        : tensor<3x4xf32> to tensor<2xf32>
      return %e : tensor<2xf32>
    })";
  auto x = tensorOf(DType::F32, {3, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  EXPECT_EQ(runOne(text, {x, scalarOf(2), scalarOf(2)}), (Elements{9, 11}));
  EXPECT_EQ(shape, Shape{2});
  run(text, {x, scalarOf(3), scalarOf(1)});
  EXPECT_EQ(message, "the slice exceeds the tensor in dimension 0");
  run(text, {x, scalarOf(-1), scalarOf(1)});
  EXPECT_EQ(message, "the slice exceeds the tensor in dimension 0");
  run(text, {x, scalarOf(0), scalarOf(3)});
  EXPECT_EQ(message, "the slice exceeds the tensor in dimension 1");
  run(text, {x, scalarOf(0), scalarOf(INT64_MAX)});
  EXPECT_EQ(message, "the slice exceeds the tensor in dimension 1");
}

TEST_F(InterpreterTest, InsertSlice) {
  const char *text = R"(
    func.func @f(%x: tensor<2xf32>, %y: tensor<2x3xf32>) -> tensor<2x3xf32> {
      %e = tensor.insert_slice %x into %y[0, 1] [2, 1] [1, 1]
        : tensor<2xf32> into tensor<2x3xf32>
      return %e : tensor<2x3xf32>
    })";
  EXPECT_EQ(runOne(text, {tensorOf(DType::F32, {2}, {8, 9}),
                          tensorOf(DType::F32, {2, 3}, {0, 1, 2, 3, 4, 5})}),
            (Elements{0, 8, 2, 3, 9, 5}));
}

TEST_F(InterpreterTest, UnwrittenElementsAreNaN) {
  auto values = runOne(R"(
    func.func @f(%x: tensor<1xf32>) -> tensor<2xf32> {
      %y = tensor.empty() : tensor<2xf32>
      %e = tensor.insert_slice %x into %y[0] [1] [1]
        : tensor<1xf32> into tensor<2xf32>
      return %e : tensor<2xf32>
    })",
                       {tensorOf(DType::F32, {1}, {7})});
  ASSERT_EQ(values.size(), 2u);
  EXPECT_EQ(values[0], 7);
  EXPECT_TRUE(std::isnan(values[1]));
}

TEST_F(InterpreterTest, FillAndConstants) {
  EXPECT_EQ(runOne(R"(
    func.func @f(%n: index) -> tensor<?x2xbf16> {
      %c = arith.constant -1.5 : bf16
      %e = tensor.empty(%n) : tensor<?x2xbf16>
      %r = linalg.fill ins(%c : bf16) outs(%e : tensor<?x2xbf16>)
        -> tensor<?x2xbf16>
      return %r : tensor<?x2xbf16>
    })",
                   {scalarOf(2)}),
            (Elements{-1.5, -1.5, -1.5, -1.5}));
  EXPECT_EQ(shape, (Shape{2, 2}));
  EXPECT_EQ(runOne("func.func @f() -> tensor<3xf16> {"
                   "  %c = arith.constant dense<[0.5, -2.0, 65504.0]>"
                   "    : tensor<3xf16>"
                   "  return %c : tensor<3xf16> }",
                   {}),
            (Elements{0.5, -2, 65504}));
  EXPECT_EQ(runOne("func.func @f() -> tensor<2xi64> {"
                   "  %c = arith.constant dense<-9223372036854775808>"
                   "    : tensor<2xi64>"
                   "  return %c : tensor<2xi64> }",
                   {}),
            (Elements{-0x1p63L, -0x1p63L}));
}

TEST_F(InterpreterTest, IntegersWrapAround) {
  EXPECT_EQ(runOne(R"(
    func.func @f(%a: tensor<2xi64>, %b: tensor<2xi64>) -> tensor<2xi64> {
      %0 = arith.addi %a, %b : tensor<2xi64>
      return %0 : tensor<2xi64>
    })",
                   {tensorOf(DType::I64, {2}, {0x1p63L - 1, 3}),
                    tensorOf(DType::I64, {2}, {1, -5})}),
            (Elements{-0x1p63L, -2}));
  EXPECT_EQ(runOne(R"(
    func.func @f(%a: tensor<2xi32>, %b: i32) -> tensor<2xi64> {
      %0 = arith.muli %a, %a : tensor<2xi32>
      %1 = arith.extsi %0 : tensor<2xi32> to tensor<2xi64>
      %2 = arith.subi %1, %1 : tensor<2xi64>
      %3 = arith.subi %2, %1 : tensor<2xi64>
      return %3 : tensor<2xi64>
    })",
                   {tensorOf(DType::I32, {2}, {65536, 46341}),
                    scalarOf(0, DType::I32)}),
            (Elements{0, 2147479015}));
  EXPECT_EQ(runOne(R"(
    func.func @f(%a: tensor<1xindex>) -> tensor<1xi32> {
      %0 = arith.index_cast %a : tensor<1xindex> to tensor<1xi32>
      return %0 : tensor<1xi32>
    })",
                   {tensorOf(DType::I64, {1}, {4294967295.0L})}),
            (Elements{-1}));
}

} // namespace

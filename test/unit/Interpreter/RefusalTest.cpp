//===- RefusalTest.cpp - rejected inputs ----------------------------------===//
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

TEST_F(InterpreterTest, RejectsUnsupportedOperations) {
  run("func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {"
      "  %0 = math.sin %x : tensor<2xf32>"
      "  return %0 : tensor<2xf32> }",
      {tensorOf(DType::F32, {2}, {1, 2})});
  EXPECT_EQ(message, "the reference does not evaluate 'math.sin'");
}

TEST_F(InterpreterTest, RejectsMismatchedArguments) {
  const char *text = "func.func @f(%x: tensor<2x?xf32>) { return }";
  run(text, {});
  EXPECT_EQ(message, "expected 1 arguments, got 0");
  run(text, {tensorOf(DType::F64, {2, 1}, {1, 2})});
  EXPECT_EQ(message, "expected argument #0 of 'tensor<2x?xf32>'");
  run(text, {tensorOf(DType::F32, {3, 1}, {1, 2, 3})});
  EXPECT_EQ(message, "sizes 3x1 do not match 'tensor<2x?xf32>'");
  run(text, {tensorOf(DType::F32, {2}, {1, 2})});
  EXPECT_EQ(message, "sizes 2 do not match 'tensor<2x?xf32>'");
}

TEST_F(InterpreterTest, RejectsUnsupportedFunctions) {
  run("func.func @f(%x: memref<2xf32>) { return }", {ReferenceValue()});
  EXPECT_EQ(message, "the reference supports only tensors and numbers, got "
                     "'memref<2xf32>'");
  run("func.func @f(%x: tensor<2xi16>) { return }", {ReferenceValue()});
  EXPECT_EQ(message, "the reference supports only tensors and numbers, got "
                     "'tensor<2xi16>'");
  run("func.func private @f(%x: tensor<2xf32>)", {ReferenceValue()});
  EXPECT_EQ(message,
            "the reference supports only functions with a single block");
}

TEST_F(InterpreterTest, RejectsUninitializedTensors) {
  run("func.func @f() -> tensor<2xf32> {"
      "  %0 = tensor.empty() : tensor<2xf32>"
      "  return %0 : tensor<2xf32> }",
      {});
  EXPECT_EQ(message, "returns an uninitialized tensor");
  run(R"(
    func.func @f(%p: tensor<2xi64>) -> tensor<2x2xf32> {
      %e = tensor.empty() : tensor<2x2xf32>
      %r = posenc.rope half #posenc.frequencies<dim = 2>
        ins(%e : tensor<2x2xf32>) positions(%p : tensor<2xi64>) dims = [0]
        outs(%e : tensor<2x2xf32>)
      return %r : tensor<2x2xf32>
    })",
      {tensorOf(DType::I64, {2}, {1, 2})});
  EXPECT_EQ(message, "rejected by the reference: the operand's values do not "
                     "fill its shape");
}

TEST_F(InterpreterTest, RejectsMismatchedSizes) {
  const char *text = R"(
    func.func @f(%x: tensor<?x2xf32>, %p: tensor<?xi64>, %n: index)
        -> tensor<?x2xf32> {
      %e = tensor.empty(%n) : tensor<?x2xf32>
      %r = posenc.rope half #posenc.frequencies<dim = 2>
        ins(%x : tensor<?x2xf32>) positions(%p : tensor<?xi64>) dims = [0]
        outs(%e : tensor<?x2xf32>)
      return %r : tensor<?x2xf32>
    })";
  auto x = tensorOf(DType::F32, {1, 2}, {1, 2});
  run(text, {x, tensorOf(DType::I64, {2}, {1, 2}), scalarOf(1)});
  EXPECT_EQ(message, "the shape of the positions does not match 'dims'");
  run(text, {x, tensorOf(DType::I64, {1}, {1}), scalarOf(2)});
  EXPECT_EQ(message, "expected a destination with the shape of the result");
}

TEST_F(InterpreterTest, RejectsTensorsBeyondTheMemory) {
  const char *text = R"(
    func.func @f(%n: index) -> tensor<?x65536xf32> {
      %c = arith.constant 1.0 : f32
      %e = tensor.empty(%n) : tensor<?x65536xf32>
      %r = linalg.fill ins(%c : f32) outs(%e : tensor<?x65536xf32>)
        -> tensor<?x65536xf32>
      return %r : tensor<?x65536xf32>
    })";
  for (int64_t size : {int64_t(32769), int64_t(1) << 48, INT64_MAX}) {
    run(text, {scalarOf(size)});
    EXPECT_EQ(message, "the reference supports at most 2^31 elements");
  }
  run(text, {scalarOf(-1)});
  EXPECT_EQ(message, "expected a non-negative size, got -1");
}

} // namespace

//===- StructuredOpsTest.cpp - reference evaluation of linalg operations --===//
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
namespace reference = ::posenc::reference;

namespace {

/// Returns the allowed error of an element.
double getBound(const ReferenceValue &value, size_t index) {
  long double magnitude = value.array.magnitude[index];
  if (magnitude == reference::kUnknownMagnitude)
    return HUGE_VAL;
  if (magnitude < 0)
    return 0;
  return double(value.limitUlp * reference::ulp(value.type, magnitude));
}

/// Returns a function that applies the body to each element of a tensor.
std::string mapTo(std::string type, std::string body) {
  return "func.func @f(%x: tensor<?x" + type + ">) -> tensor<?x" + type +
         "> { %r = linalg.map ins(%x : tensor<?x" + type +
         ">) outs(%x : tensor<?x" + type + ">) (%a: " + type + ", %o: " + type +
         ") {" + body + "linalg.yield %y : " + type +
         " } return %r : tensor<?x" + type + "> }";
}

const char *const product = R"(
  func.func @f(%a: tensor<?x?xTYPE>, %b: tensor<?x?xTYPE>, %c: tensor<?x?xTYPE>)
      -> tensor<?x?xTYPE> {
    %r = linalg.matmul ins(%a, %b : tensor<?x?xTYPE>, tensor<?x?xTYPE>)
      outs(%c : tensor<?x?xTYPE>) -> tensor<?x?xTYPE>
    return %r : tensor<?x?xTYPE>
  })";

std::string productOf(StringRef type) {
  std::string text = product;
  for (size_t at; (at = text.find("TYPE")) != std::string::npos;)
    text.replace(at, 4, type.str());
  return text;
}

TEST_F(InterpreterTest, SumsAreBoundedByTheirTerms) {
  // Terms cancel, so the error is not proportional to the sum.
  auto results =
      run(productOf("f32"), {tensorOf(DType::F32, {1, 4}, {100, -100, 1, 0.1L}),
                             tensorOf(DType::F32, {4, 1}, {100, 100, 1, 1}),
                             tensorOf(DType::F32, {1, 1}, {3})});
  ASSERT_EQ(results.size(), 1u);
  EXPECT_NEAR(double(results[0].array.values[0]), 4.1, 1e-6);
  double bound = (8 + 2 * std::sqrt(4.0)) * 0x1p-23 * (20000 + 4.1);
  EXPECT_GE(getBound(results[0], 0), bound);
  EXPECT_LE(getBound(results[0], 0), 4 * bound);
}

TEST_F(InterpreterTest, ShortSumsOfProductsAreRoundedOnce) {
  for (auto [name, type] :
       {std::pair("f16", DType::F16), std::pair("bf16", DType::BF16)}) {
    auto results = run(productOf(name), {tensorOf(type, {1, 3}, {1, 1, 1}),
                                         tensorOf(type, {3, 1}, {1, 1, 1}),
                                         tensorOf(type, {1, 1}, {0})});
    ASSERT_EQ(results.size(), 1u);
    double unit = double(reference::ulp(type, 3));
    EXPECT_EQ(results[0].array.values[0], 3);
    EXPECT_GE(getBound(results[0], 0), 0.5 * unit);
    EXPECT_LE(getBound(results[0], 0), 0.56 * unit);
  }
}

TEST_F(InterpreterTest, SumsWithoutTermsAreTheirInitialValue) {
  auto results = run(productOf("f32"), {tensorOf(DType::F32, {1, 0}, {}),
                                        tensorOf(DType::F32, {0, 1}, {}),
                                        tensorOf(DType::F32, {1, 1}, {7})});
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].array.values[0], 7);
  EXPECT_LT(getBound(results[0], 0), 1e-40);
}

TEST_F(InterpreterTest, InfinitiesAndNaNsAreKept) {
  auto results =
      run(productOf("f32"), {tensorOf(DType::F32, {3, 1}, {INFINITY, NAN, 0}),
                             tensorOf(DType::F32, {1, 1}, {INFINITY}),
                             tensorOf(DType::F32, {3, 1}, {0, 0, 0})});
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].array.values[0], INFINITY);
  EXPECT_TRUE(std::isnan(results[0].array.values[1]));
  EXPECT_TRUE(std::isnan(results[0].array.values[2]));
  for (size_t i = 0; i < 3; ++i)
    EXPECT_LT(getBound(results[0], i), 1e-40);
}

TEST_F(InterpreterTest, OperationsAreRoundedInTheirType) {
  // Representable results are exact, and results that overflow are infinite.
  auto results = run(mapTo("f32", "%y = arith.mulf %a, %a : f32 "),
                     {tensorOf(DType::F32, {3}, {3, 1 + 0x1p-23L, 0x1p100L})});
  ASSERT_EQ(results.size(), 1u);
  EXPECT_LT(getBound(results[0], 0), 1e-40);
  EXPECT_GE(getBound(results[0], 1), 0x1p-24);
  EXPECT_LE(getBound(results[0], 1), 0x1p-22);
  EXPECT_EQ(results[0].array.values[2], INFINITY);
}

TEST_F(InterpreterTest, ErrorsOfOperandsPropagate) {
  // The difference is exact, but inherits the error of exp.
  auto results = run(mapTo("f32", "%c = arith.constant 1.0 : f32 "
                                  "%s = math.exp %a : f32 "
                                  "%y = arith.subf %s, %c : f32 "),
                     {tensorOf(DType::F32, {1}, {0x1p-10L})});
  ASSERT_EQ(results.size(), 1u);
  EXPECT_GE(getBound(results[0], 0), 4 * 0x1p-23);
  EXPECT_LE(getBound(results[0], 0), 16 * 0x1p-23);
}

TEST_F(InterpreterTest, UncertainComparisonsAllowForBothSides) {
  auto results = run(mapTo("f32", "%z = arith.constant 1.0 : f32 "
                                  "%w = arith.constant 5.0 : f32 "
                                  "%s = math.exp %a : f32 "
                                  "%c = arith.cmpf ogt, %s, %z : f32 "
                                  "%y = arith.select %c, %w, %z : f32 "),
                     {tensorOf(DType::F32, {3}, {0x1p-40L, 1, -1})});
  ASSERT_EQ(results.size(), 1u);
  EXPECT_GE(getBound(results[0], 0), 4);
  EXPECT_LE(getBound(results[0], 0), 16);
  EXPECT_LT(getBound(results[0], 1), 1e-40);
  EXPECT_LT(getBound(results[0], 2), 1e-40);
}

TEST_F(InterpreterTest, LargeErrorsHaveABound) {
  // A sum in f16 is rounded at every step, so the error exceeds any unit of the
  // type.
  auto results = run(R"(
    func.func @f(%x: tensor<?xf16>, %o: tensor<f16>) -> tensor<f16> {
      %s = linalg.reduce {arith.addf} ins(%x : tensor<?xf16>)
        outs(%o : tensor<f16>) dimensions = [0]
      return %s : tensor<f16>
    })",
                     {tensorOf(DType::F16, {4000}, Elements(4000, 1)),
                      tensorOf(DType::F16, {}, {0})});
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].array.values[0], 4000);
  EXPECT_GE(getBound(results[0], 0), 2000 * 0x1p-10 * 4000);
  EXPECT_LE(getBound(results[0], 0), 8000 * 0x1p-10 * 4000);
}

TEST_F(InterpreterTest, RejectsMismatchedShapes) {
  run(productOf("f32"), {tensorOf(DType::F32, {1, 2}, {1, 2}),
                         tensorOf(DType::F32, {3, 1}, {1, 2, 3}),
                         tensorOf(DType::F32, {1, 1}, {0})});
  EXPECT_EQ(message,
            "operand #1 has size 3 in dimension 0, but earlier operands "
            "have 2");
  const char *text = R"(
    func.func @f(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
      %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i + 1)>,
                                            affine_map<(i) -> (i)>],
                           iterator_types = ["parallel"]}
        ins(%x : tensor<?xf32>) outs(%y : tensor<?xf32>) {
      ^bb0(%a: f32, %b: f32):
        linalg.yield %a : f32
      } -> tensor<?xf32>
      return %r : tensor<?xf32>
    })";
  auto x = tensorOf(DType::F32, {3}, {1, 2, 3});
  EXPECT_EQ(runOne(text, {x, tensorOf(DType::F32, {2}, {0, 0})}),
            (Elements{2, 3}));
  run(text, {x, x});
  EXPECT_EQ(message, "operand #0 is read or written outside of its shape");
}

TEST_F(InterpreterTest, RejectsResultsWithoutErrorBound) {
  run(mapTo("f32", "%i = arith.fptosi %a : f32 to i32 "
                   "%y = arith.sitofp %i : i32 to f32 "),
      {tensorOf(DType::F32, {1}, {1e30L})});
  EXPECT_EQ(message,
            "the reference has no error bound for any element of the result");
}

} // namespace

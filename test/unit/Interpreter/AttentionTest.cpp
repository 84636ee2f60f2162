//===- AttentionTest.cpp - reference evaluation of attention --------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestSupport.h"

#include "posenc/Reference/Attention.h"

#include <cmath>

using namespace mlir;
using namespace mlir::posenc;
namespace reference = ::posenc::reference;

namespace {

class AttentionOpTest : public InterpreterTest {
protected:
  /// Returns a tensor of distinct numbers other than 0.
  static ReferenceValue numbers(std::vector<int64_t> shape, int first) {
    ReferenceValue value = tensorOf(DType::F32, std::move(shape), {});
    for (int64_t i = 0; i < reference::numElements(value.array.shape); ++i)
      value.array.values.push_back(float(std::sin(first + double(i))));
    return value;
  }

  /// Runs the operation on q, k and v of the shapes 2x2x4x4, 2x3x2x4 and
  /// 2x3x2x4 (batch x tokens x heads x dim), and expects the result of the
  /// oracle for `spec`.
  void expectLike(const reference::AttentionSpec &spec, StringRef attributes,
                  StringRef operands, StringRef arguments,
                  std::vector<ReferenceValue> others) {
    ReferenceValue q = numbers({2, 2, 4, 4}, 1), k = numbers({2, 3, 2, 4}, 40),
                   v = numbers({2, 3, 2, 4}, 90);
    std::string text =
        ("func.func @f(%q: tensor<2x2x4x4xf32>, %k: tensor<2x3x2x4xf32>, "
         "%v: tensor<2x3x2x4xf32>" +
         arguments +
         ") -> (tensor<2x2x4x4xf32>, tensor<2x2x4xf32>) {"
         " %e = tensor.empty() : tensor<2x2x4xf32>"
         " %r:2 = posenc.attention " +
         attributes +
         " ins(%q, %k, %v : tensor<2x2x4x4xf32>, tensor<2x3x2x4xf32>, "
         "tensor<2x3x2x4xf32>) " +
         operands +
         " outs(%q, %e : tensor<2x2x4x4xf32>, tensor<2x2x4xf32>)"
         " return %r#0, %r#1 : tensor<2x2x4x4xf32>, tensor<2x2x4xf32> }")
            .str();
    reference::AttentionResult expected =
        reference::attention(q.array, k.array, v.array, spec);
    std::vector<ReferenceValue> list{q, k, v};
    llvm::append_range(list, others);
    std::vector<ReferenceValue> results = run(text, list);
    ASSERT_EQ(results.size(), 2u) << message;
    EXPECT_EQ(results[0].array.values, expected.output.values);
    EXPECT_EQ(results[0].array.magnitude, expected.output.magnitude);
    EXPECT_TRUE(results[0].isAttention);
    ASSERT_EQ(results[0].largest.size(), 64u);
    for (size_t i = 0; i < 64; ++i)
      EXPECT_EQ(results[0].largest[i], expected.largestValue[i / 4]);
    EXPECT_EQ(results[1].array.values, expected.logSumExp.values);
    EXPECT_FALSE(results[1].isAttention);
    // The result must differ from the plain attention.
    reference::AttentionResult plain =
        reference::attention(q.array, k.array, v.array, {});
    EXPECT_NE(results[0].array.values, plain.output.values);
  }
};

TEST_F(AttentionOpTest, Numbers) {
  // If all scores are 0, the output is the mean of the visible values.
  std::vector<ReferenceValue> results =
      run(R"(
    func.func @f(%q: tensor<1x2x1x1xf32>, %v: tensor<1x3x1x2xf32>,
                 %k: tensor<1x3x1x1xf32>, %o: tensor<1x2x1x2xf32>)
        -> tensor<1x2x1x2xf32> {
      %r = posenc.attention causal scale = 0.0
        ins(%q, %k, %v : tensor<1x2x1x1xf32>, tensor<1x3x1x1xf32>,
                         tensor<1x3x1x2xf32>)
        outs(%o : tensor<1x2x1x2xf32>)
      return %r : tensor<1x2x1x2xf32>
    })",
          {numbers({1, 2, 1, 1}, 0),
           tensorOf(DType::F32, {1, 3, 1, 2}, {1, 8, 5, -2, 3, 0}),
           numbers({1, 3, 1, 1}, 0), numbers({1, 2, 1, 2}, 0)});
  ASSERT_EQ(results.size(), 1u) << message;
  EXPECT_EQ(results[0].array.values, (Elements{3, 3, 3, 2}));
  EXPECT_EQ(results[0].array.magnitude[1], 5);
  EXPECT_EQ(results[0].largest, std::vector<double>(4, 8));
}

TEST_F(AttentionOpTest, Attributes) {
  reference::AttentionSpec spec;
  spec.causal = true;
  expectLike(spec, "causal", "", "", {});
  spec = {};
  spec.left = 1;
  expectLike(spec, "window_left = 1", "", "", {});
  spec = {};
  spec.right = 0;
  expectLike(spec, "window_right = 0", "", "", {});
  spec = {};
  spec.scale = 0.3125;
  expectLike(spec, "scale = 0.3125", "", "", {});
}

TEST_F(AttentionOpTest, Operands) {
  reference::AttentionSpec spec;
  spec.keyLengths = {3, 1};
  expectLike(spec, "", "lengths(%n : tensor<2xi64>)", ", %n: tensor<2xi64>",
             {tensorOf(DType::I64, {2}, {3, 1})});
  spec = {};
  spec.sinks = {0, 1, 2, 3};
  expectLike(spec, "", "sinks(%s : tensor<4xf32>)", ", %s: tensor<4xf32>",
             {tensorOf(DType::F32, {4}, {0, 1, 2, 3})});
  spec = {};
  ReferenceValue mask = numbers({1, 1, 2, 3}, 5);
  spec.mask = {mask.array, false};
  expectLike(spec, "", "mask(%m : tensor<1x1x2x3xf32>)",
             ", %m: tensor<1x1x2x3xf32>", {mask});
  ReferenceValue bits = tensorOf(DType::I32, {1, 1, 2, 3}, {1, 0, 1, 0, 0, 0});
  spec.mask = {bits.array, true};
  expectLike(spec, "", "mask(%m : tensor<1x1x2x3xi1>)",
             ", %m: tensor<1x1x2x3xi1>", {bits});
}

TEST_F(AttentionOpTest, NormsAndRotations) {
  reference::AttentionSpec spec;
  spec.queryNorm = {{1, 2, 3, 4}, 0.5};
  spec.keyNorm = {{2, 2, 1, 1}, 0.5};
  expectLike(spec, "norm_eps = 0.5",
             "query_norm(%a : tensor<4xf32>) key_norm(%b : tensor<4xf32>)",
             ", %a: tensor<4xf32>, %b: tensor<4xf32>",
             {tensorOf(DType::F32, {4}, {1, 2, 3, 4}),
              tensorOf(DType::F32, {4}, {2, 2, 1, 1})});
  spec = {};
  reference::Rotation rotation;
  rotation.frequencies.dim = 2;
  rotation.interleaved = true;
  rotation.windowOffset = 2;
  spec.keyRotation = rotation;
  rotation.positions = {7, 8, 9, 100};
  spec.queryRotation = rotation;
  StringRef attr = "<pairing = interleaved, frequencies = "
                   "#posenc.frequencies<dim = 2>, offset = 2>";
  expectLike(spec,
             ("query_rotation = " + attr + " key_rotation = " + attr).str(),
             "query_positions(%p : tensor<2x2xi64>)", ", %p: tensor<2x2xi64>",
             {tensorOf(DType::I64, {2, 2}, {7, 8, 9, 100})});
}

TEST_F(AttentionOpTest, PackedAndPaged) {
  ReferenceValue q = numbers({3, 1, 2}, 1), k = numbers({2, 1, 4, 2}, 9);
  reference::AttentionSpec spec;
  spec.keyLayout = reference::TokenLayout::HeadMajor;
  spec.queryStarts = {0, 1, 3};
  spec.keyLengths = {5, 3};
  spec.blockTable = {{1, 0, 0, -1}, 2};
  Elements result = runOne(
      R"(
    func.func @f(%q: tensor<3x1x2xf32>, %k: tensor<2x1x4x2xf32>,
                 %c: tensor<3xi32>, %n: tensor<2xi64>, %t: tensor<2x2xi32>)
        -> tensor<3x1x2xf32> {
      %r = posenc.attention key_layout = head_major
        ins(%q, %k, %k : tensor<3x1x2xf32>, tensor<2x1x4x2xf32>,
                         tensor<2x1x4x2xf32>)
        lengths(%n : tensor<2xi64>) cu_seqlens(%c : tensor<3xi32>)
        block_table(%t : tensor<2x2xi32>)
        outs(%q : tensor<3x1x2xf32>)
      return %r : tensor<3x1x2xf32>
    })",
      {q, k, tensorOf(DType::I32, {3}, {0, 1, 3}),
       tensorOf(DType::I64, {2}, {5, 3}),
       tensorOf(DType::I32, {2, 2}, {1, 0, 0, -1})});
  EXPECT_EQ(
      result,
      reference::attention(q.array, k.array, k.array, spec).output.values);
}

TEST_F(AttentionOpTest, RejectionsOfTheOracleAreErrors) {
  StringRef text = R"(
    func.func @f(%q: tensor<1x1x1x1xf32>, %n: tensor<1xi64>)
        -> tensor<1x1x1x1xf32> {
      %r = posenc.attention
        ins(%q, %q, %q : tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>,
                         tensor<1x1x1x1xf32>)
        lengths(%n : tensor<1xi64>) outs(%q : tensor<1x1x1x1xf32>)
      return %r : tensor<1x1x1x1xf32>
    })";
  run(text, {numbers({1, 1, 1, 1}, 1), tensorOf(DType::I64, {1}, {2})});
  EXPECT_EQ(message, "rejected by the reference: a length exceeds the capacity "
                     "of the keys");
}

/// Returns a function with an attention of two queries, followed by `rest`.
static std::string followedBy(StringRef rest, StringRef type) {
  return ("func.func @f(%q: tensor<1x2x1x2xf32>, %o: tensor<1x2x1x2xf32>)"
          " -> " +
          type +
          " { %r = posenc.attention causal"
          " ins(%q, %q, %q : tensor<1x2x1x2xf32>, tensor<1x2x1x2xf32>,"
          " tensor<1x2x1x2xf32>) outs(%o : tensor<1x2x1x2xf32>) " +
          rest + " }")
      .str();
}

TEST_F(AttentionOpTest, ResultsAreMoved) {
  ReferenceValue q = tensorOf(DType::F32, {1, 2, 1, 2}, {1, 2, 3, 5});
  std::vector<ReferenceValue> results =
      run(followedBy("%s = tensor.extract_slice %r[0, 1, 0, 0] [1, 1, 1, 2]"
                     " [1, 1, 1, 1] : tensor<1x2x1x2xf32> to tensor<1x2xf32>"
                     " %e = tensor.empty() : tensor<1x3xf32>"
                     " %i = tensor.insert_slice %s into %e[0, 1] [1, 2] [1, 1]"
                     " : tensor<1x2xf32> into tensor<1x3xf32>"
                     " %t = tensor.collapse_shape %i [[0, 1]]"
                     " : tensor<1x3xf32> into tensor<3xf32>"
                     " return %t : tensor<3xf32>",
                     "tensor<3xf32>"),
          {q, q});
  ASSERT_EQ(results.size(), 1u) << message;
  EXPECT_TRUE(results[0].isAttention);
  EXPECT_TRUE(std::isnan(results[0].array.values[0]));
  EXPECT_GT(results[0].array.values[1], 1);
  EXPECT_EQ(results[0].array.magnitude[1], results[0].array.values[1]);
  EXPECT_EQ(results[0].largest, (std::vector<double>{0, 5, 5}));
}

TEST_F(AttentionOpTest, RejectsComputingWithAttentionResults) {
  ReferenceValue q = tensorOf(DType::F32, {1, 2, 1, 2}, {1, 2, 3, 5});
  run(followedBy("%p = arith.constant dense<1> : tensor<2xi64>"
                 " %t = posenc.rope half #posenc.frequencies<dim = 2>"
                 " ins(%r : tensor<1x2x1x2xf32>) positions(%p : tensor<2xi64>)"
                 " dims = [1] outs(%o : tensor<1x2x1x2xf32>)"
                 " return %t : tensor<1x2x1x2xf32>",
                 "tensor<1x2x1x2xf32>"),
      {q, q});
  EXPECT_EQ(message, "the reference has no error bound for values computed "
                     "from an attention result");
  run(followedBy("%t = tensor.insert_slice %r into %q[0, 0, 0, 0] [1, 2, 1, 2]"
                 " [1, 1, 1, 1] : tensor<1x2x1x2xf32> into tensor<1x2x1x2xf32>"
                 " return %t : tensor<1x2x1x2xf32>",
                 "tensor<1x2x1x2xf32>"),
      {q, q});
  EXPECT_EQ(message, "the reference has no error bound for a tensor that is "
                     "only partly an attention result");
}

//===----------------------------------------------------------------------===//
// posenc.kv_append
//===----------------------------------------------------------------------===//

/// Returns a function that appends two tokens of one head to two sequences,
/// each with a cache of three slots.
static std::string append(StringRef attributes, StringRef operands,
                          StringRef argument) {
  return ("func.func @f(%k: tensor<2x2x1x2xf32>, %kc: tensor<2x3x1x2xf32>, " +
          argument +
          ") -> (tensor<2x3x1x2xf32>, tensor<2x3x1x2xf32>) {"
          " %r:2 = posenc.kv_append " +
          attributes +
          " ins(%k, %k : tensor<2x2x1x2xf32>, tensor<2x2x1x2xf32>) " +
          operands +
          " outs(%kc, %kc : tensor<2x3x1x2xf32>, tensor<2x3x1x2xf32>)"
          " return %r#0, %r#1 : tensor<2x3x1x2xf32>, tensor<2x3x1x2xf32> }")
      .str();
}

static ReferenceValue newRows() {
  return tensorOf(DType::F32, {2, 2, 1, 2}, {1, 1, 2, 2, 3, 3, 4, 4});
}

TEST_F(AttentionOpTest, Append) {
  ReferenceValue cache = tensorOf(DType::F32, {2, 3, 1, 2}, Elements(12, 9));
  Elements expected{9, 9, 1, 1, 2, 2, 4, 4, 9, 9, 9, 9};
  std::vector<ReferenceValue> results =
      run(append("", "lengths(%n : tensor<2xi64>)", "%n: tensor<2xi64>"),
          {newRows(), cache, tensorOf(DType::I64, {2}, {3, 1})});
  ASSERT_EQ(results.size(), 2u) << message;
  for (const ReferenceValue &result : results) {
    EXPECT_EQ(result.array.values, expected);
    EXPECT_EQ(result.array.magnitude, Elements(12, -1));
    EXPECT_EQ(result.limitUlp, 0);
  }
  results =
      run(append("", "slots(%n : tensor<2x2xi32>)", "%n: tensor<2x2xi32>"),
          {newRows(), cache, tensorOf(DType::I32, {2, 2}, {1, 2, -1, 3})});
  ASSERT_EQ(results.size(), 2u) << message;
  EXPECT_EQ(results[0].array.values, expected);
  run(append("", "lengths(%n : tensor<2xi64>)", "%n: tensor<2xi64>"),
      {newRows(), cache, tensorOf(DType::I64, {2}, {3, 4})});
  EXPECT_EQ(message,
            "the length 4 of sequence 1 exceeds the capacity of 3 slots");
  run(append("", "slots(%n : tensor<2x2xi32>)", "%n: tensor<2x2xi32>"),
      {newRows(), cache, tensorOf(DType::I32, {2, 2}, {1, 1, -1, 3})});
  EXPECT_EQ(message,
            "rejected by the reference: two new rows have the same slot");
}

TEST_F(AttentionOpTest, AppendRotates) {
  ReferenceValue cache = tensorOf(DType::F32, {2, 3, 1, 2}, Elements(12, 9));
  std::vector<ReferenceValue> results =
      run(append("rotation = <pairing = half, frequencies = "
                 "#posenc.frequencies<dim = 2>>",
                 "lengths(%n : tensor<2xi64>)", "%n: tensor<2xi64>"),
          {newRows(), cache, tensorOf(DType::I64, {2}, {3, 1})});
  ASSERT_EQ(results.size(), 2u) << message;
  const reference::Array &keys = results[0].array;
  // The second token of the first sequence has position 2.
  EXPECT_NEAR(double(keys.values[4]), 2 * (std::cos(2) - std::sin(2)), 1e-15);
  EXPECT_NEAR(double(keys.magnitude[4]), 2 * std::sqrt(2.0), 1e-15);
  EXPECT_EQ(keys.magnitude[0], -1);
  EXPECT_EQ(results[0].limitUlp, 4);
  EXPECT_EQ(results[1].limitUlp, 0);
  EXPECT_EQ(results[1].array.values[4], 2);
}

TEST_F(AttentionOpTest, AppendNorms) {
  ReferenceValue cache = tensorOf(DType::F32, {2, 3, 1, 2}, Elements(12, 9));
  std::vector<ReferenceValue> results =
      run(append("norm_eps = 0.0",
                 "norm(%w : tensor<2xf32>) lengths(%n : tensor<2xi64>)",
                 "%n: tensor<2xi64>, %w: tensor<2xf32>"),
          {newRows(), cache, tensorOf(DType::I64, {2}, {3, 1}),
           tensorOf(DType::F32, {2}, {3, 5})});
  ASSERT_EQ(results.size(), 2u) << message;
  EXPECT_EQ(results[0].array.values[4], 3);
  EXPECT_EQ(results[0].array.values[5], 5);
  EXPECT_EQ(results[0].array.magnitude[5], 5);
  EXPECT_EQ(results[0].limitUlp, 4 + 8);
}

TEST_F(AttentionOpTest, AppendKeepsMagnitudesOfCopiedRows) {
  // Rotated values keep their magnitudes in their slots.
  std::vector<ReferenceValue> results = run(
      R"(
    func.func @f(%x: tensor<1x1x1x2xf32>, %c: tensor<1x2x1x2xf32>,
                 %n: tensor<1xi64>) -> tensor<1x2x1x2xf32> {
      %p = arith.constant dense<1> : tensor<1xi64>
      %v = posenc.rope half #posenc.frequencies<dim = 2>
        ins(%x : tensor<1x1x1x2xf32>) positions(%p : tensor<1xi64>) dims = [1]
        outs(%x : tensor<1x1x1x2xf32>)
      %r:2 = posenc.kv_append
        ins(%x, %v : tensor<1x1x1x2xf32>, tensor<1x1x1x2xf32>)
        lengths(%n : tensor<1xi64>)
        outs(%c, %c : tensor<1x2x1x2xf32>, tensor<1x2x1x2xf32>)
      return %r#1 : tensor<1x2x1x2xf32>
    })",
      {tensorOf(DType::F32, {1, 1, 1, 2}, {3, 4}),
       tensorOf(DType::F32, {1, 2, 1, 2}, {7, 8, 9, 10}),
       tensorOf(DType::I64, {1}, {2})});
  ASSERT_EQ(results.size(), 1u) << message;
  EXPECT_EQ(results[0].array.magnitude[0], -1);
  EXPECT_NEAR(double(results[0].array.magnitude[3]), 5, 1e-15);
  EXPECT_EQ(results[0].limitUlp, 4);
}

TEST_F(AttentionOpTest, AppendKeepsMagnitudesOfUnrotatedLanes) {
  std::vector<ReferenceValue> results = run(
      R"(
    func.func @f(%x: tensor<1x1x1x4xf32>, %c: tensor<1x1x1x4xf32>,
                 %n: tensor<1xi64>) -> tensor<1x1x1x4xf32> {
      %p = arith.constant dense<1> : tensor<1xi64>
      %k = posenc.rope half #posenc.frequencies<dim = 2>
        ins(%x : tensor<1x1x1x4xf32>) positions(%p : tensor<1xi64>) dims = [1]
        outs(%x : tensor<1x1x1x4xf32>)
      %r:2 = posenc.kv_append
        rotation = <pairing = half, frequencies = #posenc.frequencies<dim = 2>,
                    offset = 2>
        ins(%k, %x : tensor<1x1x1x4xf32>, tensor<1x1x1x4xf32>)
        lengths(%n : tensor<1xi64>)
        outs(%c, %c : tensor<1x1x1x4xf32>, tensor<1x1x1x4xf32>)
      return %r#0 : tensor<1x1x1x4xf32>
    })",
      {tensorOf(DType::F32, {1, 1, 1, 4}, {3, 4, 6, 8}),
       tensorOf(DType::F32, {1, 1, 1, 4}, {0, 0, 0, 0}),
       tensorOf(DType::I64, {1}, {1})});
  ASSERT_EQ(results.size(), 1u) << message;
  EXPECT_NEAR(double(results[0].array.magnitude[0]), 5, 1e-15);
  EXPECT_NEAR(double(results[0].array.magnitude[2]), 10, 1e-15);
}

} // namespace

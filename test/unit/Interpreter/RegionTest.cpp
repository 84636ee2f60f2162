//===- RegionTest.cpp - score and where regions of attention --------------===//
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

/// An attention of one visible key per query: log-sum-exp is the score.
class RegionTest : public InterpreterTest {
protected:
  /// Returns the new score of head 2 of sequence 1, whose query at position 5
  /// sees only key 5. `score` is the score before the region.
  long double newScore(StringRef body, double score = 0.75,
                       StringRef captured = "") {
    std::string text = R"(
      func.func @f(%q: tensor<2x1x3x1xf32>, %k: tensor<2x6x3x1xf32>,
                   %t: tensor<2x3xf32>, %n: tensor<2xi32>)
          -> tensor<2x1x3xf32> {
        )" + captured.str() +
                       R"(
        %o = tensor.empty() : tensor<2x1x3x1xf32>
        %l = tensor.empty() : tensor<2x1x3xf32>
        %r:2 = posenc.attention window_left = 0 window_right = 0 scale = 1.0
          ins(%q, %k, %k : tensor<2x1x3x1xf32>, tensor<2x6x3x1xf32>,
                           tensor<2x6x3x1xf32>)
          outs(%o, %l : tensor<2x1x3x1xf32>, tensor<2x1x3xf32>)
          score(%s, %b, %h, %i, %j) {)" +
                       body.str() + R"( posenc.yield %y : f32 }
        return %r#1 : tensor<2x1x3xf32>
      })";
    Elements result =
        runOne(text, {tensorOf(DType::F32, {2, 1, 3, 1}, Elements(6, score)),
                      tensorOf(DType::F32, {2, 6, 3, 1}, Elements(36, 1)),
                      tensorOf(DType::F32, {2, 3}, {1, 2, 3, 4, 5, 6}),
                      tensorOf(DType::I32, {2}, {-7, 9})});
    return result.size() == 6 ? result[5] : NAN;
  }
  /// Returns the new score for a single operation on floats.
  long double real(StringRef operation, double score = 0.75) {
    return newScore(("%y = " + operation + " : f32").str(), score);
  }
  /// Returns the index %x that the operations define.
  long double index(StringRef body) {
    return newScore((body + " %w = arith.index_cast %x : index to i64"
                            " %y = arith.sitofp %w : i64 to f32")
                        .str());
  }
  /// Returns the diagnostic for a region that begins with `body`.
  std::string fault(StringRef body) {
    ScopedDiagnosticHandler none(&context,
                                 [](Diagnostic &) { return failure(); });
    message.clear();
    run(("func.func @f(%q: tensor<1x1x1x1xf32>, %t: tensor<3xf32>, "
         "%zero: i32) -> tensor<1x1x1x1xf32> {"
         " %r = posenc.attention"
         " ins(%q, %q, %q : tensor<1x1x1x1xf32>, tensor<1x1x1x1xf32>,"
         " tensor<1x1x1x1xf32>) outs(%q : tensor<1x1x1x1xf32>)"
         " score(%s, %b, %h, %i, %j) {" +
         body + " posenc.yield %s : f32 } return %r : tensor<1x1x1x1xf32> }")
            .str(),
        {tensorOf(DType::F32, {1, 1, 1, 1}, {1}),
         tensorOf(DType::F32, {3}, {1, 2, 3}), scalarOf(0, DType::I32)});
    return message;
  }
};

TEST_F(RegionTest, Arguments) {
  EXPECT_EQ(newScore("%y = arith.addf %s, %s : f32"), 1.5);
  EXPECT_EQ(index("%x = arith.addi %b, %b : index"), 2);
  EXPECT_EQ(index("%x = arith.addi %h, %b : index"), 3);
  EXPECT_EQ(index("%x = arith.muli %i, %j : index"), 25);
  EXPECT_EQ(newScore("%y = tensor.extract %t[%b, %h] : tensor<2x3xf32>"), 6);
  EXPECT_EQ(newScore("%x = tensor.extract %n[%b] : tensor<2xi32>"
                     " %y = arith.sitofp %x : i32 to f32"),
            9);
  EXPECT_EQ(newScore("%y = arith.mulf %s, %c : f32", 0.75,
                     "%c = arith.constant 4.0 : f32"),
            3);
}

TEST_F(RegionTest, Floats) {
  EXPECT_EQ(real("arith.subf %s, %s"), 0);
  EXPECT_EQ(real("arith.negf %s"), -0.75);
  EXPECT_EQ(real("arith.divf %s, %s"), 1);
  EXPECT_EQ(real("math.fma %s, %s, %s"), 1.3125);
  EXPECT_EQ(real("math.tanh %s"), (long double)(std::tanh(0.75)));
  EXPECT_EQ(real("math.exp2 %s"), (long double)(std::exp2(0.75)));
  EXPECT_EQ(real("math.roundeven %s", 2.5), 2);
  EXPECT_EQ(real("math.floor %s", -0.25), -1);
  EXPECT_EQ(newScore("%c = arith.constant 2.0 : f32"
                     " %y = arith.maximumf %s, %c : f32"),
            2);
  EXPECT_EQ(newScore("%c = arith.constant 2.0 : f32"
                     " %y = arith.minimumf %s, %c : f32"),
            0.75);
  // Results are not rounded to f32, only to 16-bit types.
  EXPECT_NE(newScore("%c = arith.constant 3.0 : f32"
                     " %y = arith.divf %s, %c : f32",
                     1),
            (long double)(1.0f / 3.0f));
  EXPECT_EQ(newScore("%c = arith.truncf %s : f32 to bf16"
                     " %y = arith.extf %c : bf16 to f32",
                     1.001953125),
            1);
}

TEST_F(RegionTest, Integers) {
  std::string constants = "%m = arith.constant -7 : index"
                          " %two = arith.constant 2 : index ";
  auto compute = [&](StringRef operation) {
    return index(constants + ("%x = " + operation + " %m, %two : index").str());
  };
  EXPECT_EQ(compute("arith.subi"), -9);
  EXPECT_EQ(compute("arith.divsi"), -3);
  EXPECT_EQ(compute("arith.floordivsi"), -4);
  EXPECT_EQ(compute("arith.ceildivsi"), -3);
  EXPECT_EQ(compute("arith.remsi"), -1);
  EXPECT_EQ(compute("arith.minsi"), -7);
  EXPECT_EQ(compute("arith.minui"), 2);
  EXPECT_EQ(compute("arith.shli"), -28);
  EXPECT_EQ(compute("arith.shrsi"), -2);
  EXPECT_EQ(compute("arith.shrui"), 0x1p62L);
  EXPECT_EQ(compute("arith.andi"), 0);
  EXPECT_EQ(compute("arith.xori"), -5);
  // Integers wrap at their width.
  EXPECT_EQ(newScore("%c = arith.constant 200 : i8"
                     " %w = arith.addi %c, %c : i8"
                     " %y = arith.sitofp %w : i8 to f32"),
            -112);
  EXPECT_EQ(newScore("%c = arith.constant 200 : i8"
                     " %w = arith.extui %c : i8 to i32"
                     " %y = arith.sitofp %w : i32 to f32"),
            200);
  EXPECT_EQ(newScore("%c = arith.constant 200 : i8"
                     " %y = arith.uitofp %c : i8 to f32"),
            200);
  EXPECT_EQ(newScore("%c = arith.fptosi %s : f32 to i32"
                     " %y = arith.sitofp %c : i32 to f32",
                     -2.75),
            -2);
}

TEST_F(RegionTest, Choices) {
  auto choose = [&](StringRef comparison) {
    return newScore((comparison + " %z = arith.constant 10.0 : f32"
                                  " %y = arith.select %c, %z, %s : f32")
                        .str());
  };
  EXPECT_EQ(choose("%c = arith.cmpi sge, %i, %j : index"), 10);
  EXPECT_EQ(choose("%c = arith.cmpi ult, %h, %b : index"), 0.75);
  EXPECT_EQ(choose("%c = arith.cmpf olt, %s, %s : f32"), 0.75);
  EXPECT_EQ(choose("%c = arith.cmpf ole, %s, %s : f32"), 10);
  EXPECT_EQ(choose("%c = arith.constant true"), 10);
  EXPECT_EQ(choose("%t1 = arith.constant true"
                   " %c = arith.xori %t1, %t1 : i1"),
            0.75);
  EXPECT_EQ(choose("%c = math.isfinite %s : f32"), 10);
}

TEST_F(RegionTest, Biases) {
  // The third of eight heads, 4 positions apart.
  EXPECT_EQ(newScore("%k4 = arith.constant 4 : index"
                     " %near = arith.subi %j, %k4 : index"
                     " %y = posenc.alibi(%h, %i, %near) heads = 8 : f32"),
            -0.5);
  // Query 5 with the keys 0, 5 and 11.
  auto bucket = [&](int64_t key) {
    return index(("%far = arith.constant " + Twine(key) +
                  " : index %rel = arith.subi %far, %i : index"
                  " %x = posenc.t5_bucket bidirectional %rel : index")
                     .str());
  };
  EXPECT_EQ(bucket(0), 5);
  EXPECT_EQ(bucket(5), 0);
  EXPECT_EQ(bucket(11), 22);
  EXPECT_EQ(bucket(100000), 31);
  EXPECT_EQ(bucket(-100000), 15);
  EXPECT_EQ(index("%rel = arith.constant -20 : i64"
                  " %a = posenc.t5_bucket %rel : i64"
                  " %x = arith.index_cast %a : i64 to index"),
            17);
}

TEST_F(RegionTest, Where) {
  Elements result = runOne(R"(
    func.func @f(%q: tensor<1x2x1x1xf32>, %v: tensor<1x4x1x1xf32>,
                 %d: tensor<4xi32>) -> tensor<1x2x1x1xf32> {
      %r = posenc.attention scale = 0.0
        ins(%q, %v, %v : tensor<1x2x1x1xf32>, tensor<1x4x1x1xf32>,
                         tensor<1x4x1x1xf32>)
        outs(%q : tensor<1x2x1x1xf32>)
        where(%b, %h, %i, %j) {
          %x = tensor.extract %d[%i] : tensor<4xi32>
          %y = tensor.extract %d[%j] : tensor<4xi32>
          %same = arith.cmpi eq, %x, %y : i32
          posenc.yield %same : i1
        }
      return %r : tensor<1x2x1x1xf32>
    })",
                           {tensorOf(DType::F32, {1, 2, 1, 1}, {1, 1}),
                            tensorOf(DType::F32, {1, 4, 1, 1}, {1, 2, 4, 8}),
                            tensorOf(DType::I32, {4}, {3, 5, 3, 5})});
  EXPECT_EQ(result, (Elements{2.5, 5}));
}

TEST_F(RegionTest, UnsupportedOperationsAreErrors) {
  EXPECT_EQ(fault("%x = arith.bitcast %s : f32 to i32"),
            "the reference does not evaluate 'arith.bitcast'");
  EXPECT_EQ(fault("%x:2 = arith.addui_extended %zero, %zero : i32, i1"),
            "the reference does not evaluate 'arith.addui_extended'");
}

TEST_F(RegionTest, UndefinedBehaviorIsAnError) {
  EXPECT_EQ(fault("%x = arith.divsi %zero, %zero : i32"),
            "divides by zero, or has a quotient that does not fit");
  EXPECT_EQ(fault("%c = arith.constant 3 : index"
                  " %x = tensor.extract %t[%c] : tensor<3xf32>"),
            "reads outside of the tensor");
  EXPECT_EQ(fault("%c = arith.constant -1 : index"
                  " %x = tensor.extract %t[%c] : tensor<3xf32>"),
            "reads outside of the tensor");
  EXPECT_EQ(fault("%c = arith.constant 8 : index"
                  " %x = posenc.alibi(%c, %i, %j) heads = 8 : f32"),
            "has no slope for the head");
  EXPECT_EQ(fault("%c = arith.constant -2147483648 : i32"
                  " %d = arith.constant -1 : i32"
                  " %x = arith.remsi %c, %d : i32"),
            "divides by zero, or has a quotient that does not fit");
  // Unused poison is not an error.
  EXPECT_EQ(fault("%c = arith.constant 1.0e20 : f32"
                  " %x = arith.fptosi %c : f32 to i32"
                  " %y = arith.shli %x, %x : i32"
                  " %d = arith.constant 32 : i32"
                  " %z = arith.shli %d, %d : i32"),
            "");
  EXPECT_EQ(fault("%c = arith.constant 1.0 : f32"), "");
}

} // namespace

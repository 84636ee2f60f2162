//===- AttentionBuildersTest.cpp - building the regions of attention ------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestUtils.h"

#include "posenc/IR/Attention.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;
using namespace mlir::posenc;

namespace {

struct AttentionBuildersTest : AttrTest {
  AttentionBuildersTest() {
    context.loadDialect<arith::ArithDialect, func::FuncDialect,
                        math::MathDialect>();
  }

  /// Sets `module` to a function with a plain attention of the element type and
  /// returns the operation.
  AttentionOp makeAttention(const std::string &element) {
    std::string type = "tensor<2x5x4x8x" + element + ">";
    module = parseSourceString<ModuleOp>(
        "func.func @f(%q: " + type +
            ") { %r = posenc.attention ins(%q, %q, %q : " + type + ", " + type +
            ", " + type + ") outs(%q : " + type + ") return }",
        &context);
    AttentionOp result;
    module->walk([&](AttentionOp op) { result = op; });
    return result;
  }

  /// Returns the names of the operations in a region.
  static SmallVector<StringRef> getNames(Region &region) {
    SmallVector<StringRef> names;
    for (Operation &op : region.front())
      names.push_back(op.getName().getStringRef());
    return names;
  }

  OwningOpRef<ModuleOp> module;
};

TEST_F(AttentionBuildersTest, SoftCap) {
  for (const char *element : {"f32", "bf16", "f64"}) {
    AttentionOp op = makeAttention(element);
    OpBuilder builder(op);
    buildSoftCap(builder, op, 50.0);
    EXPECT_TRUE(succeeded(verify(*module)));
    EXPECT_EQ(
        getNames(op.getScore()),
        (SmallVector<StringRef>{"arith.constant", "arith.divf", "math.tanh",
                                "arith.mulf", "posenc.yield"}));
    Block &block = op.getScore().front();
    auto limit = cast<arith::ConstantOp>(block.front());
    EXPECT_EQ(limit.getValue(), builder.getFloatAttr(op.getSumType(), 50.0));
    // cap * tanh(score / cap), and not the other way round.
    auto product = cast<arith::MulFOp>(
        block.getTerminator()->getOperand(0).getDefiningOp());
    auto tanh = product.getLhs().getDefiningOp<math::TanhOp>();
    ASSERT_TRUE(tanh);
    auto quotient = tanh.getOperand().getDefiningOp<arith::DivFOp>();
    ASSERT_TRUE(quotient);
    EXPECT_EQ(quotient.getLhs(), block.getArgument(0));
    EXPECT_EQ(quotient.getRhs(), limit.getResult());
    EXPECT_EQ(product.getRhs(), limit.getResult());
    EXPECT_TRUE(op.getWhere().empty());
  }
}

TEST_F(AttentionBuildersTest, ScoresAreComposedInOrder) {
  AttentionOp op = makeAttention("f32");
  OpBuilder builder(op);
  buildSoftCap(builder, op, 30.0);
  Value capped = op.getScore().front().getTerminator()->getOperand(0);
  buildScore(builder, op, [&](OpBuilder &b, Location loc, ValueRange args) {
    EXPECT_EQ(args.size(), 5u);
    EXPECT_EQ(args[0], capped);
    Value bias = AlibiOp::create(b, loc, args[0].getType(), args[2], args[3],
                                 args[4], /*heads=*/4);
    return arith::AddFOp::create(b, loc, args[0], bias).getResult();
  });
  EXPECT_TRUE(succeeded(verify(*module)));
  EXPECT_EQ(getNames(op.getScore()),
            (SmallVector<StringRef>{"arith.constant", "arith.divf", "math.tanh",
                                    "arith.mulf", "posenc.alibi", "arith.addf",
                                    "posenc.yield"}));
}

TEST_F(AttentionBuildersTest, MasksAreCombinedByAnd) {
  AttentionOp op = makeAttention("f32");
  OpBuilder builder(op);
  auto compare = [](arith::CmpIPredicate predicate) {
    return [predicate](OpBuilder &b, Location loc, ValueRange args) -> Value {
      EXPECT_EQ(args.size(), 4u);
      return arith::CmpIOp::create(b, loc, predicate, args[2], args[3]);
    };
  };
  buildWhere(builder, op, compare(arith::CmpIPredicate::sge));
  buildWhere(builder, op, compare(arith::CmpIPredicate::ne));
  EXPECT_TRUE(succeeded(verify(*module)));
  EXPECT_EQ(getNames(op.getWhere()),
            (SmallVector<StringRef>{"arith.cmpi", "arith.cmpi", "arith.andi",
                                    "posenc.yield"}));
}

TEST_F(AttentionBuildersTest, OptionalAttributesAreSetAfterwards) {
  AttentionOp op = makeAttention("f32");
  OpBuilder builder(op);
  Value query = op.getQuery();
  auto other = AttentionOp::create(builder, op.getLoc(), query, query, query,
                                   op.getInits());
  EXPECT_TRUE(succeeded(verify(*module)));
  EXPECT_EQ(other->getResultTypes(), op->getResultTypes());
  // The operations differ only in their location.
  EXPECT_TRUE(OperationEquivalence::isEquivalentTo(
      op, other, OperationEquivalence::IgnoreLocations));
  other.setCausal(true);
  other.setScale(APFloat(0.5));
  other.setKeyLayout(HeadLayout::HeadMajor);
  auto type = RankedTensorType::get({2}, builder.getI64Type());
  other.getLengthsMutable().assign(arith::ConstantOp::create(
      builder, op.getLoc(),
      DenseElementsAttr::get(type, ArrayRef<int64_t>{3, 4})));
  other->moveAfter(op);
  // The layout swaps the dimensions of heads and tokens.
  ScopedDiagnosticHandler ignore(&context, [](Diagnostic &) {});
  EXPECT_TRUE(failed(verify(*module)));
  other.setKeyLayout(HeadLayout::TokenMajor);
  EXPECT_TRUE(succeeded(verify(*module)));
  EXPECT_EQ(other.getScoreScale(), 0.5);
  EXPECT_EQ(other.getInits().size(), 1u);
}

TEST_F(AttentionBuildersTest, RegionsAreCloned) {
  AttentionOp op = makeAttention("f32");
  OpBuilder builder(op);
  buildSoftCap(builder, op, 50.0);
  Value score = arith::ConstantOp::create(builder, op.getLoc(),
                                          builder.getF32FloatAttr(1));
  Value index = arith::ConstantIndexOp::create(builder, op.getLoc(), 0);
  Value capped = cloneScalarRegion(builder, op.getScore(),
                                   {score, index, index, index, index});
  auto product = capped.getDefiningOp<arith::MulFOp>();
  ASSERT_TRUE(product);
  EXPECT_EQ(product->getBlock(), op->getBlock());
  EXPECT_EQ(product.getLhs()
                .getDefiningOp<math::TanhOp>()
                .getOperand()
                .getDefiningOp<arith::DivFOp>()
                .getLhs(),
            score);
  EXPECT_TRUE(succeeded(verify(*module)));
  // A region may consist of a terminator that yields an argument.
  AttentionOp plain = makeAttention("f32");
  OpBuilder other(plain);
  buildScore(other, plain, [](OpBuilder &, Location, ValueRange arguments) {
    return arguments[0];
  });
  Value one = arith::ConstantOp::create(other, plain.getLoc(),
                                        other.getF32FloatAttr(1));
  Value zero = arith::ConstantIndexOp::create(other, plain.getLoc(), 0);
  EXPECT_EQ(
      cloneScalarRegion(other, plain.getScore(), {one, zero, zero, zero, zero}),
      one);
}

TEST_F(AttentionBuildersTest, ScaleAndSums) {
  AttentionOp op = makeAttention("f16");
  EXPECT_EQ(op.getScoreScale(), 1.0 / std::sqrt(8.0));
  EXPECT_TRUE(op.getSumType().isF32());
  EXPECT_TRUE(makeAttention("f64").getSumType().isF64());
}

} // namespace

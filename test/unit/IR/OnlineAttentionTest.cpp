//===- OnlineAttentionTest.cpp - decomposition of online_attention --------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The transform dialect decomposes only operations with a single result, so
// these tests call AggregatedOpInterface directly.
//
//===----------------------------------------------------------------------===//

#include "posenc/Conversion/PosencToLinalg.h"
#include "posenc/IR/Posenc.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::posenc;

namespace {

struct OnlineAttentionTest : testing::Test {
  OnlineAttentionTest() {
    DialectRegistry registry;
    registry.insert<PosencDialect, func::FuncDialect, affine::AffineDialect,
                    scf::SCFDialect, tensor::TensorDialect>();
    registerAttentionDecomposition(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// Sets `module` to a function with an operation on a tile of keys of the
  /// type `keys` and returns the operation.
  OnlineAttentionOp makeTile(const std::string &keys) {
    module = parseSourceString<ModuleOp>(
        "func.func @f(%q: tensor<2x5x8xf32>, %k: " + keys +
            ", %i: index, %o: tensor<2x5x8xf32>, %m: tensor<2x5xf32>)"
            " -> (tensor<2x5x8xf32>, tensor<2x5xf32>, tensor<2x5xf32>) {"
            "  %r:3 = posenc.online_attention causal at(%i, %i, %i, %i)"
            "    ins(%q, %k, %k : tensor<2x5x8xf32>, " +
            keys + ", " + keys +
            ") outs(%o, %m, %m : tensor<2x5x8xf32>, tensor<2x5xf32>,"
            "            tensor<2x5xf32>)"
            "  return %r#0, %r#1, %r#2 : tensor<2x5x8xf32>, tensor<2x5xf32>,"
            "                            tensor<2x5xf32> }",
        &context);
    OnlineAttentionOp tile;
    module->walk([&](OnlineAttentionOp op) { tile = op; });
    return tile;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

TEST_F(OnlineAttentionTest, IsDecomposedToLinalg) {
  OnlineAttentionOp tile = makeTile("tensor<7x8xf32>");
  auto aggregated = cast<linalg::AggregatedOpInterface>(tile.getOperation());
  IRRewriter rewriter(tile);
  FailureOr<SmallVector<Value>> results =
      aggregated.decomposeOperation(rewriter);
  ASSERT_TRUE(succeeded(results));
  ASSERT_EQ(results->size(), 3u);
  rewriter.replaceOp(tile, *results);
  EXPECT_TRUE(succeeded(verify(*module)));
  int64_t numLoops = 0;
  module->walk([&](linalg::LinalgOp) { ++numLoops; });
  EXPECT_GT(numLoops, 5);
  module->walk(
      [](OnlineAttentionOp) { ADD_FAILURE() << "online_attention remains"; });
}

TEST_F(OnlineAttentionTest, WithoutKeysReturnsItsDestinations) {
  OnlineAttentionOp tile = makeTile("tensor<0x8xf32>");
  auto aggregated = cast<linalg::AggregatedOpInterface>(tile.getOperation());
  IRRewriter rewriter(tile);
  FailureOr<SmallVector<Value>> results =
      aggregated.decomposeOperation(rewriter);
  ASSERT_TRUE(succeeded(results));
  EXPECT_EQ(*results, SmallVector<Value>(tile.getInits()));
}

} // namespace

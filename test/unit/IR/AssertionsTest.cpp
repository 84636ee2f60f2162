//===- AssertionsTest.cpp - what builds with assertions detect ------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/ABI/SizeSymbols.h"
#include "posenc/Pipelines/Pipelines.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>
#include <vector>

using namespace mlir;
using namespace mlir::posenc;

namespace {

#ifdef NDEBUG
constexpr bool kHasAssertions = false;
#else
constexpr bool kHasAssertions = true;

TEST(AssertionsTest, OfThisProject) {
  EXPECT_DEATH(SizeSymbols().get(5), "a symbol of other symbols");
}

TEST(AssertionsTest, OfTheHeadersOfLLVM) {
  SmallVector<int> empty;
  EXPECT_DEATH(empty.front() = 1, "!empty\\(\\)");
}

TEST(AssertionsTest, OfTheHeadersOfLibstdcxx) {
  std::vector<int> empty;
  EXPECT_DEATH(empty[0] = 1, "__n < this->size\\(\\)");
}
#endif

/// Removes the terminators of functions, or adds missing ones.
struct ChangeTerminators final
    : PassWrapper<ChangeTerminators, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ChangeTerminators)

  explicit ChangeTerminators(bool adds) : adds(adds) {}

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      OpBuilder builder = OpBuilder::atBlockEnd(&function.front());
      if (adds)
        func::ReturnOp::create(builder, function.getLoc());
      else
        function.front().back().erase();
    }
  }

  bool adds;
};

/// Runs passes on a function and returns whether that succeeded.
bool run(ArrayRef<bool> addTerminators) {
  MLIRContext context;
  context.loadDialect<func::FuncDialect>();
  ScopedDiagnosticHandler silence(&context,
                                  [](Diagnostic &) { return success(); });
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>("func.func @f() { return }", &context);
  PassManager manager(&context);
  for (bool adds : addTerminators)
    manager.addPass(std::make_unique<ChangeTerminators>(adds));
  return succeeded(runUnverified(manager, *module));
}

TEST(AssertionsTest, VerifierBetweenPasses) {
  EXPECT_TRUE(run({}));
  // Invalid at the end, and only between the passes.
  EXPECT_FALSE(run({false}));
  EXPECT_EQ(run({false, true}), !kHasAssertions);
}

} // namespace

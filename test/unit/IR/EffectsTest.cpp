//===- EffectsTest.cpp - memory effects on destinations -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestUtils.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;
using namespace mlir::posenc;

namespace {

struct EffectsTest : AttrTest {
  EffectsTest() { context.loadDialect<func::FuncDialect>(); }

  /// Parses an operation from `text` and returns whether it reads its last
  /// operand, which it must write.
  bool readsDestination(const std::string &text) {
    auto module = parseSourceString<ModuleOp>(
        "func.func @f(%x: memref<2x5x4x8xf32>, %o: memref<2x5x4x8xf32>, "
        "%p: memref<2xi64>, %c: memref<5xi64>, "
        "%t: memref<4x5x8xf32>, %k: memref<5x8xf32>, %m: memref<4x5xf32>, "
        "%i: index) { posenc." +
            text + " return }",
        &context);
    EXPECT_TRUE(module);
    if (!module)
      return false;
    bool reads = false;
    module->walk([&](PositionalOpInterface op) {
      auto effects = cast<MemoryEffectOpInterface>(op.getOperation());
      Value last = op->getOperands().back();
      EXPECT_TRUE(effects.getEffectOnValue<MemoryEffects::Write>(last));
      reads = effects.getEffectOnValue<MemoryEffects::Read>(last).has_value();
    });
    return reads;
  }
};

TEST_F(EffectsTest, FullyWrittenDestinationsAreNotRead) {
  EXPECT_FALSE(readsDestination(
      "sincos #posenc.frequencies<dim = 16> positions(%c : memref<5xi64>) "
      "outs(%k, %k : memref<5x8xf32>, memref<5x8xf32>)"));
  EXPECT_FALSE(readsDestination(
      "attention ins(%x, %x, %x : memref<2x5x4x8xf32>, memref<2x5x4x8xf32>, "
      "memref<2x5x4x8xf32>) outs(%o : memref<2x5x4x8xf32>)"));
}

TEST_F(EffectsTest, PartlyWrittenDestinationsAreRead) {
  EXPECT_TRUE(readsDestination(
      "kv_append ins(%x, %x : memref<2x5x4x8xf32>, memref<2x5x4x8xf32>) "
      "lengths(%p : memref<2xi64>) "
      "outs(%o, %o : memref<2x5x4x8xf32>, memref<2x5x4x8xf32>)"));
  EXPECT_TRUE(
      readsDestination("online_attention at(%i, %i, %i, %i) ins(%t, %k, %k : "
                       "memref<4x5x8xf32>, memref<5x8xf32>, memref<5x8xf32>) "
                       "outs(%t, %m, %m : memref<4x5x8xf32>, memref<4x5xf32>, "
                       "memref<4x5xf32>)"));
}

} // namespace

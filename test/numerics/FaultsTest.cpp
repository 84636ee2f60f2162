//===- FaultsTest.cpp - injection of faults ----------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A fault that is not in the IR would prove nothing about the checks, so that
// its injection must fail.
//
//===----------------------------------------------------------------------===//

#include "Faults.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "gtest/gtest-spi.h"

using namespace posenc::test;
namespace arith = mlir::arith;

namespace {

class FaultsTest : public testing::Test {
protected:
  bool inject(Matcher site, Edit edit) {
    mlir::OwningOpRef<mlir::ModuleOp> module = source.clone();
    return posenc::test::inject(*module, {"Fault", site, edit});
  }

  LoweredModule source{R"(
func.func @f(%x: i32, %y: i64) -> i32 {
  %c = arith.constant 7 : i32
  %r = arith.subi %x, %c : i32
  return %r : i32
}
)",
                       mlir::posenc::Stage::Posenc};
};

TEST_F(FaultsTest, InjectsAtASite) {
  EXPECT_TRUE(inject(
      op<arith::SubIOp>(operand(0, argument(0)), operand(1, constant(7))),
      swapOperands(0, 1)));
}

TEST_F(FaultsTest, FailsWithoutASite) {
  EXPECT_NONFATAL_FAILURE(EXPECT_FALSE(inject(constant(8), setConstant(9))),
                          "Fault: no operation matches");
}

TEST_F(FaultsTest, FailsWithoutAChange) {
  EXPECT_NONFATAL_FAILURE(EXPECT_FALSE(inject(constant(7), setConstant(7))),
                          "Fault: the edit changes nothing");
}

TEST_F(FaultsTest, FailsOnInvalidIR) {
  EXPECT_NONFATAL_FAILURE(EXPECT_FALSE(inject(op<mlir::func::ReturnOp>(),
                                              setOperandToArgument(0, 1))),
                          "Fault: the module does not verify");
}

} // namespace

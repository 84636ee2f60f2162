//===- MathToIntrinsics.cpp - math operations to LLVM intrinsics ----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX has instructions for these operations of the math and arith dialects, but
// convert-gpu-to-nvvm would lower them to calls of libdevice. It also rejects
// the operations of the LLVM dialect that convert-math-to-llvm would create.
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCMATHTOINTRINSICSPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

/// Returns the name of the overloaded LLVM intrinsic, or an empty string.
static StringRef getIntrinsic(Operation *op) {
  return llvm::TypeSwitch<Operation *, StringRef>(op)
      .Case([](arith::MaxNumFOp) { return "llvm.maxnum"; })
      .Case([](arith::MinNumFOp) { return "llvm.minnum"; })
      .Case([](math::AbsFOp) { return "llvm.fabs"; })
      .Case([](math::CeilOp) { return "llvm.ceil"; })
      .Case([](math::CopySignOp) { return "llvm.copysign"; })
      .Case([](math::FloorOp) { return "llvm.floor"; })
      .Case([](math::RoundOp) { return "llvm.round"; })
      .Case([](math::RoundEvenOp) { return "llvm.roundeven"; })
      .Case([](math::SqrtOp) { return "llvm.sqrt"; })
      .Default([](Operation *) { return ""; });
}

namespace {
struct MathToIntrinsics final
    : mlir::posenc::impl::PosencMathToIntrinsicsPassBase<MathToIntrinsics> {
  using Base::Base;

  void runOnOperation() override {
    getOperation()->walk([](Operation *op) {
      StringRef intrinsic = getIntrinsic(op);
      if (intrinsic.empty())
        return;
      Type type = op->getResult(0).getType();
      if (!type.isF32() && !type.isF64())
        return;
      OpBuilder builder(op);
      std::string name = (intrinsic + (type.isF32() ? ".f32" : ".f64")).str();
      auto call = LLVM::CallIntrinsicOp::create(builder, op->getLoc(), type,
                                                builder.getStringAttr(name),
                                                op->getOperands());
      op->replaceAllUsesWith(call);
      op->erase();
    });
  }
};
} // namespace

//===- FormByteDots.cpp - dot products of bytes by VPDPBUSD ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/Passes.h"
#include "posenc/Numerics/ByteDots.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCFORMBYTEDOTSPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

/// Whether the last dimension of a vector of i32 is whole registers of AVX-512.
static bool hasWholeRegisters(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector && vector.getRank() > 0 && !vector.isScalable() &&
         vector.getElementType().isInteger(32) &&
         vector.getShape().back() % 16 == 0;
}

namespace {
struct FormByteDots final
    : mlir::posenc::impl::PosencFormByteDotsPassBase<FormByteDots> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<arith::AddIOp> sums;
    getOperation().walk([&](arith::AddIOp op) {
      if (hasWholeRegisters(op.getType()))
        sums.push_back(op);
    });
    // The last addition of a dot product comes after the others.
    for (arith::AddIOp op : llvm::reverse(sums)) {
      std::optional<ByteDot> dot = matchByteDot(op);
      if (!dot)
        continue;
      OpBuilder builder(op);
      op.replaceAllUsesWith(emitVnniDot(builder, op.getLoc(), *dot));
    }
  }
};
} // namespace

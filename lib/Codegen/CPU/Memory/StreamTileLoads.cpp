//===- StreamTileLoads.cpp - packed AMX tiles past the L1 cache -----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Keys, values and packed matrices are larger than the L1 cache, which holds
// the tiles that they are multiplied by. Loaded as usual, they would evict
// these. The instruction TILELOADDT1 allocates no line in L1; it is slower than
// TILELOADD only for tiles that are in L1.
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Matchers.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCSTREAMTILELOADSPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

static constexpr StringLiteral kLoad = "llvm.x86.tileloadd64.internal";
static constexpr StringLiteral kStreamedLoad =
    "llvm.x86.tileloaddt164.internal";

/// Whether the operand is the right one of a product of tiles.
static bool isRightOperand(OpOperand &use) {
  auto product = dyn_cast<LLVM::CallIntrinsicOp>(use.getOwner());
  return product && product.getIntrin() == "llvm.x86.tdpbf16ps.internal" &&
         use.getOperandNumber() + 1 == product.getArgs().size();
}

/// Whether the rows of a tile are contiguous, alone or with those of a second
/// tile beside it, as in a panel. The arguments are the tile's rows, the bytes
/// of a row, the address, and the bytes from row to row.
static bool isContiguous(LLVM::CallIntrinsicOp load) {
  APInt rowBytes, stride;
  return matchPattern(load.getArgs()[1], m_ConstantInt(&rowBytes)) &&
         matchPattern(load.getArgs()[3], m_ConstantInt(&stride)) &&
         stride.getZExtValue() <= 2 * rowBytes.getZExtValue();
}

namespace {
struct StreamTileLoads final
    : mlir::posenc::impl::PosencStreamTileLoadsPassBase<StreamTileLoads> {
  using Base::Base;

  void runOnOperation() override {
    getOperation()->walk([](LLVM::CallIntrinsicOp op) {
      if (op.getIntrin() == kLoad && isContiguous(op) &&
          llvm::all_of(op->getUses(), isRightOperand))
        op.setIntrin(kStreamedLoad);
    });
  }
};
} // namespace

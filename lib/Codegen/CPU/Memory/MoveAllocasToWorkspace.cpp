//===- MoveAllocasToWorkspace.cpp - stack buffers to the workspace --------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/Passes.h"
#include "posenc/IR/KernelConfig.h"
#include "posenc/kernel/CallLayout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCMOVEALLOCASTOWORKSPACEPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

/// Smaller buffers stay on the stack: they may become registers, and they need
/// little memory.
static constexpr int64_t kMinBytes = 256;

/// Returns the bytes of a buffer that moves, rounded up to whole cache lines,
/// or 0 if it stays on the stack.
static int64_t getMovedBytes(memref::AllocaOp alloca) {
  MemRefType type = alloca.getType();
  if (!type.hasStaticShape() || !type.getLayout().isIdentity() ||
      type.getMemorySpace() || !type.getElementType().isIntOrIndexOrFloat())
    return 0;
  int64_t element = type.getElementType().isIndex()
                        ? 8
                        : llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  int64_t bytes = element * type.getNumElements();
  return bytes < kMinBytes ? 0 : llvm::alignTo(bytes, kWorkspaceAlignment);
}

namespace {
struct MoveAllocasToWorkspace final
    : mlir::posenc::impl::PosencMoveAllocasToWorkspacePassBase<
          MoveAllocasToWorkspace> {
  using Base::Base;

  void runOnOperation() override {
    FunctionOpInterface function = getOperation();
    KernelConfig config = getKernelConfig(function);
    if (!config.hasWorkspace || !config.scratchBytes.empty() ||
        function.isExternal())
      return;
    IRRewriter rewriter(&getContext());
    unsigned number = function.getNumArguments() - (config.hasTasks ? 2 : 0) -
                      (config.phases.empty() ? 0 : 1);
    SmallVector<int64_t> sizes;
    for (auto alloca : llvm::make_early_inc_range(
             function.getFunctionBody().front().getOps<memref::AllocaOp>())) {
      int64_t bytes = getMovedBytes(alloca);
      if (bytes == 0)
        continue;
      // Passes each buffer as a noalias argument, so LLVM knows as much about
      // its aliases as for an alloca.
      auto type = MemRefType::get({bytes}, rewriter.getI8Type());
      if (failed(function.insertArgument(number, type, {}, alloca.getLoc())))
        return signalPassFailure();
      rewriter.setInsertionPoint(alloca);
      Value zero = arith::ConstantIndexOp::create(rewriter, alloca.getLoc(), 0);
      rewriter.replaceOpWithNewOp<memref::ViewOp>(
          alloca, alloca.getType(), function.getArgument(number), zero,
          /*sizes=*/ValueRange());
      sizes.push_back(bytes);
      ++number;
    }
    if (!sizes.empty())
      updateKernelConfig(function, &KernelConfig::scratchBytes, sizes);
  }
};
} // namespace

//===- HoistScratch.cpp - scratch memory of a tile on the stack -*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/Passes.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCHOISTSCRATCHPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;

/// More than this is not a tile's scratch.
static constexpr int64_t kMaxBytes = 4096;

/// Whether the buffer is small, and known to nobody outside of its block: then
/// each iteration of a loop around it finds it free again.
static bool isScratch(memref::AllocOp alloc) {
  MemRefType type = alloc.getType();
  if (!type.hasStaticShape() || !type.getLayout().isIdentity() ||
      !type.getElementType().isIntOrIndexOrFloat())
    return false;
  int64_t bits =
      type.getElementType().isIndex() ? 64 : type.getElementTypeBitWidth();
  if (type.getNumElements() > kMaxBytes * 8 / bits)
    return false;
  SmallVector<Value> views{alloc};
  while (!views.empty()) {
    for (Operation *user : views.pop_back_val().getUsers()) {
      if (user->hasTrait<OpTrait::IsTerminator>() || isa<CallOpInterface>(user))
        return false;
      for (Value result : user->getResults())
        if (isa<MemRefType>(result.getType()))
          views.push_back(result);
    }
  }
  return true;
}

namespace {
struct HoistScratch final
    : mlir::posenc::impl::PosencHoistScratchPassBase<HoistScratch> {
  using Base::Base;

  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    SmallVector<memref::AllocOp> allocs;
    getOperation()->walk([&](memref::AllocOp alloc) {
      if (isScratch(alloc))
        allocs.push_back(alloc);
    });
    IRRewriter rewriter(&getContext());
    for (memref::AllocOp alloc : allocs) {
      rewriter.setInsertionPointToStart(
          &getOperation().getFunctionBody().front());
      rewriter.replaceOpWithNewOp<memref::AllocaOp>(alloc, alloc.getType(),
                                                    alloc.getAlignmentAttr());
    }
  }
};
} // namespace

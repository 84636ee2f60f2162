//===- ExpandCopies.cpp - memref.copy as loops ------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoopSizes.h"

#include "posenc/Codegen/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCEXPANDCOPIESPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

/// Two arguments of a kernel that may be the same memory are either that or do
/// not overlap.
static void skipIfSame(RewriterBase &rewriter, linalg::CopyOp copy) {
  auto isArgument = [](Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    return argument && isa<MemRefType>(value.getType()) &&
           isa<FunctionOpInterface>(argument.getOwner()->getParentOp());
  };
  Value source = copy.getInputs().front(), target = copy.getOutputs().front();
  if (!isArgument(source) || !isArgument(target))
    return;
  rewriter.setInsertionPoint(copy);
  Location loc = copy.getLoc();
  auto branch = scf::IfOp::create(
      rewriter, loc, areDifferentPlaces(rewriter, loc, source, target),
      /*withElseRegion=*/false);
  rewriter.moveOpBefore(copy, branch.thenBlock()->getTerminator());
}

namespace {
struct ExpandCopies final
    : mlir::posenc::impl::PosencExpandCopiesPassBase<ExpandCopies> {
  using Base::Base;

  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    getOperation()->walk([&](memref::CopyOp copy) {
      if (!isa<MemRefType>(copy.getSource().getType()) ||
          !isa<MemRefType>(copy.getTarget().getType()))
        return;
      rewriter.setInsertionPoint(copy);
      rewriter.replaceOpWithNewOp<linalg::CopyOp>(copy, copy.getSource(),
                                                  copy.getTarget());
    });
    getOperation()->walk(
        [&](linalg::CopyOp copy) { skipIfSame(rewriter, copy); });
  }
};
} // namespace

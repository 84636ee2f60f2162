//===- SplitAccesses.cpp - splitting of unaligned vector accesses ---------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A GPU accesses whole vectors only at multiples of their size. This pass
// splits other accesses. LLVM would split them, too, but would also pack 16-bit
// elements in pairs, which takes up to 13 % more instructions.
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/Passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/Vector/Transforms/VectorRewritePatterns.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCSPLITACCESSESPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

namespace {
struct SplitAccesses final
    : mlir::posenc::impl::PosencSplitAccessesPassBase<SplitAccesses> {
  using Base::Base;

  void runOnOperation() override {
    vector::UnrollVectorOptions options;
    options.setFilterConstraint([](Operation *op) {
      if (auto load = dyn_cast<vector::LoadOp>(op))
        return success(!load.getAlignment());
      auto store = dyn_cast<vector::StoreOp>(op);
      return success(store && !store.getAlignment());
    });
    options.setNativeShape({1});
    RewritePatternSet patterns(&getContext());
    vector::populateVectorUnrollPatterns(patterns, options);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace

//===- PromoteAllocsToRegisters.cpp - per-thread scratch ------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lanes that a thread loads before a barrier and rotates after it are copied to
// scratch memory by linalg. Once the copy and the read are vector operations,
// this pass forwards the vector and removes the memory.
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/Passes.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCPROMOTEALLOCSTOREGISTERSPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

/// Erases views of the memref that have no users.
static void eraseUnused(RewriterBase &rewriter, Value memref) {
  for (Operation *user : llvm::make_early_inc_range(memref.getUsers())) {
    for (Value result : user->getResults())
      if (isa<MemRefType>(result.getType()))
        eraseUnused(rewriter, result);
    if (isOpTriviallyDead(user) ||
        (isa<memref::AssumeAlignmentOp>(user) && user->use_empty()))
      rewriter.eraseOp(user);
  }
}

static void promote(RewriterBase &rewriter, memref::AllocaOp alloca,
                    DominanceInfo &dominance) {
  eraseUnused(rewriter, alloca);
  vector::StoreOp store;
  SmallVector<vector::LoadOp> loads;
  for (Operation *user : alloca->getUsers()) {
    if (auto load = dyn_cast<vector::LoadOp>(user)) {
      loads.push_back(load);
      continue;
    }
    auto candidate = dyn_cast<vector::StoreOp>(user);
    if (!candidate || store || candidate.getValueToStore() == alloca)
      return;
    store = candidate;
  }
  if (!store)
    return;
  Value vector = store.getValueToStore();
  bool areSame = llvm::all_of(loads, [&](vector::LoadOp load) {
    return load.getType() == vector.getType() &&
           load.getIndices() == store.getIndices() &&
           dominance.dominates(store.getOperation(), load);
  });
  if (!areSame)
    return;
  for (vector::LoadOp load : loads)
    rewriter.replaceOp(load, vector);
  rewriter.eraseOp(store);
  rewriter.eraseOp(alloca);
}

namespace {
struct PromoteAllocsToRegisters final
    : mlir::posenc::impl::PosencPromoteAllocsToRegistersPassBase<
          PromoteAllocsToRegisters> {
  using Base::Base;

  void runOnOperation() override {
    DominanceInfo &dominance = getAnalysis<DominanceInfo>();
    IRRewriter rewriter(&getContext());
    SmallVector<memref::AllocaOp> allocas;
    getOperation()->walk(
        [&](memref::AllocaOp alloca) { allocas.push_back(alloca); });
    for (memref::AllocaOp alloca : allocas)
      promote(rewriter, alloca, dominance);
  }
};
} // namespace

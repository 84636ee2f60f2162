//===- DeallocateBuffers.cpp - deallocation of buffers --------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCDEALLOCATEBUFFERSPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;

/// Whether the function needs deallocations: it has none yet, and it allocates
/// memory, calls functions that return memory, or returns memory itself.
/// Callers free returned memory, so memory that the function does not own must
/// be copied first.
static bool needsDeallocation(func::FuncOp function) {
  if (function.isExternal())
    return false;
  bool allocates =
      llvm::any_of(function.getResultTypes(), llvm::IsaPred<BaseMemRefType>);
  WalkResult freed = function.walk([&](Operation *op) {
    if (hasEffect<MemoryEffects::Free>(op))
      return WalkResult::interrupt();
    allocates |= llvm::any_of(op->getResults(), [&](OpResult result) {
      return isa<BaseMemRefType>(result.getType()) &&
             (isa<CallOpInterface>(op) ||
              (!isa<memref::AllocaOp>(op) &&
               hasEffect<MemoryEffects::Allocate>(op, result)));
    });
    return WalkResult::advance();
  });
  return allocates && !freed.wasInterrupted();
}

namespace {
struct DeallocateBuffers final
    : mlir::posenc::impl::PosencDeallocateBuffersPassBase<DeallocateBuffers> {
  using Base::Base;

  void runOnOperation() override {
    SymbolTableCollection symbols;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (needsDeallocation(function) &&
          failed(bufferization::deallocateBuffersOwnershipBased(function, {},
                                                                symbols)))
        return signalPassFailure();
  }
};
} // namespace

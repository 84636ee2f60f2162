//===- StreamStores.cpp - non-temporal stores of linalg kernels -----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A regular store reads the cache line before it writes it, so a copy of data
// larger than the caches moves three bytes instead of two. This pass uses
// non-temporal (streaming) stores for large results of linalg kernels, as the
// rope kernels do.
//
//===----------------------------------------------------------------------===//

#include "Streaming.h"

#include "posenc/Codegen/Passes.h"
#include "posenc/IR/KernelConfig.h"
#include "posenc/IR/Remarks.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCSTREAMSTORESPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

#define DEBUG_TYPE "posenc-stream-stores"

/// Whether an index along rows is a multiple of `of` elements.
static bool isMultiple(Value index, int64_t of) {
  if (std::optional<int64_t> constant = getConstantIntValue(index))
    return *constant % of == 0;
  auto argument = dyn_cast<BlockArgument>(index);
  auto loop = argument
                  ? dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp())
                  : scf::ForOp();
  if (!loop || argument != loop.getInductionVar())
    return false;
  std::optional<int64_t> step = getConstantIntValue(loop.getStep());
  return step && *step % of == 0 && isMultiple(loop.getLowerBound(), of);
}

/// Whether a vector is written at a multiple of its length within a row of the
/// underlying memref.
static bool isAligned(vector::TransferWriteOp write) {
  VectorType type = write.getVectorType();
  if (type.getRank() != 1 || !llvm::isPowerOf2_64(type.getNumElements()) ||
      write.getMask() || write.hasOutOfBoundsDim() ||
      !write.getPermutationMap().isMinorIdentity() ||
      !isMultiple(write.getIndices().back(), type.getNumElements()))
    return false;
  for (Value memref = write.getBase();;) {
    if (auto subview = memref.getDefiningOp<memref::SubViewOp>()) {
      // If the last dimension were dropped, the offset would count rows.
      OpFoldResult last = subview.getMixedOffsets().back();
      std::optional<int64_t> constant = getConstantIntValue(last);
      bool isWhole = constant
                         ? *constant % type.getNumElements() == 0
                         : isMultiple(cast<Value>(last), type.getNumElements());
      if (!isWhole ||
          subview.getDroppedDims().test(subview.getSourceType().getRank() - 1))
        return false;
      memref = subview.getSource();
    } else if (auto cast = memref.getDefiningOp<memref::CastOp>()) {
      memref = cast.getSource();
    } else {
      return isa<BlockArgument>(memref);
    }
  }
}

/// Returns the only write of a loop to an output, if the loop does not read it.
static vector::TransferWriteOp findWrite(scf::ForOp loop, Value output) {
  vector::TransferWriteOp write;
  WalkResult result = loop.walk([&](Operation *op) {
    bool isUser = llvm::any_of(op->getOperands(), [&](Value operand) {
      return isa<MemRefType>(operand.getType()) && getRoot(operand) == output;
    });
    if (!isUser || isPure(op) || isa<memref::StoreOp>(op))
      return WalkResult::advance();
    auto candidate = dyn_cast<vector::TransferWriteOp>(op);
    if (!candidate || write || !isAligned(candidate))
      return WalkResult::interrupt();
    write = candidate;
    return WalkResult::advance();
  });
  return result.wasInterrupted() ? vector::TransferWriteOp() : write;
}

namespace {
struct StreamStores final
    : mlir::posenc::impl::PosencStreamStoresPassBase<StreamStores> {
  using Base::Base;
  friend struct mlir::posenc::VectorTarget;

  void convertLoop(RewriterBase &rewriter, scf::ForOp loop, AbiAttr abi,
                   const VectorTarget &target) {
    SmallVector<Value> inputs, outputs;
    SmallVector<vector::TransferWriteOp> writes;
    auto function = loop->getParentOfType<FunctionOpInterface>();
    for (auto [number, input] : llvm::enumerate(abi.getInPlace())) {
      Value output = function.getArgument(abi.getInputs().size() + number);
      vector::TransferWriteOp write = findWrite(loop, output);
      if (!write)
        continue;
      writes.push_back(write);
      outputs.push_back(output);
      inputs.push_back(input < 0 ? Value() : function.getArgument(input));
    }
    if (writes.empty())
      return;
    reportChoice(loop, DEBUG_TYPE,
                 llvm::formatv("two versions: streaming stores to {0} outputs "
                               "of {1} bytes or more, and ordinary stores",
                               writes.size(), target.streamFrom));
    rewriter.setInsertionPoint(loop);
    Location loc = loop.getLoc();
    Value condition = emitCanStream(rewriter, loc, inputs, outputs, target);
    auto branch = scf::IfOp::create(rewriter, loc, condition,
                                    /*withElseRegion=*/true);
    rewriter.setInsertionPointToStart(branch.thenBlock());
    IRMapping mapping;
    rewriter.clone(*loop, mapping);
    for (vector::TransferWriteOp write : writes) {
      Operation *copy = mapping.lookup(write.getOperation());
      auto streamed = cast<vector::TransferWriteOp>(copy);
      rewriter.setInsertionPoint(streamed);
      streamTo(vector::StoreOp::create(
                   rewriter, streamed.getLoc(), streamed.getValueToStore(),
                   streamed.getBase(), streamed.getIndices()),
               target);
      rewriter.eraseOp(streamed);
    }
    rewriter.moveOpBefore(loop, branch.elseYield());
  }

  void runOnOperation() override {
    FunctionOpInterface function = getOperation();
    AbiAttr abi = getAbi(function);
    VectorTarget target = VectorTarget::get(*this);
    if (!abi || function.isExternal() || target.streamFrom == 0)
      return;
    SmallVector<scf::ForOp> loops;
    function.walk<WalkOrder::PreOrder>([&](scf::ForOp loop) {
      if (loop->getNumResults() == 0)
        loops.push_back(loop);
      return WalkResult::skip();
    });
    IRRewriter rewriter(&getContext());
    for (scf::ForOp loop : loops)
      convertLoop(rewriter, loop, abi, target);
  }
};
} // namespace

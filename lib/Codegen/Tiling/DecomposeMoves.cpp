//===- DecomposeMoves.cpp - pack, pad, concat to copies -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/Passes.h"
#include "posenc/IR/KernelConfig.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCDECOMPOSEMOVESPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

/// A concatenation of more tensors is written to a buffer, not to a tensor. The
/// analysis of bufferization compares the insertions into one tensor with each
/// other, which takes time with the fourth power of their number.
static constexpr unsigned kMaxInsertions = 8;

/// The alignment of buffers that bufferization allocates.
static constexpr int64_t kBufferAlignment = 64;

/// Whether the memory is an output of the function that no input shares, or a
/// part of a buffer that this pass has created.
static bool isOwnBuffer(Value memory) {
  if (memory.getDefiningOp<memref::SubViewOp>())
    return true;
  auto argument = dyn_cast<BlockArgument>(memory);
  Operation *function = argument ? argument.getOwner()->getParentOp() : nullptr;
  AbiAttr abi = isa_and_present<FunctionOpInterface>(function)
                    ? getAbi(function)
                    : AbiAttr();
  if (!abi)
    return false;
  int64_t output =
      int64_t{argument.getArgNumber()} - int64_t(abi.getInputs().size());
  return output >= 0 && output < int64_t(abi.getInPlace().size()) &&
         abi.getInPlace()[output] < 0;
}

/// Returns the write of the tensor to a buffer of its own, or null.
static bufferization::MaterializeInDestinationOp findWrite(Value tensor) {
  for (Operation *user : tensor.getUsers()) {
    auto write = dyn_cast<bufferization::MaterializeInDestinationOp>(user);
    if (write && write->getBlock() == tensor.getParentBlock() &&
        isa<MemRefType>(write.getDest().getType()) &&
        isOwnBuffer(write.getDest()))
      return write;
  }
  return {};
}

/// Writes the operands of a concatenation to slices of a buffer, which is the
/// memory that the result is written to, if there is one. Producers of operands
/// write to the slices directly, which are available at the beginning of the
/// function for this. Sizes must be static for the same reason. The result is
/// not writable: operands, which share its memory, may have other users.
static LogicalResult writeParts(RewriterBase &rewriter,
                                tensor::ConcatOp concat) {
  RankedTensorType type = concat.getResultType();
  // There is nothing to write of an operand without elements, whose slice may
  // begin behind the buffer.
  SmallVector<Value> inputs =
      llvm::filter_to_vector(concat.getInputs(), [](Value input) {
        return !llvm::is_contained(
            cast<RankedTensorType>(input.getType()).getShape(), 0);
      });
  if (inputs.size() <= kMaxInsertions || !type.hasStaticShape() ||
      !isa<FunctionOpInterface>(concat->getParentOp()) ||
      llvm::any_of(concat.getInputs(), [](Value input) {
        return !cast<RankedTensorType>(input.getType()).hasStaticShape();
      }))
    return failure();
  Location loc = concat.getLoc();
  OpBuilder::InsertionGuard guard(rewriter);
  bufferization::MaterializeInDestinationOp write = findWrite(concat);
  Value buffer = write ? write.getDest() : Value();
  if (buffer && buffer.getDefiningOp())
    rewriter.setInsertionPointAfterValue(buffer);
  else
    rewriter.setInsertionPointToStart(concat->getBlock());
  if (!buffer)
    buffer = memref::AllocOp::create(
        rewriter, loc, MemRefType::get(type.getShape(), type.getElementType()),
        ValueRange(), rewriter.getI64IntegerAttr(kBufferAlignment));
  SmallVector<OpFoldResult> offsets(type.getRank(), rewriter.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(type.getRank(), rewriter.getIndexAttr(1));
  SmallVector<Value> slices;
  int64_t offset = 0;
  for (Value input : inputs) {
    ArrayRef<int64_t> shape =
        cast<RankedTensorType>(input.getType()).getShape();
    offsets[concat.getDim()] = rewriter.getIndexAttr(offset);
    offset += shape[concat.getDim()];
    slices.push_back(memref::SubViewOp::create(
        rewriter, loc, buffer, offsets,
        getAsIndexOpFoldResult(rewriter.getContext(), shape), strides));
  }
  rewriter.setInsertionPoint(concat);
  for (auto [input, slice] : llvm::zip_equal(inputs, slices))
    bufferization::MaterializeInDestinationOp::create(
        rewriter, loc, TypeRange(), input, slice, /*restrict=*/true,
        /*writable=*/true);
  if (write)
    rewriter.eraseOp(write);
  if (concat->use_empty())
    rewriter.eraseOp(concat);
  else
    rewriter.replaceOpWithNewOp<bufferization::ToTensorOp>(concat, type, buffer,
                                                           /*restrict=*/true);
  return success();
}

/// Rewrites one operation as copies; fails if its tile sizes are dynamic.
static LogicalResult decompose(RewriterBase &rewriter, Operation *op) {
  rewriter.setInsertionPoint(op);
  if (auto pack = dyn_cast<linalg::PackOp>(op))
    return linalg::lowerPack(rewriter, pack);
  if (auto unpack = dyn_cast<linalg::UnPackOp>(op))
    return linalg::lowerUnPack(rewriter, unpack);
  if (auto pad = dyn_cast<tensor::PadOp>(op))
    return linalg::rewriteInDestinationPassingStyle(rewriter, pad);
  auto concat = cast<tensor::ConcatOp>(op);
  if (succeeded(writeParts(rewriter, concat)))
    return success();
  FailureOr<SmallVector<Value>> parts = concat.decomposeOperation(rewriter);
  if (succeeded(parts))
    rewriter.replaceOp(concat, *parts);
  return parts;
}

namespace {
struct DecomposeMoves final
    : mlir::posenc::impl::PosencDecomposeMovesPassBase<DecomposeMoves> {
  using Base::Base;

  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    if (failed(decomposeAll<linalg::PackOp, linalg::UnPackOp>(rewriter)) ||
        // Decomposed packs contain pads, so pads come second.
        failed(decomposeAll<tensor::PadOp, tensor::ConcatOp>(rewriter)))
      return signalPassFailure();
  }

private:
  template <typename... OpTypes>
  LogicalResult decomposeAll(RewriterBase &rewriter) {
    SmallVector<Operation *> operations;
    getOperation()->walk([&](Operation *op) {
      if (isa<OpTypes...>(op))
        operations.push_back(op);
    });
    // Users come first: the parts of a concatenation may be others.
    for (Operation *op : llvm::reverse(operations)) {
      if (isOpTriviallyDead(op))
        rewriter.eraseOp(op);
      else if (failed(decompose(rewriter, op)))
        return op->emitOpError(
            "cannot be decomposed: expected static tile sizes");
    }
    return success();
  }
};
} // namespace

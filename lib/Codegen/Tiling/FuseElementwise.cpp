//===- FuseElementwise.cpp - chains of elementwise operations ---*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Upstream's patterns fuse an operation into one with more loops, which
// computes it again and again, and keep results that others use, so that two
// operations write to one destination. Here an operation is fused into its only
// user, of as many loops.
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/Passes.h"
#include "posenc/Codegen/Tiling.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCFUSEELEMENTWISEPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

/// Whether the pass rewrites the operation: on tensors, in a form that can be
/// tiled to vectors, and not a tile already.
static bool isCandidate(linalg::LinalgOp op) {
  return op.hasPureTensorSemantics() && op->getNumResults() == 1 &&
         !op->getParentOfType<scf::ForallOp>() && op.getNumLoops() > 0 &&
         llvm::all_of(
             op.getIndexingMapsArray(),
             [](AffineMap map) { return map.isProjectedPermutation(); }) &&
         computesVectors(op) && !isTiledContraction(op);
}

/// Whether an input that a result may overwrite is still read before that, and
/// each element only for the one that is written over it.
static bool keepsInPlaceInputs(linalg::GenericOp producer, OpOperand &operand) {
  auto consumer = cast<linalg::GenericOp>(operand.getOwner());
  OpOperand *written = consumer.getDpsInitOperand(0);
  BlockArgument mine = getInPlaceInput(written->get());
  AffineMap map =
      producer.getMatchingIndexingMap(producer.getDpsInitOperand(0));
  return llvm::all_of(producer.getDpsInputOperands(), [&](OpOperand *input) {
    return !isInPlaceInput(input->get()) ||
           (input->get() == mine &&
            producer.getMatchingIndexingMap(input) == map &&
            consumer.getMatchingIndexingMap(&operand) ==
                consumer.getMatchingIndexingMap(written));
  });
}

/// Whether the operation that computes the operand becomes part of the one that
/// uses it.
static bool isFused(OpOperand &operand) {
  auto producer = operand.get().getDefiningOp<linalg::GenericOp>();
  auto consumer = dyn_cast<linalg::GenericOp>(operand.getOwner());
  return producer && consumer && isCandidate(producer) &&
         isCandidate(consumer) && producer->hasOneUse() &&
         producer->getBlock() == consumer->getBlock() &&
         consumer.isDpsInput(&operand) &&
         producer.getNumLoops() == consumer.getNumLoops() &&
         !producer.payloadUsesValueFromOperand(producer.getDpsInitOperand(0)) &&
         keepsInPlaceInputs(producer, operand) &&
         linalg::areElementwiseOpsFusable(&operand);
}

/// Fuses what computes the inputs into the operation, and returns what it
/// became.
static linalg::GenericOp fuseInputs(RewriterBase &rewriter,
                                    linalg::GenericOp op) {
  for (;;) {
    OpOperand *operand = nullptr;
    for (OpOperand *input : op.getDpsInputOperands())
      if (!operand && isFused(*input))
        operand = input;
    if (!operand)
      return op;
    Operation *producer = operand->get().getDefiningOp();
    rewriter.setInsertionPoint(op);
    FailureOr<linalg::ElementwiseOpFusionResult> fused =
        linalg::fuseElementwiseOps(rewriter, operand);
    if (failed(fused))
      return op;
    rewriter.replaceOp(op, fused->replacements.lookup(op->getResult(0)));
    rewriter.eraseOp(producer);
    op = cast<linalg::GenericOp>(fused->fusedOp);
  }
}

namespace {
struct FuseElementwise final
    : mlir::posenc::impl::PosencFuseElementwisePassBase<FuseElementwise> {
  using Base::Base;

  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    auto getAll = [&](auto op) {
      SmallVector<decltype(op)> operations;
      getOperation()->walk(
          [&](decltype(op) one) { operations.push_back(one); });
      return operations;
    };
    for (auto op : getAll(linalg::LinalgOp())) {
      if (isa<linalg::GenericOp, linalg::FillOp, linalg::CopyOp>(op) ||
          !isCandidate(op))
        continue;
      rewriter.setInsertionPoint(op);
      (void)linalg::generalizeNamedOp(rewriter, op);
    }
    // Users last: what is fused into them is complete, and no longer visited.
    for (auto op : getAll(linalg::GenericOp()))
      fuseInputs(rewriter, op);
  }
};
} // namespace

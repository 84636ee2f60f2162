//===- FuseElementwise.cpp - fusion of elementwise operations -------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Fuses an elementwise operation into its only user if both have the same
// number of loops. Upstream's patterns also fuse into operations with more
// loops, which recompute the producer in every iteration, and they keep results
// that have other users, so two operations would write to one destination.
// Products read constant matrices through transpositions and broadcasts.
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/Passes.h"
#include "posenc/Codegen/Tiling.h"
#include "posenc/IR/Remarks.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCFUSEELEMENTWISEPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

#define DEBUG_TYPE "posenc-fuse-elementwise"

/// Whether the pass may fuse the operation: it works on tensors, can be tiled
/// and vectorized, and is not inside a tile already.
static bool isFusible(linalg::LinalgOp op) {
  return op.hasPureTensorSemantics() && op->getNumResults() == 1 &&
         !op->getParentOfType<scf::ForallOp>() && op.getNumLoops() > 0 &&
         llvm::all_of(
             op.getIndexingMapsArray(),
             [](AffineMap map) { return map.isProjectedPermutation(); }) &&
         computesVectors(op) && !isTiledContraction(op);
}

/// Whether fusion keeps in-place inputs correct: if an output may overwrite an
/// input of the producer, the fused operation must be the one that writes this
/// output, and read and write the same element in each iteration.
static bool keepsInPlaceInputs(linalg::GenericOp producer, OpOperand &operand) {
  auto consumer = cast<linalg::GenericOp>(operand.getOwner());
  OpOperand *written = consumer.getDpsInitOperand(0);
  BlockArgument overwritten = getInPlaceInput(written->get());
  AffineMap map =
      producer.getMatchingIndexingMap(producer.getDpsInitOperand(0));
  return llvm::all_of(producer.getDpsInputOperands(), [&](OpOperand *input) {
    return !isInPlaceInput(input->get()) ||
           (input->get() == overwritten &&
            producer.getMatchingIndexingMap(input) == map &&
            consumer.getMatchingIndexingMap(&operand) ==
                consumer.getMatchingIndexingMap(written));
  });
}

/// Operations of a loop's body. Each fusion copies both bodies, so without a
/// bound the time for a chain of operations grows with the square of its
/// length.
static constexpr size_t kMaxOperations = 128;

static size_t countOperations(linalg::GenericOp op) {
  return op.getBody()->getOperations().size();
}

/// Whether the producer of the operand is fused into the operand's owner.
static bool isFused(OpOperand &operand) {
  auto producer = operand.get().getDefiningOp<linalg::GenericOp>();
  auto consumer = dyn_cast<linalg::GenericOp>(operand.getOwner());
  return producer && consumer && isFusible(producer) && isFusible(consumer) &&
         producer->hasOneUse() &&
         producer->getBlock() == consumer->getBlock() &&
         consumer.isDpsInput(&operand) &&
         producer.getNumLoops() == consumer.getNumLoops() &&
         countOperations(producer) + countOperations(consumer) <=
             kMaxOperations &&
         !producer.payloadUsesValueFromOperand(producer.getDpsInitOperand(0)) &&
         keepsInPlaceInputs(producer, operand) &&
         linalg::areElementwiseOpsFusable(&operand);
}

/// Fuses the producers of the inputs into the operation, and theirs in turn.
/// Returns the fused operation.
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
    reportChoice(producer, DEBUG_TYPE, "fused into its only user");
    rewriter.replaceOp(op, fused->replacements.lookup(op->getResult(0)));
    rewriter.eraseOp(producer);
    op = cast<linalg::GenericOp>(fused->fusedOp);
  }
}

/// Sets `source` to what a transposition or broadcast copies, and returns the
/// map from indices of the copy to those of the source; null for other values.
static AffineMap getCopiedIndices(Value copy, Value &source) {
  auto op = copy.getDefiningOp<linalg::LinalgOp>();
  if (!op || !op.hasPureTensorSemantics() || op.getNumDpsInputs() != 1 ||
      op.getNumDpsInits() != 1 ||
      op.getNumParallelLoops() != op.getNumLoops() ||
      !isa<linalg::TransposeOp, linalg::BroadcastOp, linalg::GenericOp>(op))
    return {};
  Block *body = op.getBlock();
  if (body->getTerminator()->getOperand(0) != body->getArgument(0))
    return {};
  AffineMap out = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  AffineMap in = op.getMatchingIndexingMap(op.getDpsInputOperand(0));
  if (!out.isPermutation() || !in.isProjectedPermutation())
    return {};
  source = op.getDpsInputOperand(0)->get();
  return in.compose(inversePermutation(out));
}

/// Lets a product read a constant matrix that is transposed or repeated along
/// its batch from the constant, whose panels can be packed while compiling.
static void readConstantMatrix(RewriterBase &rewriter, linalg::LinalgOp op) {
  if (!isTiledContraction(op) || op->getParentOfType<scf::ForallOp>())
    return;
  Value matrix = op.getDpsInputOperand(1)->get();
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInputOperand(1));
  Value source = matrix;
  while (AffineMap copied = getCopiedIndices(source, source))
    map = copied.compose(map);
  ElementsAttr elements;
  if (source == matrix || !matchPattern(source, m_Constant(&elements)) ||
      elements.getShapedType().getRank() != 2 || !map.isProjectedPermutation())
    return;
  rewriter.setInsertionPoint(op);
  FailureOr<linalg::GenericOp> generic =
      isa<linalg::GenericOp>(op) ? cast<linalg::GenericOp>(op)
                                 : linalg::generalizeNamedOp(rewriter, op);
  if (failed(generic))
    return;
  SmallVector<AffineMap> maps = generic->getIndexingMapsArray();
  maps[1] = map;
  rewriter.modifyOpInPlace(*generic, [&] {
    generic->setOperand(1, source);
    generic->setIndexingMapsAttr(rewriter.getAffineMapArrayAttr(maps));
  });
  reportChoice(*generic, DEBUG_TYPE,
               "reads a transposed or repeated constant where it is");
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
    for (auto op : getAll(linalg::LinalgOp()))
      readConstantMatrix(rewriter, op);
    for (auto op : getAll(linalg::LinalgOp())) {
      if (isa<linalg::GenericOp, linalg::FillOp, linalg::CopyOp>(op) ||
          !isFusible(op))
        continue;
      rewriter.setInsertionPoint(op);
      (void)linalg::generalizeNamedOp(rewriter, op);
    }
    // Visits producers before their users, so each fused producer is final and
    // is not visited again.
    for (auto op : getAll(linalg::GenericOp()))
      fuseInputs(rewriter, op);
  }
};
} // namespace

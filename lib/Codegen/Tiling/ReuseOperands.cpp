//===- ReuseOperands.cpp - results that overwrite operands ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/Passes.h"
#include "posenc/Codegen/Tiling.h"
#include "posenc/IR/Remarks.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCREUSEOPERANDSPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

#define DEBUG_TYPE "posenc-reuse-operands"

/// Maximum size of an input that stays in scratch: half of a 32 KiB L1 data
/// cache.
static constexpr int64_t kMaxScratchBytes = 16 << 10;

/// Returns the tensor outside the loops that the destination of a tile is a
/// slice of.
static Value getWhole(Value destination) {
  for (;;) {
    if (auto slice = destination.getDefiningOp<tensor::ExtractSliceOp>()) {
      destination = slice.getSource();
      continue;
    }
    auto argument = dyn_cast<BlockArgument>(destination);
    auto forall =
        argument ? dyn_cast<scf::ForallOp>(argument.getOwner()->getParentOp())
                 : scf::ForallOp();
    if (!forall || argument.getArgNumber() < forall.getRank())
      return destination;
    destination = forall.getTiedOpOperand(argument)->get();
  }
}

OpOperand *mlir::posenc::findReusableInput(linalg::LinalgOp op) {
  OpOperand *init = op.getDpsInitOperand(0);
  if (op->getNumResults() != 1 || !isTiledElementwise(op) ||
      op.payloadUsesValueFromOperand(init) ||
      getInPlaceInput(getWhole(init->get())))
    return nullptr;
  for (OpOperand *input : op.getDpsInputOperands()) {
    Value value = input->get();
    Operation *producer = value.getDefiningOp<DestinationStyleOpInterface>();
    if (!producer || producer->getBlock() != op->getBlock() ||
        value.getType() != op->getResult(0).getType())
      continue;
    bool isLast = llvm::all_of(value.getUses(), [&](OpOperand &use) {
      Operation *user = op->getBlock()->findAncestorOpInBlock(*use.getOwner());
      if (user == op)
        return op.isDpsInput(&use) && op.getMatchingIndexingMap(&use) ==
                                          op.getMatchingIndexingMap(init);
      return user && user->isBeforeInBlock(op);
    });
    if (isLast)
      return input;
  }
  return nullptr;
}

/// Moves the definition of the destination before the operation if its operands
/// allow it. Only definitions of a function's output, or of a slice of it, are
/// moved. Returns whether the destination is available there.
static bool moveBefore(RewriterBase &rewriter, Value destination,
                       Operation *op) {
  Operation *source = destination.getDefiningOp();
  if (!isa_and_present<bufferization::ToTensorOp, tensor::CastOp,
                       tensor::ExtractSliceOp>(source))
    return false;
  if (source->getBlock() != op->getBlock() || source->isBeforeInBlock(op))
    return true;
  bool isPossible = llvm::all_of(source->getOperands(), [&](Value operand) {
    Operation *inner = operand.getDefiningOp();
    return !inner || inner->getBlock() != op->getBlock() ||
           inner->isBeforeInBlock(op);
  });
  if (isPossible)
    rewriter.moveOpBefore(source, op);
  return isPossible;
}

/// Makes `destination` the init of the operation at the beginning of the
/// destination chain that computes `value`, if that operation does not read its
/// init.
static void setInitialDestination(RewriterBase &rewriter, Value destination,
                                  Value value) {
  for (;;) {
    auto result = dyn_cast<OpResult>(value);
    auto producer =
        result ? dyn_cast<DestinationStyleOpInterface>(result.getOwner())
               : nullptr;
    if (!producer)
      return;
    OpOperand *init = producer.getTiedOpOperand(result);
    if (isUnreadInit(producer, *init)) {
      if (init->get().getType() == destination.getType() &&
          moveBefore(rewriter, destination, producer))
        rewriter.modifyOpInPlace(producer, [&] { init->set(destination); });
      return;
    }
    if (!init->get().hasOneUse())
      return;
    value = init->get();
  }
}

/// Whether the input keeps scratch memory of its own: it has several users and
/// fits in the L1 cache. The output is then written once and never read, so it
/// can be stored with non-temporal stores.
static bool keepsScratch(linalg::LinalgOp op, Value input) {
  auto type = cast<RankedTensorType>(input.getType());
  return !llvm::hasSingleElement(input.getUsers()) && type.hasStaticShape() &&
         type.getNumElements() <=
             kMaxScratchBytes * 8 / type.getElementTypeBitWidth();
}

/// Lets an operation write its result over an input that has no later users.
static void reuseInput(RewriterBase &rewriter, linalg::GenericOp op) {
  OpOperand *input = findReusableInput(op);
  if (!input)
    return;
  if (keepsScratch(op, input->get())) {
    reportMissed(op, DEBUG_TYPE,
                 llvm::formatv("other operations read input #{0}, which stays "
                               "in the L1 cache",
                               input->getOperandNumber()));
    return;
  }
  reportChoice(
      op, DEBUG_TYPE,
      llvm::formatv("writes over its input #{0}", input->getOperandNumber()));
  Value destination = op.getDpsInitOperand(0)->get(), value = input->get();
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  SmallVector<unsigned> written;
  for (OpOperand *other : op.getDpsInputOperands()) {
    if (other->get() == value) {
      written.push_back(other->getOperandNumber());
      continue;
    }
    inputs.push_back(other->get());
    maps.push_back(op.getMatchingIndexingMap(other));
  }
  maps.push_back(op.getMatchingIndexingMap(op.getDpsInitOperand(0)));
  rewriter.setInsertionPoint(op);
  auto reused = linalg::GenericOp::create(rewriter, op.getLoc(),
                                          op->getResultTypes(), inputs, value,
                                          maps, op.getIteratorTypesArray());
  rewriter.inlineRegionBefore(op.getRegion(), reused.getRegion(),
                              reused.getRegion().begin());
  Block &body = reused.getRegion().front();
  for (unsigned number : llvm::reverse(written)) {
    rewriter.replaceAllUsesWith(body.getArgument(number),
                                body.getArguments().back());
    body.eraseArgument(number);
  }
  rewriter.replaceOp(op, reused->getResults());
  setInitialDestination(rewriter, destination, value);
}

namespace {
struct ReuseOperands final
    : mlir::posenc::impl::PosencReuseOperandsPassBase<ReuseOperands> {
  using Base::Base;

  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    SmallVector<linalg::GenericOp> operations;
    getOperation()->walk(
        [&](linalg::GenericOp op) { operations.push_back(op); });
    for (linalg::GenericOp op : operations)
      reuseInput(rewriter, op);
  }
};
} // namespace

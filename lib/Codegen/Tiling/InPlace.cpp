//===- InPlace.cpp - outputs that may overwrite inputs --------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A caller may pass the same memory for an input and an output if the signature
// allows it. In the IR, the two are separate tensors. An operation that reads
// such an input must therefore not move past the operation that writes the
// output, and no iteration of a loop may read what another iteration writes.
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/Tiling.h"
#include "posenc/IR/KernelConfig.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace mlir::posenc;

/// Returns the signature of the function with this argument, or null.
static AbiAttr getSignature(BlockArgument argument) {
  Operation *parent = argument.getOwner()->getParentOp();
  if (!isa_and_present<FunctionOpInterface>(parent))
    return nullptr;
  return getAbi(parent);
}

BlockArgument mlir::posenc::getInPlaceInput(Value destination) {
  while (auto cast = destination.getDefiningOp<tensor::CastOp>())
    destination = cast.getSource();
  auto toTensor = destination.getDefiningOp<bufferization::ToTensorOp>();
  auto argument =
      toTensor ? dyn_cast<BlockArgument>(toTensor.getBuffer()) : nullptr;
  AbiAttr abi = argument ? getSignature(argument) : AbiAttr();
  if (!abi)
    return nullptr;
  int64_t output =
      int64_t{argument.getArgNumber()} - int64_t(abi.getInputs().size());
  if (output < 0 || abi.getInPlace()[output] < 0)
    return nullptr;
  return argument.getOwner()->getArgument(abi.getInPlace()[output]);
}

bool mlir::posenc::isInPlaceInput(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  AbiAttr abi = argument ? getSignature(argument) : AbiAttr();
  return abi &&
         llvm::is_contained(abi.getInPlace(), int64_t{argument.getArgNumber()});
}

bool mlir::posenc::readsInPlaceInput(Operation *op) {
  return llvm::any_of(op->getOperands(), isInPlaceInput);
}

bool mlir::posenc::canWriteOver(linalg::LinalgOp op, Value input) {
  if (op->getNumResults() != 1 ||
      !(isTiledElementwise(op) || getRowReadLoop(op)))
    return false;
  AffineMap written = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  bool isRead = false;
  for (OpOperand &use : input.getUses()) {
    Operation *user = use.getOwner();
    if (user == op) {
      isRead |= op.isDpsInput(&use);
      if (op.getMatchingIndexingMap(&use) != written)
        return false;
      continue;
    }
    // Only destination-style users count as reads that are over: views of the
    // input may have users of their own, which are not followed here.
    bool isBefore = isa<DestinationStyleOpInterface>(user) &&
                    user->getBlock() == op->getBlock() &&
                    user->isBeforeInBlock(op);
    if (!isa<tensor::DimOp>(user) && !isBefore)
      return false;
  }
  return isRead;
}

bool mlir::posenc::isUnreadInit(DestinationStyleOpInterface dps,
                                OpOperand &init) {
  if (auto positional = dyn_cast<PositionalOpInterface>(dps.getOperation()))
    return !positional.readsDestinations();
  if (isa<linalg::SoftmaxOp>(dps.getOperation()))
    return true;
  auto linalgOp = dyn_cast<linalg::LinalgOp>(dps.getOperation());
  return linalgOp && !linalgOp.payloadUsesValueFromOperand(&init) &&
         linalgOp.getMatchingIndexingMap(&init).isPermutation();
}

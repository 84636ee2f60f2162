//===- SplitEmptyTensors.cpp - buffers with few uses ----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/Passes.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCSPLITEMPTYTENSORSPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;

/// Up to this number of uses, the analysis of one buffer takes little time.
static constexpr unsigned kMaxUses = 32;

/// Gives each kMaxUses uses an empty tensor of their own.
static void split(tensor::EmptyOp empty) {
  llvm::DenseMap<Operation *, SmallVector<OpOperand *, 1>> uses;
  SmallVector<Operation *> users;
  unsigned count = 0;
  for (OpOperand &use : empty->getUses()) {
    // Ancestors are in the block of the empty tensor, so they have an order.
    Operation *user = empty->getBlock()->findAncestorOpInBlock(*use.getOwner());
    if (!user)
      return;
    SmallVector<OpOperand *, 1> &ofUser = uses[user];
    if (ofUser.empty())
      users.push_back(user);
    ofUser.push_back(&use);
    ++count;
  }
  if (count <= kMaxUses)
    return;
  llvm::sort(users,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  OpBuilder builder(empty);
  Operation *last = empty;
  unsigned numUses = 0;
  for (Operation *user : users) {
    if (numUses >= kMaxUses) {
      builder.setInsertionPointAfter(last);
      last = builder.clone(*empty);
      numUses = 0;
    }
    numUses += uses[user].size();
    for (OpOperand *use : uses[user])
      use->set(last->getResult(0));
  }
}

namespace {
struct SplitEmptyTensors final
    : mlir::posenc::impl::PosencSplitEmptyTensorsPassBase<SplitEmptyTensors> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<tensor::EmptyOp> tensors;
    getOperation().walk(
        [&](tensor::EmptyOp empty) { tensors.push_back(empty); });
    for (tensor::EmptyOp empty : tensors)
      split(empty);
  }
};
} // namespace

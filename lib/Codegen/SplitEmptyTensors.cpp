//===- SplitEmptyTensors.cpp - buffers with few uses ----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/Passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCSPLITEMPTYTENSORSPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;

/// Up to this number of uses, the analysis of one buffer takes little time: it
/// grows with the cube. 16 layers with codes of 4 bits take a fourth less time
/// than with 32.
static constexpr unsigned kMaxUses = 8;

namespace {
/// The tensors of a function that have no elements yet, or only scalars that an
/// operation repeats, such as the zeros that the sums of products start from.
/// Making such a tensor again costs no more than the copy of it that
/// bufferization inserts for each operation that writes to it.
class FilledTensors {
public:
  /// Adds the results of the function's operations.
  void add(Operation *function);
  /// Gives each use, or each kMaxUses uses in loops, a tensor of their own.
  void split() const;

private:
  bool contains(Value value) const;
  bool fills(Operation *op) const;
  bool fillsSlices(scf::ForallOp loop) const;

  llvm::DenseSet<Value> tensors;
  /// Producers come before their users.
  SmallVector<Operation *> producers;
};
} // namespace

/// Whether the value is a scalar, or a vector that repeats a constant.
static bool isScalar(Value value) {
  return value.getType().isIntOrIndexOrFloat() ||
         (isa<VectorType>(value.getType()) &&
          matchPattern(value, m_Constant()));
}

bool FilledTensors::contains(Value value) const {
  return isScalar(value) || tensors.contains(value);
}

/// Whether all iterations write scalars to their slices, and compute no more
/// than offsets and such scalars.
bool FilledTensors::fillsSlices(scf::ForallOp loop) const {
  auto isShaped = [](Type type) { return isa<ShapedType>(type); };
  for (Operation &op : loop.getTerminator().getBody()->getOperations()) {
    auto insert = dyn_cast<tensor::ParallelInsertSliceOp>(op);
    Operation *slice = insert ? insert.getSource().getDefiningOp() : nullptr;
    if (!slice || slice->getBlock() != loop.getBody())
      return false;
  }
  for (Operation &op : *loop.getBody()) {
    if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op);
        slice &&
        llvm::is_contained(loop.getRegionIterArgs(), slice.getSource()))
      continue;
    if (isa<linalg::FillOp, vector::TransferWriteOp>(op)) {
      if (llvm::all_of(op.getOperands(), [&](Value operand) {
            Operation *slice = operand.getDefiningOp();
            return isScalar(operand) ||
                   (slice && slice->getBlock() == loop.getBody());
          }))
        continue;
      return false;
    }
    if (!isa<scf::InParallelOp>(op) &&
        (!isMemoryEffectFree(&op) || op.getNumRegions() ||
         !llvm::all_of(op.getResults(), isScalar) ||
         llvm::any_of(op.getOperandTypes(), isShaped)))
      return false;
  }
  return true;
}

bool FilledTensors::fills(Operation *op) const {
  if (isa<tensor::EmptyOp>(op))
    return true;
  if (!llvm::all_of(op->getOperands(),
                    [&](Value operand) { return contains(operand); }))
    return false;
  if (auto loop = dyn_cast<scf::ForallOp>(op))
    return loop->getNumResults() == 1 && fillsSlices(loop);
  return op->getNumResults() == 1 &&
         isa<linalg::FillOp, vector::TransferWriteOp, tensor::InsertSliceOp>(
             op);
}

void FilledTensors::add(Operation *function) {
  function->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (!fills(op))
      return;
    tensors.insert(op->getResult(0));
    producers.push_back(op);
  });
}

/// Gives each kMaxUses uses of the result an operation of their own. In the
/// block of the function, each user has one, so that posenc-plan-workspace
/// finds short lifetimes.
static void splitUses(Operation *producer) {
  unsigned maxUses =
      isa<FunctionOpInterface>(producer->getParentOp()) ? 1 : kMaxUses;
  llvm::DenseMap<Operation *, SmallVector<OpOperand *, 1>> uses;
  SmallVector<Operation *> users;
  unsigned count = 0;
  for (OpOperand &use : producer->getUses()) {
    // Ancestors are in the producer's block, so they have an order.
    Operation *user =
        producer->getBlock()->findAncestorOpInBlock(*use.getOwner());
    if (!user)
      return;
    SmallVector<OpOperand *, 1> &ofUser = uses[user];
    if (ofUser.empty())
      users.push_back(user);
    ofUser.push_back(&use);
    ++count;
  }
  if (count <= maxUses)
    return;
  llvm::sort(users,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  OpBuilder builder(producer);
  Operation *last = producer;
  unsigned numUses = 0;
  for (Operation *user : users) {
    if (numUses >= maxUses) {
      // A filled tensor occupies memory from its fill on.
      if (isa<tensor::EmptyOp>(producer))
        builder.setInsertionPointAfter(last);
      else
        builder.setInsertionPoint(user);
      last = builder.clone(*producer);
      numUses = 0;
    }
    numUses += uses[user].size();
    for (OpOperand *use : uses[user])
      use->set(last->getResult(0));
  }
}

void FilledTensors::split() const {
  // Splitting a user adds uses of its operands.
  for (Operation *producer : llvm::reverse(producers))
    splitUses(producer);
}

namespace {
struct SplitEmptyTensors final
    : mlir::posenc::impl::PosencSplitEmptyTensorsPassBase<SplitEmptyTensors> {
  using Base::Base;

  void runOnOperation() override {
    FilledTensors tensors;
    tensors.add(getOperation());
    tensors.split();
  }
};
} // namespace

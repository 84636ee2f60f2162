//===- PlanMemory.cpp - intermediate tensors that share memory ------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PlanMemory.h"

#include "LoopSizes.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Bufferization/Transforms/BufferViewFlowAnalysis.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace mlir::posenc;

namespace {
/// The numbers of the operations of a block that use memory first and last.
struct Lifetime {
  unsigned begin = UINT_MAX, end = 0;
};

/// Finds when the operations of a block use memory.
class Lifetimes {
public:
  explicit Lifetimes(Block &block)
      : block(block), analysis(block.getParentOp()) {
    for (auto [number, op] : llvm::enumerate(block))
      numbers[&op] = number;
  }

  Lifetime find(memref::AllocOp alloc) const;

private:
  Block &block;
  BufferViewFlowAnalysis analysis;
  DenseMap<Operation *, unsigned> numbers;
};
} // namespace

Lifetime Lifetimes::find(memref::AllocOp alloc) const {
  Lifetime lifetime;
  auto addUse = [&](Operation *user) {
    unsigned number = numbers.lookup(block.findAncestorOpInBlock(*user));
    lifetime.begin = std::min(lifetime.begin, number);
    lifetime.end = std::max(lifetime.end, number);
  };
  for (Value view : analysis.resolve(alloc.getMemref()))
    for (Operation *user : view.getUsers()) {
      // Memory is needed by the users of a view, not where the view is created.
      if (isa<memref::DimOp, ViewLikeOpInterface>(user))
        continue;
      addUse(user);
      if (!isa<memref::ExtractAlignedPointerAsIndexOp>(user))
        continue;
      // Users of an address may access the memory.
      SetVector<Operation *> users;
      getForwardSlice(user, &users);
      llvm::for_each(users, addUse);
    }
  return lifetime;
}

/// Whether tensors have the same bytes for all values of their dynamic sizes.
static bool haveSameBytes(memref::AllocOp a, memref::AllocOp b) {
  auto getSizes = [](memref::AllocOp alloc) {
    SmallVector<void *> sizes;
    for (Value size : alloc.getDynamicSizes())
      sizes.push_back(size.getAsOpaquePointer());
    llvm::sort(sizes);
    return sizes;
  };
  std::optional<int64_t> bytes = getStaticBytes(a.getType());
  return bytes && bytes == getStaticBytes(b.getType()) &&
         getSizes(a) == getSizes(b);
}

void mlir::posenc::sinkMemory(FunctionOpInterface function) {
  Block &block = function.getFunctionBody().front();
  auto isMemory = [](Operation *op) {
    return isa<memref::AllocOp, ViewLikeOpInterface>(op);
  };
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
    if (!isMemory(&op) || op.use_empty())
      continue;
    Operation *first = nullptr;
    for (Operation *user : op.getUsers()) {
      user = block.findAncestorOpInBlock(*user);
      if (!first || user->isBeforeInBlock(first))
        first = user;
    }
    Operation *next = op.getNextNode();
    while (next != first && isMemory(next))
      next = next->getNextNode();
    if (next != first)
      op.moveBefore(first);
  }
}

SmallVector<PlannedMemory>
mlir::posenc::planMemory(FunctionOpInterface function) {
  Block &block = function.getFunctionBody().front();
  Lifetimes lifetimes(block);
  SmallVector<PlannedMemory> plan;
  // The tensors whose memory none has taken over, and when they are used.
  SmallVector<std::pair<size_t, Lifetime>> owners;
  for (auto alloc : block.getOps<memref::AllocOp>()) {
    Lifetime lifetime = lifetimes.find(alloc);
    auto *owner = llvm::find_if(owners, [&](const auto &owner) {
      return owner.second.end < lifetime.begin &&
             haveSameBytes(plan[owner.first].alloc, alloc);
    });
    std::optional<size_t> predecessor;
    if (owner == owners.end())
      owner = &owners.emplace_back();
    else
      predecessor = owner->first;
    *owner = {plan.size(), lifetime};
    plan.push_back({alloc, predecessor});
  }
  return plan;
}

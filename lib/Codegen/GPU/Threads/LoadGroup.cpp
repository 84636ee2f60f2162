//===- LoadGroup.cpp - loads that are under way at once -------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoadGroup.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;
using namespace mlir::posenc;

static bool isLoad(Operation *op) {
  return isa<memref::LoadOp, vector::LoadOp>(op);
}

LoadGroup::LoadGroup(ThreadBuilder &builder, int64_t maxRegisters)
    : b(builder), maxRegisters(maxRegisters),
      block(builder.getInsertionBlock()) {
  start();
}

void LoadGroup::start() {
  Block::iterator here = b.getInsertionPoint();
  before = here == block->begin() ? nullptr : &*std::prev(here);
}

/// Returns the operations of the group in their order.
SmallVector<Operation *> LoadGroup::getOperations() {
  Block::iterator first =
      before ? std::next(before->getIterator()) : block->begin();
  SmallVector<Operation *> all;
  for (Operation &op : llvm::make_range(first, b.getInsertionPoint()))
    all.push_back(&op);
  return all;
}

void LoadGroup::endItem() {
  int64_t registers = 0;
  for (Operation *op : getOperations()) {
    if (!isLoad(op))
      continue;
    Type type = op->getResult(0).getType();
    auto shape = dyn_cast<VectorType>(type);
    int64_t bits = getElementTypeOrSelf(type).getIntOrFloatBitWidth() *
                   (shape ? shape.getNumElements() : 1);
    registers += llvm::divideCeil(bits, 32);
  }
  if (registers < maxRegisters)
    return;
  finish();
  start();
}

/// Moves the loads, and what their addresses depend on, before the other
/// operations: first the loads that depend on no other, then those that need
/// the results of these, and so on.
void LoadGroup::finish() {
  constexpr unsigned kNever = std::numeric_limits<unsigned>::max();
  SmallVector<Operation *> all = getOperations();
  // The number of loads that precede an operation in its longest chain.
  DenseMap<Operation *, unsigned> trips;
  // The trips of the first loads whose addresses depend on an operation.
  DenseMap<Operation *, unsigned> order;
  auto forEachOperand = [&](Operation *op, function_ref<void(Operation *)> f) {
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (Operation *def = operand.getDefiningOp())
          if (Operation *outer = block->findAncestorOpInBlock(*def))
            if (trips.contains(outer))
              f(outer);
    });
  };
  for (Operation *op : all) {
    unsigned maxTrips = 0;
    forEachOperand(op, [&](Operation *def) {
      maxTrips = std::max(maxTrips, trips[def] + isLoad(def));
    });
    trips[op] = maxTrips;
    order[op] = isLoad(op) ? maxTrips : kNever;
  }
  for (Operation *op : llvm::reverse(all))
    if (order[op] != kNever)
      forEachOperand(op, [&](Operation *def) {
        order[def] = std::min(order[def], order[op]);
      });
  SmallVector<std::pair<unsigned, unsigned>> sorted;
  for (auto [number, op] : llvm::enumerate(all))
    sorted.emplace_back(order[op], number);
  llvm::sort(sorted);
  for (auto [first, number] : sorted)
    all[number]->moveBefore(block, b.getInsertionPoint());
}

//===- InterleaveTiles.cpp - vector operations among products of tiles ----===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The order is right by construction: placing an operation first places all
// operations that it depends on, so the sequence in which operations are asked
// for decides about speed only.
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/Passes.h"
#include "posenc/Numerics/BF16Weights.h"

#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCINTERLEAVETILESPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

//===----------------------------------------------------------------------===//
// Accesses of memory
//===----------------------------------------------------------------------===//

namespace {
/// A read or a write of a memref. Of the indices, those before the last two are
/// the same for all elements of the access.
struct TileAccess {
  Value memory;
  ValueRange indices;
  bool isWrite;
};
} // namespace

/// Returns the accesses of an operation, or nullopt if they are not known.
static std::optional<SmallVector<TileAccess>> getAccesses(Operation *op) {
  // Zeroing or loading a tile writes no memory, whatever the effects say that
  // keep LLVM from sharing its register.
  if (auto load = dyn_cast<amx::TileLoadOp>(op))
    return SmallVector<TileAccess>{{load.getBase(), load.getIndices(), false}};
  if (auto store = dyn_cast<amx::TileStoreOp>(op))
    return SmallVector<TileAccess>{{store.getBase(), store.getIndices(), true}};
  if (isa<amx::TileZeroOp>(op) || isMemoryEffectFree(op) ||
      isVectorIntrinsic(op))
    return SmallVector<TileAccess>();
  if (auto load = dyn_cast<vector::LoadOp>(op))
    return SmallVector<TileAccess>{{load.getBase(), load.getIndices(), false}};
  if (auto store = dyn_cast<vector::StoreOp>(op))
    return SmallVector<TileAccess>{{store.getBase(), store.getIndices(), true}};
  if (auto load = dyn_cast<memref::LoadOp>(op))
    return SmallVector<TileAccess>{
        {load.getMemRef(), load.getIndices(), false}};
  if (auto store = dyn_cast<memref::StoreOp>(op))
    return SmallVector<TileAccess>{
        {store.getMemRef(), store.getIndices(), true}};
  return std::nullopt;
}

/// Collects the allocations and arguments of functions that `memory` may be a
/// view of; returns false if it may be of others.
static bool collectObjects(Value memory, SmallPtrSetImpl<Value> &objects) {
  if (auto view = memory.getDefiningOp<ViewLikeOpInterface>())
    return collectObjects(view.getViewSource(), objects);
  if (auto distinct = memory.getDefiningOp<memref::DistinctObjectsOp>())
    return collectObjects(
        distinct.getOperands()[cast<OpResult>(memory).getResultNumber()],
        objects);
  if (auto select = memory.getDefiningOp<arith::SelectOp>())
    return collectObjects(select.getTrueValue(), objects) &&
           collectObjects(select.getFalseValue(), objects);
  auto argument = dyn_cast<BlockArgument>(memory);
  if (argument ? !isa<func::FuncOp>(argument.getOwner()->getParentOp())
               : !memory.getDefiningOp<memref::AllocaOp>())
    return false;
  objects.insert(memory);
  return true;
}

/// Returns the result of a `memref.distinct_objects` that `memory` is a view
/// of, or null.
static OpResult getDistinct(Value memory) {
  while (auto view = memory.getDefiningOp<ViewLikeOpInterface>())
    memory = view.getViewSource();
  if (memory.getDefiningOp<memref::DistinctObjectsOp>())
    return cast<OpResult>(memory);
  return {};
}

/// Whether two accesses of the same memref differ in a constant index.
static bool areApart(const TileAccess &a, const TileAccess &b) {
  constexpr size_t inner = 2;
  if (a.memory != b.memory || a.indices.size() <= inner)
    return false;
  return llvm::any_of(
      llvm::zip_equal(a.indices.drop_back(inner), b.indices.drop_back(inner)),
      [](auto pair) {
        auto x = getConstantIntValue(std::get<0>(pair));
        auto y = getConstantIntValue(std::get<1>(pair));
        return x && y && *x != *y;
      });
}

static bool mayConflict(const TileAccess &a, const TileAccess &b) {
  if ((!a.isWrite && !b.isWrite) || areApart(a, b))
    return false;
  OpResult x = getDistinct(a.memory), y = getDistinct(b.memory);
  if (x && y && x != y && x.getOwner() == y.getOwner())
    return false;
  SmallPtrSet<Value, 2> first, second;
  if (!collectObjects(a.memory, first) || !collectObjects(b.memory, second))
    return true;
  // Two arguments may be the same memory.
  auto isArgument = [](Value object) { return isa<BlockArgument>(object); };
  if (llvm::any_of(first, isArgument) && llvm::any_of(second, isArgument))
    return true;
  return llvm::any_of(first,
                      [&](Value object) { return second.contains(object); });
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

namespace {
/// Consecutive operations of a block, all with known effects.
class Segment {
public:
  explicit Segment(ArrayRef<Operation *> operations);
  /// Places the operations in their new order before `end`.
  void interleave(Operation *end);

private:
  /// Places an operation after those that it depends on.
  void place(Operation *op);
  /// Whether a sum starts from the result of `op`.
  static bool startsSum(Operation *op);

  ArrayRef<Operation *> operations;
  /// The earlier operations that each depends on.
  DenseMap<Operation *, SmallVector<Operation *>> dependences;
  /// The stores of finished sums.
  SmallVector<Operation *> stores;
  llvm::SetVector<Operation *> placed;
};
} // namespace

Segment::Segment(ArrayRef<Operation *> operations) : operations(operations) {
  SmallVector<std::pair<Operation *, TileAccess>> before;
  DenseSet<Operation *> all(operations.begin(), operations.end());
  for (Operation *op : operations) {
    SmallVector<Operation *> &needed = dependences[op];
    for (Value operand : op->getOperands())
      if (Operation *producer = operand.getDefiningOp();
          producer && all.contains(producer))
        needed.push_back(producer);
    SmallVector<TileAccess> accesses = *getAccesses(op);
    for (const TileAccess &access : accesses) {
      for (const auto &[earlier, other] : before)
        if (mayConflict(access, other))
          needed.push_back(earlier);
      before.push_back({op, access});
    }
  }
}

bool Segment::startsSum(Operation *op) {
  if (!isa<amx::TileZeroOp, amx::TileLoadOp>(op) || !op->hasOneUse())
    return false;
  auto product = dyn_cast<amx::TileMulFOp>(*op->getUsers().begin());
  return product && product.getAcc() == op->getResult(0);
}

void Segment::place(Operation *op) {
  if (placed.contains(op))
    return;
  if (startsSum(op) && !stores.empty()) {
    Operation *store = stores.front();
    stores.erase(stores.begin());
    place(store);
  }
  for (Operation *needed : dependences[op])
    place(needed);
  placed.insert(op);
}

void Segment::interleave(Operation *end) {
  SmallVector<Operation *> tiles, others;
  size_t numProducts = 0;
  for (Operation *op : operations) {
    auto isVector = [](Type type) { return isa<VectorType>(type); };
    if (isa<amx::AMXDialect>(op->getDialect())) {
      tiles.push_back(op);
      numProducts += isa<amx::TileMulFOp>(op);
    } else if (!isMemoryEffectFree(op) ||
               llvm::any_of(op->getOperandTypes(), isVector) ||
               llvm::any_of(op->getResultTypes(), isVector)) {
      others.push_back(op);
    }
  }
  if (numProducts < 2 || others.empty())
    return;
  ArrayRef<Operation *> rest(others);
  size_t products = 0;
  for (Operation *op : tiles) {
    if (isa<amx::TileStoreOp>(op)) {
      stores.push_back(op);
      continue;
    }
    // Its first product places it.
    if (startsSum(op))
      continue;
    place(op);
    if (!isa<amx::TileMulFOp>(op))
      continue;
    ++products;
    size_t share = others.size() * products / numProducts;
    while (others.size() - rest.size() < share) {
      place(rest.front());
      rest = rest.drop_front();
    }
  }
  // Stores of the last sums, and scalars that no operation of the segment uses.
  for (Operation *op : operations)
    place(op);
  for (Operation *op : placed)
    op->moveBefore(end);
}

namespace {
struct InterleaveTiles final
    : mlir::posenc::impl::PosencInterleaveTilesPassBase<InterleaveTiles> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<Block *> blocks;
    getOperation().walk([&](amx::TileMulFOp product) {
      if (!llvm::is_contained(blocks, product->getBlock()))
        blocks.push_back(product->getBlock());
    });
    for (Block *block : blocks)
      interleave(*block);
    getOperation().walk([](memref::DistinctObjectsOp op) {
      op->replaceAllUsesWith(op.getOperands());
      op->erase();
    });
  }

private:
  static void interleave(Block &block) {
    SmallVector<Operation *> operations;
    for (Operation &op : llvm::make_early_inc_range(block)) {
      bool isKnown = op.getNumRegions() == 0 &&
                     !op.hasTrait<OpTrait::IsTerminator>() && getAccesses(&op);
      if (isKnown) {
        operations.push_back(&op);
        continue;
      }
      Segment(operations).interleave(&op);
      operations.clear();
    }
    // Every block ends with a terminator, which is no part of a segment.
    assert(operations.empty() && "expected a terminator");
  }
};
} // namespace

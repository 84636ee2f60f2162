//===- OutlineLoops.cpp - outlining of loops into functions ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Transforms/RegionUtils.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCOUTLINELOOPSPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;

/// Up to this number of loops, LLVM compiles one function as fast as one
/// function per loop.
static constexpr size_t kMaxLoops = 8;

namespace {
/// A loop, preceded by operations that only the loop uses: allocas and the
/// initial stores to them.
using OutlinedOps = SmallVector<Operation *>;
} // namespace

static bool isLoop(Operation &op) {
  if (op.getNumResults() != 0)
    return false;
  return isa<scf::ForOp>(op) ||
         (isa<scf::IfOp>(op) && op.walk([](scf::ForOp) {
                                    return WalkResult::interrupt();
                                  }).wasInterrupted());
}

/// Returns the loop if the alloca's users are a single loop of its block and
/// stores before that loop, else null. The stores are added to `stores`.
static Operation *getOnlyLoop(memref::AllocaOp alloca, OutlinedOps &stores) {
  Operation *loop = nullptr;
  for (Operation *user : alloca->getUsers()) {
    Operation *top = alloca->getBlock()->findAncestorOpInBlock(*user);
    auto store = dyn_cast_if_present<memref::StoreOp>(top);
    if (store && store.getMemRef() == alloca && store.getValue() != alloca)
      stores.push_back(store);
    else if (!top || (loop && loop != top) || !isLoop(*top))
      return nullptr;
    else
      loop = top;
  }
  bool areBefore = loop && llvm::all_of(stores, [&](Operation *store) {
                     return store->isBeforeInBlock(loop);
                   });
  return areBefore ? loop : nullptr;
}

/// Returns the loops of the block if there are more than kMaxLoops, else
/// nothing.
static SmallVector<OutlinedOps> findOutlinedOps(Block &block) {
  SmallVector<OutlinedOps> parts;
  DenseMap<Operation *, size_t> numbers;
  for (Operation &op : block) {
    if (!isLoop(op))
      continue;
    numbers[&op] = parts.size();
    parts.push_back({&op});
  }
  if (parts.size() <= kMaxLoops)
    return {};
  for (auto alloca : block.getOps<memref::AllocaOp>()) {
    OutlinedOps stores;
    Operation *loop = getOnlyLoop(alloca, stores);
    if (!loop)
      continue;
    OutlinedOps &part = parts[numbers[loop]];
    part.push_back(alloca);
    part.append(stores);
  }
  for (OutlinedOps &part : parts)
    llvm::sort(
        part, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return parts;
}

/// Moves the operations to a new function, which is inserted before `next`, and
/// calls it. Constants are cloned; other values from outside become arguments.
static void outline(IRRewriter &rewriter, const OutlinedOps &part,
                    func::FuncOp function, Block::iterator next,
                    SymbolTable &symbols) {
  Location loc = part.back()->getLoc();
  rewriter.setInsertionPointAfter(part.back());
  auto region =
      scf::ExecuteRegionOp::create(rewriter, loc, /*resultTypes=*/TypeRange());
  Block *body = rewriter.createBlock(&region.getRegion());
  for (Operation *op : part)
    rewriter.moveOpBefore(op, body, body->end());
  func::ReturnOp::create(rewriter, loc);
  // makeRegionIsolatedFromAbove does not replace uses in nested regions.
  SetVector<Value> used;
  getUsedValuesDefinedAbove(region.getRegion(), used);
  SmallVector<Value> captured;
  IRMapping inside;
  for (Value value : used) {
    Operation *op = value.getDefiningOp();
    if (op && (op->hasTrait<OpTrait::ConstantLike>() ||
               isa<memref::GetGlobalOp>(op))) {
      rewriter.setInsertionPointToStart(body);
      inside.map(value, rewriter.clone(*op)->getResult(0));
    } else {
      captured.push_back(value);
      inside.map(value, body->addArgument(value.getType(), loc));
    }
  }
  // Constants have uses in all loops, so the uses in this one are not looked up
  // among those of the value.
  region.getRegion().walk([&](Operation *op) {
    for (OpOperand &operand : op->getOpOperands())
      operand.set(inside.lookupOrDefault(operand.get()));
  });

  // Names with two leading underscores are reserved for the library.
  auto outlined =
      func::FuncOp::create(loc, ("__part_of_" + function.getName()).str(),
                           rewriter.getFunctionType(TypeRange(captured), {}));
  outlined.setPrivate();
  // LLVM's inliner would undo the outlining. `passthrough` is used because
  // func.func's `no_inline` attribute is not converted to LLVM.
  outlined->setAttr("passthrough", rewriter.getStrArrayAttr({"noinline"}));
  symbols.insert(outlined, next);
  outlined.getBody().takeBody(region.getRegion());
  rewriter.setInsertionPoint(region);
  func::CallOp::create(rewriter, loc, outlined, captured);
  rewriter.eraseOp(region);
}

namespace {
struct OutlineLoops final
    : mlir::posenc::impl::PosencOutlineLoopsPassBase<OutlineLoops> {
  using Base::Base;

  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    IRRewriter rewriter(&getContext());
    for (auto function :
         llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>())) {
      SmallVector<OutlinedOps> parts;
      function->walk(
          [&](Block *block) { parts.append(findOutlinedOps(*block)); });
      auto next = std::next(function->getIterator());
      for (const OutlinedOps &part : parts)
        outline(rewriter, part, function, next, symbols);
    }
  }
};
} // namespace

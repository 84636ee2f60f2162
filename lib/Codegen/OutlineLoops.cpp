//===- OutlineLoops.cpp - functions of many loops in parts ------*- C++ -*-===//
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
#include "mlir/IR/SymbolTable.h"
#include "mlir/Transforms/RegionUtils.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCOUTLINELOOPSPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;

/// Compiling up to this number of loops in one function takes no longer than
/// one by one.
static constexpr size_t kMaxLoops = 8;

namespace {
/// A loop, preceded by operations that only it uses: allocas and the initial
/// stores to them.
using Part = SmallVector<Operation *>;
} // namespace

static bool isLoop(Operation &op) {
  if (op.getNumResults() != 0)
    return false;
  return isa<scf::ForOp>(op) ||
         (isa<scf::IfOp>(op) && op.walk([](scf::ForOp) {
                                    return WalkResult::interrupt();
                                  }).wasInterrupted());
}

/// Returns the only loop of the block that uses the memory, or null. The
/// block's other uses are stores before it, which are added to `stores`.
static Operation *getOnlyLoop(memref::AllocaOp alloca, Part &stores) {
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

/// The loops of the block, if they are too many.
static SmallVector<Part> findParts(Block &block) {
  SmallVector<Part> parts;
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
    Part stores;
    Operation *loop = getOnlyLoop(alloca, stores);
    if (!loop)
      continue;
    Part &part = parts[numbers[loop]];
    part.push_back(alloca);
    part.append(stores);
  }
  for (Part &part : parts)
    llvm::sort(
        part, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return parts;
}

/// Moves a part to a new function after `next` and calls it. Constants are
/// cloned; other values from outside become arguments.
static void outline(IRRewriter &rewriter, const Part &part,
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
  for (Value value : used) {
    Operation *op = value.getDefiningOp();
    Value inside;
    if (op && (op->hasTrait<OpTrait::ConstantLike>() ||
               isa<memref::GetGlobalOp>(op))) {
      rewriter.setInsertionPointToStart(body);
      inside = rewriter.clone(*op)->getResult(0);
    } else {
      captured.push_back(value);
      inside = body->addArgument(value.getType(), loc);
    }
    replaceAllUsesInRegionWith(value, inside, region.getRegion());
  }

  // Names with two leading underscores are the library's own.
  auto outlined =
      func::FuncOp::create(loc, ("__part_of_" + function.getName()).str(),
                           rewriter.getFunctionType(TypeRange(captured), {}));
  outlined.setPrivate();
  // The inliner would undo the pass. The attribute of func.func for this is not
  // converted to LLVM.
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
      SmallVector<Part> parts;
      function->walk([&](Block *block) { parts.append(findParts(*block)); });
      auto next = std::next(function->getIterator());
      for (const Part &part : parts)
        outline(rewriter, part, function, next, symbols);
    }
  }
};
} // namespace

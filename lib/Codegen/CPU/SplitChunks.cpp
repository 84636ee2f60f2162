//===- SplitChunks.cpp - parts of a kernel ----------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VectorTarget.h"

#include "posenc/Codegen/Passes.h"
#include "posenc/IR/Posenc.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCSPLITCHUNKSPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

/// Whether each chunk may do it for itself: of memory it touches only what is
/// on its own stack.
static bool isOfChunk(Operation *op) {
  if (auto store = dyn_cast<memref::StoreOp>(op))
    return store.getMemRef().getDefiningOp<memref::AllocaOp>();
  return isPure(op) || isa<memref::AllocaOp>(op);
}

namespace {
/// The only loop over positions of a function that does nothing else but what
/// depends on conditions, before the loop.
struct Work {
  scf::ForallOp forall;
  SmallVector<scf::IfOp> before;
  /// What needs all iterations, and the memory that they leave something in.
  scf::ExecuteRegionOp after;
  memref::AllocaOp shared;
};
} // namespace

/// The work of a function; without a loop if it is something else.
static Work getWork(FunctionOpInterface function) {
  Work work;
  if (!llvm::hasSingleElement(function.getFunctionBody()))
    return {};
  for (Operation &op :
       function.getFunctionBody().front().without_terminator()) {
    auto branch = dyn_cast<scf::IfOp>(op);
    if (auto forall = dyn_cast<scf::ForallOp>(op)) {
      if (work.forall)
        return {};
      work.forall = forall;
    } else if (op.hasAttr(kAfterAttrName)) {
      auto after = dyn_cast<scf::ExecuteRegionOp>(op);
      if (!after || !work.forall || work.after || after.getNumResults() != 0 ||
          !after.getRegion().hasOneBlock())
        return {};
      work.after = after;
    } else if (branch && !work.forall && branch.getNumResults() == 0 &&
               !branch.elseBlock()) {
      work.before.push_back(branch);
    } else if (!isOfChunk(&op)) {
      return {};
    } else if (op.hasAttr(kSharedAttrName)) {
      if (work.shared)
        return {};
      work.shared = dyn_cast<memref::AllocaOp>(op);
    }
  }
  // Memory of a library's caller is a plain buffer.
  if (work.shared && !work.shared.getType().hasStaticShape())
    return {};
  return work;
}

/// Lets the first chunk do all iterations, and what comes before them, where
/// there is something: others cannot wait for it. The rewriter stands in front
/// of the loop from `first` to `last`.
static void joinChunks(RewriterBase &rewriter, ArrayRef<scf::IfOp> before,
                       Value chunk, Value total, Value &first, Value &last) {
  Location loc = chunk.getLoc();
  auto isFirstChunk = [&]() -> Value {
    Value zero = arith::ConstantIndexOp::create(rewriter, loc, 0);
    return arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::eq, chunk,
                                 zero);
  };
  Value isJoined;
  for (scf::IfOp branch : before) {
    Value condition = branch.getCondition();
    isJoined =
        isJoined
            ? Value(arith::OrIOp::create(rewriter, loc, isJoined, condition))
            : condition;
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPoint(branch);
    Value both =
        arith::AndIOp::create(rewriter, loc, condition, isFirstChunk());
    rewriter.modifyOpInPlace(
        branch, [&] { branch.getConditionMutable().assign(both); });
  }
  Value zero = arith::ConstantIndexOp::create(rewriter, loc, 0);
  Value mine =
      arith::SelectOp::create(rewriter, loc, isFirstChunk(), zero, total);
  first = arith::SelectOp::create(rewriter, loc, isJoined, mine, first);
  last = arith::SelectOp::create(rewriter, loc, isJoined, total, last);
}

namespace {
struct SplitChunks final
    : mlir::posenc::impl::PosencSplitChunksPassBase<SplitChunks> {
  using Base::Base;

  void runOnOperation() override {
    FunctionOpInterface function = getOperation();
    if (!function->hasAttr(PosencDialect::kAbiAttrName) ||
        function->hasAttr(PosencDialect::kChunkedAttrName) ||
        function.isExternal())
      return;
    auto [forall, before, after, shared] = getWork(function);
    if (!forall || forall.getNumResults() != 0 || forall.getRank() == 0 ||
        !llvm::all_of(forall.getMixedLowerBound(), isZeroInteger))
      return;

    IRRewriter rewriter(&getContext());
    Location loc = forall.getLoc();
    if (shared) {
      unsigned number = function.getNumArguments();
      MemRefType type = shared.getType();
      if (failed(function.insertArgument(number, type, {}, loc)))
        return signalPassFailure();
      int64_t bytes = type.getNumElements() * type.getElementTypeBitWidth() / 8;
      function->setAttr(PosencDialect::kSharedAttrName,
                        rewriter.getI64IntegerAttr(bytes));
      rewriter.replaceOp(shared, function.getArgument(number));
    }
    unsigned numArguments = function.getNumArguments();
    Type index = rewriter.getIndexType();
    for (unsigned i : {0, 1})
      if (failed(function.insertArgument(numArguments + i, index, {}, loc)))
        return signalPassFailure();
    Value chunk = function.getArgument(numArguments);
    Value numChunks = function.getArgument(numArguments + 1);
    // Of caches that are copied only where they are not updated in place, what
    // is new counts.
    bool isByInputs = !before.empty() || forall->hasAttr(kByInputsAttrName);
    function->setAttr(PosencDialect::kChunkedAttrName,
                      isByInputs ? Attribute(rewriter.getStringAttr("inputs"))
                                 : rewriter.getUnitAttr());

    // Iterations [total*chunk/numChunks, total*(chunk+1)/numChunks).
    rewriter.setInsertionPoint(forall);
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(rewriter, loc, value);
    };
    SmallVector<Value> steps =
        getValueOrCreateConstantIndexOp(rewriter, loc, forall.getMixedStep());
    SmallVector<Value> sizes = getValueOrCreateConstantIndexOp(
        rewriter, loc, forall.getMixedUpperBound());
    for (auto [size, step] : llvm::zip_equal(sizes, steps))
      size = rewriter.createOrFold<arith::CeilDivSIOp>(loc, size, step);
    Value total = sizes.front();
    for (Value size : ArrayRef(sizes).drop_front())
      total = arith::MulIOp::create(rewriter, loc, total, size);
    auto bound = [&](Value of) -> Value {
      Value product = arith::MulIOp::create(rewriter, loc, total, of);
      return arith::DivUIOp::create(rewriter, loc, product, numChunks);
    };
    Value first = bound(chunk);
    Value last =
        bound(arith::AddIOp::create(rewriter, loc, chunk, constant(1)));
    if (!before.empty())
      joinChunks(rewriter, before, chunk, total, first, last);
    if (after) {
      // One more chunk, when all others are done, is what comes after them.
      last = arith::MinSIOp::create(rewriter, loc, last, total);
      rewriter.setInsertionPoint(after);
      Value isLast = arith::CmpIOp::create(
          rewriter, loc, arith::CmpIPredicate::eq, chunk, numChunks);
      auto branch = scf::IfOp::create(rewriter, loc, isLast,
                                      /*withElseRegion=*/false);
      rewriter.eraseOp(after.getRegion().front().getTerminator());
      rewriter.inlineBlockBefore(&after.getRegion().front(),
                                 branch.thenYield());
      rewriter.eraseOp(after);
      rewriter.setInsertionPoint(forall);
    }
    auto loop = scf::ForOp::create(rewriter, loc, first, last, constant(1));

    // Row-major: the last size varies fastest.
    rewriter.setInsertionPointToStart(loop.getBody());
    SmallVector<Value> indices(sizes.size());
    Value rest = loop.getInductionVar();
    for (unsigned i = sizes.size(); i-- > 1;) {
      indices[i] = arith::RemUIOp::create(rewriter, loc, rest, sizes[i]);
      rest = arith::DivUIOp::create(rewriter, loc, rest, sizes[i]);
    }
    indices.front() = rest;
    for (auto [index, step] : llvm::zip_equal(indices, steps))
      index = rewriter.createOrFold<arith::MulIOp>(loc, index, step);
    rewriter.eraseOp(forall.getTerminator());
    rewriter.inlineBlockBefore(forall.getBody(),
                               loop.getBody()->getTerminator(), indices);
    rewriter.eraseOp(forall);
  }
};
} // namespace

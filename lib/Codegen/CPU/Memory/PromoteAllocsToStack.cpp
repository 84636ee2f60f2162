//===- PromoteAllocsToStack.cpp - small buffers to stack memory -----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CPU/VectorTarget.h"

#include "LoopSizes.h"

#include "posenc/Codegen/Passes.h"
#include "posenc/IR/KernelConfig.h"
#include "posenc/IR/Remarks.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"
#include "llvm/Support/CheckedArithmetic.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCPROMOTEALLOCSTOSTACKPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

#define DEBUG_TYPE "posenc-promote-allocs-to-stack"

/// Limits in bytes of a buffer that is allocated in a loop (the scratch of a
/// tile), of any other buffer, and of all promoted buffers of a function. A
/// buffer above its limit stays on the heap.
static constexpr int64_t kMaxTileBytes = int64_t{128} << 10;
static constexpr int64_t kMaxPromotedBytes = int64_t{64} << 10;
static constexpr int64_t kMaxTotalBytes = int64_t{512} << 10;

/// Returns an upper bound of the buffer's size in bytes, or nullopt if the size
/// has no known bound or the bound exceeds the limit of one buffer.
static std::optional<int64_t> getSizeBound(memref::AllocOp alloc) {
  MemRefType type = alloc.getType();
  int64_t limit = alloc->getParentOfType<LoopLikeOpInterface>()
                      ? kMaxTileBytes
                      : kMaxPromotedBytes;
  if (!type.getLayout().isIdentity() || type.getMemorySpace() ||
      !type.getElementType().isIntOrIndexOrFloat())
    return std::nullopt;
  std::optional<int64_t> bytes = getStaticBytes(type);
  for (Value size : alloc.getDynamicSizes()) {
    if (!bytes || *bytes > limit)
      return std::nullopt;
    FailureOr<int64_t> bound = ValueBoundsConstraintSet::computeConstantBound(
        presburger::BoundType::UB, size, /*stopCondition=*/nullptr,
        /*closedUB=*/true);
    if (failed(bound))
      return std::nullopt;
    bytes = llvm::checkedMul(*bytes, std::max<int64_t>(*bound, 0));
  }
  if (!bytes || *bytes > limit)
    return std::nullopt;
  return bytes;
}

/// Returns true if neither a terminator nor a call gets the buffer or a view of
/// it. Only then can all iterations of a loop around the allocation, and all
/// calls of the function, use the same memory. A buffer that is freed through
/// a view stays on the heap, too.
static bool isLocal(memref::AllocOp alloc) {
  SmallVector<Value> views{alloc};
  while (!views.empty()) {
    for (Operation *user : views.pop_back_val().getUsers()) {
      if (user->hasTrait<OpTrait::IsTerminator>() || isa<CallOpInterface>(user))
        return false;
      if (auto dealloc = dyn_cast<memref::DeallocOp>(user);
          dealloc && dealloc.getMemref() != alloc)
        return false;
      for (Value result : user->getResults())
        if (isa<MemRefType>(result.getType()))
          views.push_back(result);
    }
  }
  return true;
}

/// Replaces `alloc` with stack memory that is allocated once, at the start of
/// `body`. A buffer whose size is not a constant becomes a view of `bytes`
/// bytes, its upper bound. A buffer that was allocated directly in the body may
/// be used by several loops, so it is marked as shared.
static void promote(RewriterBase &rewriter, memref::AllocOp alloc, Block &body,
                    int64_t bytes) {
  for (Operation *user : llvm::make_early_inc_range(alloc->getUsers()))
    if (isa<memref::DeallocOp>(user))
      rewriter.eraseOp(user);
  MemRefType type = alloc.getType();
  bool isShared = alloc->getBlock() == &body;
  auto allocate = [&](MemRefType of, IntegerAttr alignment) {
    auto memory =
        memref::AllocaOp::create(rewriter, alloc.getLoc(), of, alignment);
    if (isShared)
      memory->setAttr(PosencDialect::kSharedBufferAttrName,
                      rewriter.getUnitAttr());
    return memory;
  };
  rewriter.setInsertionPointToStart(&body);
  if (type.hasStaticShape()) {
    rewriter.replaceOp(alloc, allocate(type, alloc.getAlignmentAttr()));
    return;
  }
  IntegerAttr alignment = alloc.getAlignmentAttr();
  if (!alignment)
    alignment = rewriter.getI64IntegerAttr(64);
  Value memory =
      allocate(MemRefType::get({bytes}, rewriter.getI8Type()), alignment);
  rewriter.setInsertionPoint(alloc);
  Value zero = arith::ConstantIndexOp::create(rewriter, alloc.getLoc(), 0);
  rewriter.replaceOpWithNewOp<memref::ViewOp>(alloc, type, memory, zero,
                                              alloc.getDynamicSizes());
}

/// Returns the limit of all promoted buffers of `function`, in bytes. A limit
/// of the module's stack holds for a chain of calls, so one function gets a
/// quarter of it. It does not apply to a function with a workspace, whose
/// buffers are moved from the stack to that workspace later.
static int64_t getMaxTotalBytes(FunctionOpInterface function) {
  auto module = function->getParentOfType<ModuleOp>();
  std::optional<int64_t> limit = module ? getStackLimit(module) : std::nullopt;
  if (!limit || getKernelConfig(function).hasWorkspace)
    return kMaxTotalBytes;
  return std::min(kMaxTotalBytes, *limit / 4);
}

namespace {
struct PromoteAllocsToStack final
    : mlir::posenc::impl::PosencPromoteAllocsToStackPassBase<
          PromoteAllocsToStack> {
  using Base::Base;

  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    SmallVector<std::pair<memref::AllocOp, int64_t>> allocs;
    int64_t total = 0, limit = getMaxTotalBytes(getOperation());
    getOperation()->walk([&](memref::AllocOp alloc) {
      std::optional<int64_t> bytes = getSizeBound(alloc);
      if (!bytes) {
        reportMissed(alloc, DEBUG_TYPE,
                     "its size has no bound, or too large a one");
        return;
      }
      // Whether a function takes a workspace must not depend on the target,
      // and the scratch of a tile does. Without a limit of the stack, a tile
      // therefore counts with at most kMaxPromotedBytes.
      int64_t counted =
          limit < kMaxTotalBytes ? *bytes : std::min(*bytes, kMaxPromotedBytes);
      if (total + counted > limit) {
        reportMissed(alloc, DEBUG_TYPE,
                     "the buffers on the stack would exceed the limit of " +
                         Twine(limit) + " bytes");
        return;
      }
      if (!isLocal(alloc)) {
        reportMissed(alloc, DEBUG_TYPE,
                     "a call or a terminator uses it, so it may outlive the "
                     "function");
        return;
      }
      total += counted;
      allocs.push_back({alloc, *bytes});
    });
    IRRewriter rewriter(&getContext());
    Block &body = getOperation().getFunctionBody().front();
    for (auto [alloc, bytes] : allocs)
      promote(rewriter, alloc, body, bytes);
  }
};
} // namespace

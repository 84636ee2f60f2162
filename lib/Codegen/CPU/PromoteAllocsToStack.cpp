//===- PromoteAllocsToStack.cpp - scratch memory of a tile on the stack -*- C++
//-*-===//
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

/// The most bytes of the scratch of a tile, which is in a loop, of any other
/// buffer, and of all of them together. What has more is not on the stack.
static constexpr int64_t kMaxTileBytes = int64_t{128} << 10;
static constexpr int64_t kMaxBytes = int64_t{64} << 10;
static constexpr int64_t kMaxTotalBytes = int64_t{512} << 10;

/// At most so many bytes, if they are few enough for the stack.
static std::optional<int64_t> getMaxBytes(memref::AllocOp alloc) {
  MemRefType type = alloc.getType();
  int64_t most =
      alloc->getParentOfType<LoopLikeOpInterface>() ? kMaxTileBytes : kMaxBytes;
  if (!type.getLayout().isIdentity() || type.getMemorySpace() ||
      !type.getElementType().isIntOrIndexOrFloat())
    return std::nullopt;
  std::optional<int64_t> bytes =
      type.getElementType().isIndex()
          ? 8
          : llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  for (int64_t size : type.getShape())
    if (bytes && !ShapedType::isDynamic(size))
      bytes = llvm::checkedMul(*bytes, size);
  for (Value size : alloc.getDynamicSizes()) {
    if (!bytes || *bytes > most)
      return std::nullopt;
    FailureOr<int64_t> bound = ValueBoundsConstraintSet::computeConstantBound(
        presburger::BoundType::UB, size, /*stopCondition=*/nullptr,
        /*closedUB=*/true);
    if (failed(bound))
      return std::nullopt;
    bytes = llvm::checkedMul(*bytes, std::max<int64_t>(*bound, 0));
  }
  if (!bytes || *bytes > most)
    return std::nullopt;
  return bytes;
}

/// Whether the buffer is known to nobody outside of its block: then each
/// iteration of a loop around it finds it free again.
static bool staysInBlock(memref::AllocOp alloc) {
  SmallVector<Value> views{alloc};
  while (!views.empty()) {
    for (Operation *user : views.pop_back_val().getUsers()) {
      if (user->hasTrait<OpTrait::IsTerminator>() || isa<CallOpInterface>(user))
        return false;
      for (Value result : user->getResults())
        if (isa<MemRefType>(result.getType()))
          views.push_back(result);
    }
  }
  return true;
}

/// A buffer of a size that is known only in a loop is a view of one that is as
/// large as it can be. What is in no loop may be for several.
static void hoist(RewriterBase &rewriter, memref::AllocOp alloc, Block &entry,
                  int64_t bytes) {
  MemRefType type = alloc.getType();
  bool isShared = alloc->getBlock() == &entry;
  auto allocate = [&](MemRefType of, IntegerAttr alignment) {
    auto memory =
        memref::AllocaOp::create(rewriter, alloc.getLoc(), of, alignment);
    if (isShared)
      memory->setAttr(kSharedAttrName, rewriter.getUnitAttr());
    return memory;
  };
  rewriter.setInsertionPointToStart(&entry);
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

/// The most bytes of all buffers together: where the module limits the stack, a
/// part of that, as functions call each other. Those of a function with a
/// workspace do not stay on the stack.
static int64_t getMaxTotalBytes(FunctionOpInterface function) {
  auto module = function->getParentOfType<ModuleOp>();
  auto limit = module ? module->getAttrOfType<IntegerAttr>(
                            PosencDialect::kStackLimitAttrName)
                      : IntegerAttr();
  if (!limit || function->hasAttr(PosencDialect::kWorkspaceAttrName))
    return kMaxTotalBytes;
  return std::min(kMaxTotalBytes, limit.getInt() / 4);
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
    int64_t total = 0, most = getMaxTotalBytes(getOperation());
    getOperation()->walk([&](memref::AllocOp alloc) {
      std::optional<int64_t> bytes = getMaxBytes(alloc);
      if (!bytes)
        return;
      // Whether a function takes a workspace must not depend on the target, and
      // tiles of some have more scratch than those of others.
      int64_t counted =
          most < kMaxTotalBytes ? *bytes : std::min(*bytes, kMaxBytes);
      if (total + counted > most || !staysInBlock(alloc))
        return;
      total += counted;
      allocs.push_back({alloc, *bytes});
    });
    IRRewriter rewriter(&getContext());
    Block &entry = getOperation().getFunctionBody().front();
    for (auto [alloc, bytes] : allocs)
      hoist(rewriter, alloc, entry, bytes);
  }
};
} // namespace

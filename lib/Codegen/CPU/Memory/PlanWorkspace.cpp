//===- PlanWorkspace.cpp - memory of intermediate tensors -----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel never allocates memory. Tensors that one loop writes and another
// reads are views of a workspace, a buffer that the caller provides; tensors
// that are not needed at the same time may share memory. The kernel
// itself computes the workspace's size from its arguments, with the same code
// that divides it.
//
//===----------------------------------------------------------------------===//

#include "CPU/VectorTarget.h"
#include "LoopSizes.h"
#include "PlanMemory.h"

#include "posenc/Codegen/Passes.h"
#include "posenc/IR/KernelConfig.h"
#include "posenc/IR/Remarks.h"
#include "posenc/kernel/CallLayout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCPLANWORKSPACEPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

#define DEBUG_TYPE "posenc-plan-workspace"

/// Up to this size, buffers shared by phases are on the stack of the caller's
/// thread.
static constexpr int64_t kMaxStackBytes = int64_t{32} << 10;
/// Larger than any memory, and half the range of an index.
static constexpr int64_t kMaxWorkspaceBytes = int64_t{1} << 62;

static int64_t getElementBytes(MemRefType type) {
  return type.getElementType().isIndex()
             ? 8
             : llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

/// Returns the bytes of a buffer, rounded up to cache lines, or nullopt if its
/// shape is dynamic or it is too large.
static std::optional<int64_t> getConstantBytes(MemRefType type) {
  if (!type.hasStaticShape())
    return std::nullopt;
  std::optional<int64_t> bytes = getStaticBytes(type);
  if (!bytes || *bytes > kMaxWorkspaceBytes)
    return std::nullopt;
  return llvm::alignTo(*bytes, kWorkspaceAlignment);
}

/// Whether a size is computed from the sizes of the function's tensors only, so
/// that it is known before any operation runs.
static bool isKnown(Value size) {
  if (isa<BlockArgument>(size))
    return false;
  Operation *op = size.getDefiningOp();
  if (isa<memref::DimOp>(op))
    return isa<BlockArgument>(op->getOperand(0)) && isKnown(op->getOperand(1));
  return isPure(op) && op->getNumRegions() == 0 &&
         llvm::none_of(op->getOperandTypes(), llvm::IsaPred<MemRefType>) &&
         llvm::all_of(op->getOperands(), isKnown);
}

static bool isPlanned(memref::AllocOp alloc) {
  MemRefType type = alloc.getType();
  return type.getLayout().isIdentity() && !type.getMemorySpace() &&
         type.getElementType().isIntOrIndexOrFloat() &&
         alloc.getSymbolOperands().empty() &&
         (!type.hasStaticShape() || getConstantBytes(type)) &&
         llvm::all_of(alloc.getDynamicSizes(), isKnown);
}

namespace {
/// Emits the sum of the bytes of buffers, and checks it for overflow.
class ByteCounter {
public:
  ByteCounter(RewriterBase &rewriter, Location loc)
      : rewriter(rewriter), loc(loc), total(constant(0)) {}

  /// Adds a buffer and returns its offset in bytes.
  Value add(memref::AllocOp alloc) {
    Value bytes = constant(getElementBytes(alloc.getType()));
    for (int64_t size : alloc.getType().getShape())
      if (!ShapedType::isDynamic(size))
        bytes = multiply(bytes, constant(size));
    for (Value size : alloc.getDynamicSizes())
      bytes = multiply(bytes, size);
    Value max = constant(kMaxWorkspaceBytes);
    limit(bytes, max);
    Value begin = total;
    Value rest = constant(kWorkspaceAlignment - 1);
    Value lines = arith::DivUIOp::create(
        rewriter, loc, arith::AddIOp::create(rewriter, loc, bytes, rest),
        constant(kWorkspaceAlignment));
    total = arith::AddIOp::create(
        rewriter, loc, total,
        arith::MulIOp::create(rewriter, loc, lines,
                              constant(kWorkspaceAlignment)));
    limit(total, max);
    return begin;
  }

  /// Returns the total bytes as i64, or -1 on overflow.
  Value finish() {
    Value i64 =
        arith::IndexCastOp::create(rewriter, loc, rewriter.getI64Type(), total);
    if (!isTooLarge)
      return i64;
    Value none =
        arith::ConstantIntOp::create(rewriter, loc, rewriter.getI64Type(), -1);
    return arith::SelectOp::create(rewriter, loc, isTooLarge, none, i64);
  }

private:
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(rewriter, loc, value);
  }
  Value multiply(Value a, Value b) {
    auto product = arith::MulUIExtendedOp::create(rewriter, loc, a, b);
    require(arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::ne,
                                  product.getHigh(), constant(0)));
    return product.getLow();
  }
  void limit(Value bytes, Value max) {
    require(arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::ugt,
                                  bytes, max));
  }
  void require(Value wrong) {
    isTooLarge =
        isTooLarge
            ? Value(arith::OrIOp::create(rewriter, loc, isTooLarge, wrong))
            : wrong;
  }

  RewriterBase &rewriter;
  Location loc;
  Value total, isTooLarge;
};

/// Replaces tensors by buffers on the stack, which those of one type share as
/// planned. Returns their bytes, or nullopt if these are unknown or too many.
std::optional<int64_t> putOnStack(RewriterBase &rewriter,
                                  ArrayRef<PlannedMemory> plan) {
  auto getType = [](memref::AllocOp alloc) { return alloc.getType(); };
  auto isShared = [&](const PlannedMemory &memory) {
    return memory.predecessor &&
           getType(plan[*memory.predecessor].alloc) == getType(memory.alloc);
  };
  int64_t total = 0;
  for (const PlannedMemory &memory : plan) {
    std::optional<int64_t> bytes = getConstantBytes(getType(memory.alloc));
    if (!bytes || *bytes > kMaxStackBytes)
      return std::nullopt;
    total += isShared(memory) ? 0 : *bytes;
  }
  if (total > kMaxStackBytes)
    return std::nullopt;
  SmallVector<Value> buffers;
  for (const PlannedMemory &memory : plan) {
    memref::AllocOp alloc = memory.alloc;
    Value buffer;
    if (isShared(memory)) {
      buffer = buffers[*memory.predecessor];
    } else {
      rewriter.setInsertionPoint(alloc);
      buffer = memref::AllocaOp::create(
          rewriter, alloc.getLoc(), alloc.getType(),
          rewriter.getI64IntegerAttr(kWorkspaceAlignment));
      buffer.getDefiningOp()->setAttr(PosencDialect::kSharedBufferAttrName,
                                      rewriter.getUnitAttr());
    }
    buffers.push_back(buffer);
  }
  for (auto [memory, buffer] : llvm::zip_equal(plan, buffers))
    rewriter.replaceAllUsesWith(memory.alloc->getResult(0), buffer);
  return total;
}

struct PlanWorkspace final
    : mlir::posenc::impl::PosencPlanWorkspacePassBase<PlanWorkspace> {
  using Base::Base;

  void runOnOperation() override {
    FunctionOpInterface function = getOperation();
    AbiAttr abi = getAbi(function);
    if (!abi || function.isExternal() ||
        !llvm::hasSingleElement(function.getFunctionBody()) ||
        getKernelConfig(function).isMeasured)
      return;
    auto allocs = llvm::to_vector(
        function.getFunctionBody().front().getOps<memref::AllocOp>());
    // Sizes that depend on scalar inputs or elements are unknown when the
    // workspace's size is computed.
    bool hasScalarSizes =
        abi.getSizeElement() ||
        llvm::any_of(abi.getSizes(), [](int64_t size) { return size >= 0; });
    // A module that was lowered further already frees its buffers itself.
    bool isFreed =
        function.walk([](memref::DeallocOp) { return WalkResult::interrupt(); })
            .wasInterrupted();
    if (allocs.empty() || hasScalarSizes || isFreed ||
        !llvm::all_of(allocs, isPlanned))
      return;

    sinkMemory(function);
    SmallVector<PlannedMemory> plan = planMemory(function);
    IRRewriter rewriter(&getContext());
    if (std::optional<int64_t> bytes = putOnStack(rewriter, plan)) {
      reportChoice(function, DEBUG_TYPE,
                   llvm::formatv("{0} buffers of {1} bytes are on the stack",
                                 plan.size(), *bytes));
      for (const PlannedMemory &memory : plan)
        rewriter.eraseOp(memory.alloc);
      return;
    }

    reportChoice(
        function, DEBUG_TYPE,
        llvm::formatv("{0} buffers are in a workspace, as they are not "
                      "known to fit in {1} bytes of stack",
                      plan.size(), kMaxStackBytes));
    Location loc = function.getLoc();
    unsigned number = function.getNumArguments();
    auto bytes = MemRefType::get({ShapedType::kDynamic}, rewriter.getI8Type());
    auto control = MemRefType::get({1}, rewriter.getI64Type());
    if (failed(function.insertArgument(number, bytes, {}, loc)) ||
        failed(function.insertArgument(number + 1, control, {}, loc)))
      return signalPassFailure();
    updateKernelConfig(function, [](KernelConfig &config) {
      config.isMeasured = config.hasWorkspace = true;
    });
    rewriter.setInsertionPoint(plan.front().alloc);
    ByteCounter counter(rewriter, loc);
    SmallVector<Value> begins;
    for (auto [alloc, predecessor] : plan) {
      rewriter.setInsertionPoint(alloc);
      Value begin = predecessor ? begins[*predecessor] : counter.add(alloc);
      begins.push_back(begin);
      Operation *view = rewriter.replaceOpWithNewOp<memref::ViewOp>(
          alloc, alloc.getType(), function.getArgument(number), begin,
          alloc.getDynamicSizes());
      rewriter.setInsertionPointAfter(view);
    }
    Value total = counter.finish();
    Value zero = arith::ConstantIndexOp::create(rewriter, loc, 0);
    // ForallToTasks later makes a single task execute this store.
    memref::StoreOp::create(rewriter, loc, total,
                            function.getArgument(number + 1), zero);
  }
};
} // namespace

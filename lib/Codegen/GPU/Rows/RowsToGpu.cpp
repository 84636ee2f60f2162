//===- RowsToGpu.cpp - loops over rows and reductions to GPU kernels ------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RowsToGpu.h"

#include "GPU/Rotation/KernelPositions.h"
#include "GPU/Threads/ElementKernel.h"
#include "RowKernel.h"
#include "RowReductions.h"

#include "posenc/Codegen/Passes.h"
#include "posenc/IR/CreateIndex.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_CONVERTPOSENCROWSTOGPUPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

/// Elements that a thread processes before a team gets more threads.
static constexpr int64_t kElementsPerThread = 8;

/// Threads of the largest team, and teams of one warp in a block.
static constexpr int64_t kMaxThreads = 256, kWarpsPerBlock = 4;

/// Shared memory of a block of several teams.
static constexpr int64_t kBlockBytes = 48 << 10;

//===----------------------------------------------------------------------===//
// Support
//===----------------------------------------------------------------------===//

bool mlir::posenc::isRowElement(Type type) {
  return isElementOnGpu(type) || type.isIndex() || type.isInteger(1) ||
         type.isInteger(8) || isa<Float8E4M3FNType, Float8E5M2Type>(type);
}

static bool isRowTensor(Value value) {
  auto type = dyn_cast<MemRefType>(value.getType());
  return type && isRowElement(type.getElementType());
}

/// Whether a scalar from outside of a kernel can be passed to it.
static bool isPassed(Value value) {
  Type type = value.getType();
  return type.isIndex() || type.isInteger(64) || type.isInteger(32) ||
         matchPattern(value, m_Constant()) || isDeviceScalar(value);
}

static Operation *findUnsupportedIn(linalg::LinalgOp op) {
  if (!op.hasPureBufferSemantics() || linalg::isaContractionOpInterface(op) ||
      op.getNumParallelLoops() + op.getNumReductionLoops() != op.getNumLoops())
    return op;
  for (OpOperand &operand : op->getOpOperands()) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    if (!isa<MemRefType>(operand.get().getType())) {
      if (op.isDpsInit(&operand))
        return op;
      continue;
    }
    if (!isRowTensor(operand.get()))
      return op;
    bool isSupported =
        op.isDpsInit(&operand)
            ? map.isProjectedPermutation() &&
                  map.getNumResults() == op.getNumParallelLoops()
            : llvm::all_of(map.getResults(), [](AffineExpr result) {
                return isa<AffineDimExpr, AffineConstantExpr>(result);
              });
    if (!isSupported)
      return op;
  }
  for (Operation &inner : *op.getBlock()) {
    bool isRead =
        isa<memref::LoadOp>(inner) && isRowTensor(inner.getOperand(0));
    if (inner.getNumRegions() ||
        (!isRead && !hasGpuForm(&inner, /*hasFunctions=*/true)))
      return &inner;
  }
  return nullptr;
}

/// Returns the operation if it has no form in the iteration of a loop, or an
/// operation inside.
static Operation *findUnsupportedIn(Operation &op) {
  if (auto loops = dyn_cast<linalg::LinalgOp>(op))
    return findUnsupportedIn(loops);
  auto areRows = [&] {
    return llvm::all_of(op.getOperands(), [](Value value) {
      return !isa<MemRefType>(value.getType()) || isRowTensor(value);
    });
  };
  bool isSupported = false;
  if (auto rope = dyn_cast<RopeOp>(op))
    isSupported = areRows() && rope.getInits().size() > 0;
  else if (isa<memref::AllocOp>(op))
    isSupported = isRowTensor(op.getResult(0));
  else if (isa<RotateOp, memref::SubViewOp, memref::CollapseShapeOp,
               memref::ExpandShapeOp, memref::CastOp, memref::CopyOp,
               memref::LoadOp, memref::DimOp>(op))
    isSupported = areRows();
  else if (isa<arith::ArithDialect>(op.getDialect()))
    isSupported = hasGpuForm(&op, /*hasFunctions=*/true);
  return isSupported ? nullptr : &op;
}

/// Returns an operation that reads a scalar which cannot be passed.
static Operation *findUnpassed(Operation *root) {
  Operation *reader = nullptr;
  root->walk([&](Operation *op) {
    for (Value operand : op->getOperands())
      if (!isa<MemRefType>(operand.getType()) && !isPassed(operand) &&
          (op == root ||
           !root->isAncestor(operand.getParentBlock()->getParentOp())))
        reader = op;
  });
  return reader;
}

Operation *mlir::posenc::findUnsupportedInRows(scf::ForallOp loop) {
  if (loop.getNumResults() > 0 || loop.getMapping())
    return loop;
  for (Operation &op : loop.getBody()->without_terminator())
    if (Operation *unsupported = findUnsupportedIn(op))
      return unsupported;
  if (Operation *reader = findUnpassed(loop))
    return reader;
  return RowBuffers::plan(loop) ? nullptr : loop.getOperation();
}

bool mlir::posenc::hasGridKernel(linalg::LinalgOp op) {
  return !findUnsupportedIn(op) && !findUnpassed(op);
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// Returns a bound of the elements that an operation of an iteration processes,
/// at most `limit`.
static int64_t countElements(Operation &op, int64_t limit) {
  int64_t elements = 1;
  auto multiply = [&](std::optional<int64_t> size) {
    elements =
        std::min(limit, elements * std::min(limit, size.value_or(limit)));
  };
  if (auto loops = dyn_cast<linalg::LinalgOp>(op)) {
    SmallVector<std::optional<int64_t>> ranges(loops.getNumLoops());
    for (OpOperand &operand : op.getOpOperands())
      if (isa<MemRefType>(operand.get().getType()))
        for (auto [dim, result] : llvm::enumerate(
                 loops.getMatchingIndexingMap(&operand).getResults()))
          if (auto loop = dyn_cast<AffineDimExpr>(result))
            if (!ranges[loop.getPosition()])
              ranges[loop.getPosition()] = getSizeBound(operand.get(), dim);
    for (std::optional<int64_t> range : ranges)
      multiply(range);
    return elements;
  }
  if (!isa<RopeOp, RotateOp, memref::CopyOp>(op))
    return 0;
  Value tensor = op.getOperand(0);
  for (int64_t dim = 0, e = cast<MemRefType>(tensor.getType()).getRank();
       dim < e; ++dim)
    multiply(getSizeBound(tensor, dim));
  return elements;
}

/// Chooses the threads of an iteration. The choice follows from the operations
/// and their static sizes, as it decides the order of sums.
static RowTeam chooseTeam(Operation *root, const RowBuffers &buffers) {
  constexpr int64_t limit = kMaxThreads * kElementsPerThread;
  int64_t elements = 0;
  if (auto loop = dyn_cast<scf::ForallOp>(root)) {
    for (Operation &op : loop.getBody()->without_terminator())
      elements = std::max(elements, countElements(op, limit));
  } else if (auto reduction = cast<linalg::LinalgOp>(root);
             !reducesRowsInBlocks(reduction)) {
    return {kMaxThreads, 1};
  } else {
    elements = 1;
    for (auto [range, kind] :
         llvm::zip_equal(reduction.getStaticLoopRanges(),
                         reduction.getIteratorTypesArray()))
      if (kind == utils::IteratorType::reduction)
        elements = std::min(limit, elements * (ShapedType::isDynamic(range)
                                                   ? limit
                                                   : std::min(limit, range)));
  }
  RowTeam team;
  team.threads = std::clamp<int64_t>(
      llvm::PowerOf2Ceil(llvm::divideCeil(elements, kElementsPerThread)),
      kWarpThreads, kMaxThreads);
  team.perBlock = team.threads > kWarpThreads
                      ? 1
                      : std::clamp<int64_t>(kBlockBytes / buffers.getBytes(), 1,
                                            kWarpsPerBlock);
  return team;
}

/// Returns the memrefs from outside of the operation.
static SmallVector<Value> getOuterMemRefs(Operation *root) {
  SmallVector<Value> memrefs;
  root->walk([&](Operation *op) {
    for (Value operand : op->getOperands())
      if (isa<MemRefType>(operand.getType()) &&
          !llvm::is_contained(memrefs, operand) &&
          (op == root ||
           !root->isAncestor(operand.getParentBlock()->getParentOp())))
        memrefs.push_back(operand);
  });
  return memrefs;
}

/// Emits an i1: whether the rows of all tensors are as aligned as their sizes
/// allow; null if that is always so.
static Value areRowsAligned(OpBuilder &builder, Operation *root) {
  Value aligned;
  for (Value memref : getOuterMemRefs(root)) {
    auto type = cast<MemRefType>(memref.getType());
    int64_t lanes = getWideAlignment(type);
    if (lanes == 1 || getConstantValues(memref))
      continue;
    Value one = areAligned(builder, root->getLoc(), memref, lanes);
    aligned = aligned
                  ? arith::AndIOp::create(builder, root->getLoc(), aligned, one)
                  : one;
  }
  return aligned;
}

static void convert(Operation *root) {
  OpBuilder builder(root);
  RowBuffers buffers = *RowBuffers::plan(root);
  RowTeam team = chooseTeam(root, buffers);
  auto emit = [&](OpBuilder &host, bool isWide) {
    GpuKernel kernel(root, isWide ? "_rows" : "_rows_narrow",
                     team.threads * team.perBlock);
    RowKernel rows(host, kernel, root, team, buffers, isWide);
    Value blocks = rows.emit();
    if (auto op = dyn_cast<linalg::LinalgOp>(root))
      blocks = skipCopyToItself(host, op, blocks);
    kernel.launch(host, blocks, buffers.getBytes() * team.perBlock);
  };
  Value aligned = areRowsAligned(builder, root);
  if (!aligned) {
    emit(builder, /*isWide=*/true);
  } else {
    auto branch = scf::IfOp::create(builder, root->getLoc(), aligned,
                                    /*withElseRegion=*/true);
    OpBuilder wide = branch.getThenBodyBuilder();
    emit(wide, /*isWide=*/true);
    OpBuilder narrow = branch.getElseBodyBuilder();
    emit(narrow, /*isWide=*/false);
  }
  root->erase();
}

namespace {
struct ConvertPosencRowsToGpu final
    : mlir::posenc::impl::ConvertPosencRowsToGpuPassBase<
          ConvertPosencRowsToGpu> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<Operation *> roots;
    getOperation().walk([&](Operation *op) {
      if (op->getParentOfType<scf::ForallOp>())
        return;
      if (auto copy = dyn_cast<memref::CopyOp>(op)) {
        Type element = getElementTypeOrSelf(copy.getTarget().getType());
        if (isElementOnGpu(element) || !isRowElement(element))
          return;
        OpBuilder builder(op);
        roots.push_back(linalg::makeMemRefCopyOp(
            builder, op->getLoc(), copy.getSource(), copy.getTarget()));
        copy.erase();
        return;
      }
      auto loop = dyn_cast<scf::ForallOp>(op);
      auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
      // Kernels compute positions themselves.
      if (linalgOp && linalgOp.getNumDpsInits() == 1 &&
          findPositionsProducer(linalgOp.getDpsInits().front()) == op)
        return;
      if ((loop && !findUnsupportedInRows(loop)) ||
          (linalgOp && !hasElementKernel(linalgOp, /*hasFunctions=*/true) &&
           hasGridKernel(linalgOp)))
        roots.push_back(op);
    });
    for (Operation *root : roots)
      convert(root);
  }
};
} // namespace

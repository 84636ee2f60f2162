//===- SelectGpuKernels.cpp - which functions go to the GPU -----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ElementKernel.h"
#include "KernelPositions.h"

#include "posenc/ABI/CInterface.h"
#include "posenc/Codegen/Passes.h"
#include "posenc/Numerics/MathExpansion.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/TypeUtilities.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCSELECTGPUKERNELSPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

/// Whether kernels use the constant as a whole, not through views.
static bool isSupported(memref::GetGlobalOp constant) {
  return getConstantValues(constant) &&
         isElementOnGpu(constant.getType().getElementType()) &&
         llvm::all_of(constant->getUsers(), [](Operation *user) {
           return isa<PositionalOpInterface, linalg::LinalgOp, memref::CopyOp,
                      memref::DimOp>(user);
         });
}

/// Whether the tables of a position fit in the shared memory that every Vulkan
/// device has.
static bool hasSharedTables(int64_t rotaryDim, Value tensor) {
  constexpr int64_t kSharedBytes = 16 * 1024;
  int64_t bytes = getElementTypeOrSelf(tensor.getType()).isF64() ? 8 : 4;
  return rotaryDim * bytes <= kSharedBytes;
}

/// Whether an operation on memrefs is one that we have kernels for, or only
/// says where they have their memory.
static bool isSupported(Operation *op, bool hasFunctions) {
  // Allocations that are freed when the function ends.
  if (auto memory = dyn_cast<memref::AllocOp>(op))
    return isa<func::FuncOp>(op->getParentOp()) &&
           (isElementOnGpu(memory.getType().getElementType()) ||
            findPositionsProducer(memory));
  if (auto constant = dyn_cast<memref::GetGlobalOp>(op))
    return isSupported(constant);
  auto loops = dyn_cast<linalg::LinalgOp>(op);
  if (!loops)
    loops = op->getParentOfType<linalg::LinalgOp>();
  if (loops) {
    auto generic = dyn_cast<linalg::GenericOp>(loops.getOperation());
    // Positions that are computed are computed by the kernels.
    bool isOfPositions =
        generic && generic.getDpsInits().size() == 1 &&
        findPositionsProducer(generic.getDpsInits().front()) == generic;
    return isOfPositions || hasElementKernel(loops, hasFunctions);
  }
  if (auto copy = dyn_cast<memref::CopyOp>(op))
    return isElementOnGpu(
        cast<MemRefType>(copy.getSource().getType()).getElementType());
  if (auto rope = dyn_cast<RopeOp>(op))
    return hasSharedTables(rope.getFrequencies().getDim(),
                           rope.getInputs().front());
  if (auto rotate = dyn_cast<RotateOp>(op))
    return hasSharedTables(rotate.getRotaryDim(), rotate.getInputs().front());
  return isa<SincosOp, SinusoidalOp, func::FuncOp, func::ReturnOp,
             memref::DimOp, memref::CastOp, memref::SubViewOp,
             memref::CollapseShapeOp, memref::ExpandShapeOp,
             memref::ReinterpretCastOp, memref::ExtractStridedMetadataOp>(op) ||
         isa<arith::ArithDialect>(op->getDialect());
}

/// Returns an operation without a GPU kernel, or null. For a loop, returns the
/// operation inside.
static Operation *findObstacle(func::FuncOp function, bool hasFunctions) {
  Operation *obstacle = nullptr;
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isSupported(op, hasFunctions))
      return WalkResult::advance();
    obstacle = op;
    return WalkResult::interrupt();
  });
  if (auto loops = dyn_cast_if_present<linalg::LinalgOp>(obstacle))
    for (Operation &inner : *loops.getBlock())
      if (inner.getDialect() != loops->getDialect() &&
          !hasGpuForm(&inner, hasFunctions))
        return &inner;
  return obstacle;
}

namespace {
struct SelectGpuKernels final
    : mlir::posenc::impl::PosencSelectGpuKernelsPassBase<SelectGpuKernels> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    for (auto function :
         llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
      Operation *obstacle = findObstacle(function, functions);
      if (!obstacle)
        continue;
      if (function->hasAttr(PosencDialect::kAbiAttrName)) {
        // NVIDIA GPUs would have it.
        bool isForVulkan = !functions && isa<arith::DivFOp>(obstacle);
        isForVulkan |= !functions && hasMathExpansion(obstacle);
        InFlightDiagnostic warning =
            function.emitWarning()
            << "'" << function.getName()
            << "' is left out for the GPU: it has operations that "
            << (isForVulkan ? "not all Vulkan devices round alike"
                            : "only a CPU runs");
        warning.attachNote(obstacle->getLoc())
            << "such as '" << obstacle->getName() << "'";
      }
      function.erase();
    }
  }
};
} // namespace

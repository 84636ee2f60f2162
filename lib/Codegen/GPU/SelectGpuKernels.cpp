//===- SelectGpuKernels.cpp - selection of functions for the GPU ----------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GPU/Attention/GpuAttention.h"
#include "GPU/Launch/DeviceWorkspace.h"
#include "GPU/Rotation/KernelPositions.h"
#include "GPU/Rows/RowsToGpu.h"
#include "GPU/Threads/ElementKernel.h"

#include "posenc/ABI/CInterface.h"
#include "posenc/Codegen/Passes.h"
#include "posenc/IR/KernelConfig.h"
#include "posenc/IR/Weights.h"
#include "posenc/Numerics/MathExpansion.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/IR/TypeUtilities.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCSELECTGPUKERNELSPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

/// Maximum bytes of a constant, which becomes a part of the kernels that read
/// it.
static constexpr int64_t kMaxConstantBytes = 16 << 20;

static bool isLargeConstant(Operation *op) {
  auto constant = dyn_cast<memref::GetGlobalOp>(op);
  return constant && getNumBytes(constant.getType()).value_or(INT64_MAX) >
                         kMaxConstantBytes;
}

/// Whether all users of the constant read it directly, not through views.
static bool isSupported(memref::GetGlobalOp constant) {
  if (isLargeConstant(constant))
    return false;
  bool isElement = isElementOnGpu(constant.getType().getElementType());
  return getConstantValues(constant) &&
         llvm::all_of(constant->getUsers(), [&](Operation *user) {
           // Masks of attention may be booleans.
           return isa<AttentionOp>(user) ||
                  (isElement && isa<PositionalOpInterface, linalg::LinalgOp,
                                    memref::CopyOp, memref::DimOp>(user));
         });
}

/// Whether the tables of a position fit in the shared memory that every Vulkan
/// device has.
static bool hasSharedTables(int64_t rotaryDim, Value tensor) {
  constexpr int64_t kSharedBytes = 16 * 1024;
  int64_t bytes = getElementTypeOrSelf(tensor.getType()).isF64() ? 8 : 4;
  return rotaryDim * bytes <= kSharedBytes;
}

/// Whether only kernels use a scalar that is in the memory of the device.
static bool isReadInKernels(Value scalar) {
  return llvm::all_of(scalar.getUsers(), [](Operation *user) {
    if (isa<linalg::LinalgOp>(user) ||
        user->getParentOfType<linalg::LinalgOp>() ||
        user->getParentOfType<scf::ForallOp>())
      return true;
    return isa<arith::ArithDialect>(user->getDialect()) &&
           llvm::all_of(user->getResults(), isReadInKernels);
  });
}

/// Whether an operation on memrefs has a GPU kernel, or only allocates or
/// addresses memory.
static bool isSupported(Operation *op, GpuAttr gpu) {
  bool hasFunctions = gpu.getFunctions();
  if (auto attention = dyn_cast<AttentionOp>(op))
    return gpu.getAttention() && !getGpuUnsupportedReason(attention);
  // The regions of attention have been checked.
  if (isa<AttentionOp>(op->getParentOp()))
    return true;
  // Kernels compute some positions themselves, which need no memory.
  if (auto memory = dyn_cast<memref::AllocOp>(op))
    return findPositionsProducer(memory) ||
           (isElementOnGpu(memory.getType().getElementType()) &&
            !getWorkspaceObstacle(memory));
  if (auto constant = dyn_cast<memref::GetGlobalOp>(op))
    return isSupported(constant);
  auto loops = dyn_cast<linalg::LinalgOp>(op);
  if (!loops)
    loops = op->getParentOfType<linalg::LinalgOp>();
  if (loops) {
    auto generic = dyn_cast<linalg::GenericOp>(loops.getOperation());
    // Kernels compute such positions themselves.
    bool computesPositions =
        generic && generic.getDpsInits().size() == 1 &&
        findPositionsProducer(generic.getDpsInits().front()) == generic;
    return computesPositions || hasElementKernel(loops, hasFunctions) ||
           (hasFunctions && hasGridKernel(loops));
  }
  if (auto load = dyn_cast<memref::LoadOp>(op))
    return hasFunctions && isReadInKernels(load.getResult());
  if (auto copy = dyn_cast<memref::CopyOp>(op)) {
    Type element =
        cast<MemRefType>(copy.getSource().getType()).getElementType();
    return isElementOnGpu(element) || (hasFunctions && isRowElement(element));
  }
  if (auto rope = dyn_cast<RopeOp>(op))
    return hasSharedTables(rope.getFrequencies().getDim(),
                           rope.getInputs().front());
  if (auto rotate = dyn_cast<RotateOp>(op))
    return hasSharedTables(rotate.getRotaryDim(), rotate.getInputs().front());
  return isa<SincosOp, SinusoidalOp, func::FuncOp, func::ReturnOp,
             gpu::LaunchFuncOp, nvgpu::TmaCreateDescriptorOp, memref::DimOp,
             memref::CastOp, memref::SubViewOp, memref::CollapseShapeOp,
             memref::ExpandShapeOp, memref::ReinterpretCastOp,
             memref::ExtractStridedMetadataOp>(op) ||
         isa<arith::ArithDialect>(op->getDialect());
}

/// Returns an operation without a GPU kernel, or null. For a loop, returns the
/// operation inside.
static Operation *findUnsupported(func::FuncOp function, GpuAttr gpu) {
  Operation *unsupported = nullptr;
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    auto rows = dyn_cast<scf::ForallOp>(op);
    if (rows && gpu.getFunctions()) {
      unsupported = findUnsupportedInRows(rows);
      return unsupported ? WalkResult::interrupt() : WalkResult::skip();
    }
    if (isSupported(op, gpu))
      return WalkResult::advance();
    unsupported = op;
    return WalkResult::interrupt();
  });
  if (auto loops = dyn_cast_if_present<linalg::LinalgOp>(unsupported))
    for (Operation &inner : *loops.getBlock())
      if (inner.getDialect() != loops->getDialect() &&
          !hasGpuForm(&inner, gpu.getFunctions()))
        return &inner;
  return unsupported;
}

namespace {
struct SelectGpuKernels final
    : mlir::posenc::impl::PosencSelectGpuKernelsPassBase<SelectGpuKernels> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    GpuAttr gpu = getGpu(module);
    for (auto function :
         llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
      AbiAttr abi = getAbi(function);
      if (ArgAttr input = abi ? abi.getSizeElement() : nullptr) {
        function.emitWarning()
            << "'" << function.getName()
            << "' is left out for the GPU: its sizes depend on the element of '"
            << input.getName()
            << "', which is in the memory of the device, where calls read no "
               "elements";
        function.erase();
        continue;
      }
      Operation *unsupported = findUnsupported(function, gpu);
      if (!unsupported)
        continue;
      if (abi) {
        // NVIDIA GPUs support these operations, Vulkan devices do not.
        bool isForVulkan =
            !gpu.getFunctions() &&
            (isa<arith::DivFOp>(unsupported) || hasMathExpansion(unsupported));
        InFlightDiagnostic warning =
            function.emitWarning()
            << "'" << function.getName()
            << "' is left out for the GPU: it has operations "
            << (isForVulkan ? "that Vulkan devices round differently"
                            : "without a GPU kernel");
        Diagnostic &note = warning.attachNote(unsupported->getLoc())
                           << "such as '" << unsupported->getName() << "'";
        auto op = dyn_cast<AttentionOp>(unsupported);
        if (op && gpu.getAttention())
          note << ": " << *getGpuUnsupportedReason(op);
        if (isLargeConstant(unsupported))
          note << ": code for GPUs has no weights of more than 16 MiB";
        auto memory = dyn_cast<memref::AllocOp>(unsupported);
        std::optional<StringRef> obstacle =
            memory ? getWorkspaceObstacle(memory) : std::nullopt;
        if (obstacle)
          note << ": " << *obstacle;
      }
      function.erase();
    }
  }
};
} // namespace

//===- UnrollVectors.cpp - GPU kernels to scalar kernels ------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScalarKernel.h"

#include "posenc/Codegen/Passes.h"
#include "posenc/Codegen/SpirvKernels.h"
#include "posenc/IR/Posenc.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVAttributes.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVDialect.h"
#include "mlir/Dialect/SPIRV/IR/TargetAndABI.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCUNROLLVECTORSPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

/// Returns a target with all capabilities that a kernel may need; unused ones
/// are removed later.
static spirv::TargetEnvAttr getTarget(MLIRContext *context) {
  using namespace spirv;
  auto vce = VerCapExtAttr::get(
      Version::V_1_3,
      {Capability::Shader, Capability::Int8, Capability::Int16,
       Capability::Int64, Capability::Float64,
       Capability::StorageBuffer8BitAccess,
       Capability::StorageBuffer16BitAccess},
      {Extension::SPV_KHR_storage_buffer_storage_class,
       Extension::SPV_KHR_8bit_storage, Extension::SPV_KHR_16bit_storage},
      context);
  return TargetEnvAttr::get(
      vce, getDefaultResourceLimits(context), ClientAPI::Vulkan,
      Vendor::Unknown, DeviceType::Unknown, TargetEnvAttr::kUnknownDeviceID);
}

namespace {
struct UnrollVectors final
    : mlir::posenc::impl::PosencUnrollVectorsPassBase<UnrollVectors> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    // Erases the host code: the launch code is generated from the kernels.
    for (Operation &op : llvm::make_early_inc_range(*module.getBody()))
      if (!isa<gpu::GPUModuleOp>(op))
        op.erase();
    auto modules = llvm::to_vector(module.getOps<gpu::GPUModuleOp>());
    if (modules.size() > 1) {
      modules[1].emitOpError("expected a single gpu.module, found a second");
      return signalPassFailure();
    }
    for (gpu::GPUModuleOp kernels : modules)
      if (failed(scalarize(kernels)))
        return signalPassFailure();
  }

private:
  LogicalResult scalarize(gpu::GPUModuleOp kernels) {
    FailureOr<KernelConstants> constants = KernelConstants::collect(kernels);
    if (failed(constants))
      return failure();
    for (auto kernel : llvm::to_vector(kernels.getOps<gpu::GPUFuncOp>())) {
      if (failed(ScalarKernel(kernel, *constants, fusedFma).build()))
        return failure();
      kernel.erase();
    }
    for (auto global :
         llvm::make_early_inc_range(kernels.getOps<memref::GlobalOp>()))
      global.erase();
    ModuleOp module = getOperation();
    module->setAttr(spirv::getTargetEnvAttrName(), getTarget(&getContext()));
    if (constants->isEmpty())
      return success();
    module->setAttr(
        PosencDialect::kKernelConstantsAttrName,
        DenseI32ArrayAttr::get(&getContext(), constants->getWords()));
    return success();
  }
};
} // namespace

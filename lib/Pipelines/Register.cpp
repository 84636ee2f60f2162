//===- Register.cpp - registration of the pipelines -----------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Pipelines/Pipelines.h"
#include "posenc/TargetInfo/CudaTarget.h"

#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace mlir::posenc;

void mlir::posenc::registerPipelines() {
  PassPipelineRegistration<>(
      "posenc-to-linalg", "Lower posenc to linalg on tensors",
      [](OpPassManager &manager) { buildPosencToLinalgPipeline(manager); });
  PassPipelineRegistration<PosencToCPUOptions>(
      "posenc-to-cpu", "Lower posenc and linalg on tensors to the LLVM dialect",
      [](OpPassManager &manager, const PosencToCPUOptions &options) {
        buildPosencToTiledPipeline(manager, options);
        buildTiledToVectorPipeline(manager, options);
        buildVectorToLLVMPipeline(manager, options);
      });
  PassPipelineRegistration<PosencToNVVMOptions>(
      "posenc-to-nvvm",
      "Lower posenc on tensors to NVVM kernels and their launches",
      [](OpPassManager &manager, const PosencToNVVMOptions &options) {
        llvm::Expected<CudaTarget> target = CudaTarget::parse(options.chip);
        ArrayRef<CudaTarget> gpus;
        if (target)
          gpus = *target;
        // Another pass reports an unknown architecture.
        llvm::consumeError(target.takeError());
        buildPosencToGpuPipeline(manager, getGpuFeatures(gpus));
        buildGpuToNVVMPipeline(manager, options);
      });
#ifndef POSENC_NO_VULKAN
  PassPipelineRegistration<PosencToSPIRVOptions>(
      "posenc-to-spirv", "Lower posenc on tensors to SPIR-V kernels",
      [](OpPassManager &manager, const PosencToSPIRVOptions &options) {
        buildPosencToGpuPipeline(manager, GpuFeatures());
        buildGpuToSPIRVPipeline(manager, options);
      });
#endif
}

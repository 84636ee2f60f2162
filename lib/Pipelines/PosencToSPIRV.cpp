//===- PosencToSPIRV.cpp - pipeline from GPU kernels to SPIR-V ------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/Passes.h"
#include "posenc/Pipelines/Pipelines.h"

#include "mlir/Conversion/GPUToSPIRV/GPUToSPIRVPass.h"
#include "mlir/Conversion/MathToSPIRV/MathToSPIRVPass.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVOps.h"
#include "mlir/Dialect/SPIRV/Transforms/Passes.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::posenc;

void mlir::posenc::buildGpuToSPIRVPipeline(
    OpPassManager &manager, const PosencToSPIRVOptions &options) {
  manager.addPass(createPosencUnrollVectorsPass({options.fusedFma}));
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  manager.addPass(createLoopInvariantCodeMotionPass());
  manager.addNestedPass<gpu::GPUModuleOp>(createConvertMathToSPIRVPass());
  manager.addPass(createConvertGPUToSPIRVPass(/*mapMemorySpace=*/false));
  OpPassManager &kernels = manager.nest<spirv::ModuleOp>();
  kernels.addPass(spirv::createSPIRVLowerABIAttributesPass());
  kernels.addPass(createPosencFinishSpirvPass());
  kernels.addPass(createCanonicalizerPass());
  kernels.addPass(createCSEPass());
  kernels.addPass(spirv::createSPIRVUpdateVCEPass());
}

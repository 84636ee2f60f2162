//===- PosencToNVVM.cpp - pipeline from GPU kernels to NVVM ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/Passes.h"
#include "posenc/Pipelines/Pipelines.h"

#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/GPU/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::posenc;

void mlir::posenc::buildGpuToNVVMPipeline(OpPassManager &manager,
                                          const PosencToNVVMOptions &options) {
  manager.addPass(createPosencLowerTensorMapsPass());
  OpPassManager &kernels = manager.nest<gpu::GPUModuleOp>();
  kernels.addPass(createLoopInvariantCodeMotionPass());
  // Runs before convert-gpu-to-nvvm, which would generate calls of libdevice.
  kernels.addPass(createPosencExpandF8Pass());
  // Integer divisions by 0 have the CPU's result.
  kernels.addPass(createPosencExpandArithPass());
  kernels.addPass(createPosencExpandMathPass());
  kernels.addPass(createPosencMathToIntrinsicsPass());
  kernels.addPass(createConvertMathToLLVMPass());
  kernels.addPass(createSCFToControlFlowPass());
  // A pattern that changes something and fails is an error.
  ConvertGpuOpsToNVVMOpsOptions toNVVM;
  toNVVM.allowPatternRollback = false;
  kernels.addPass(createConvertGpuOpsToNVVMOps(toNVVM));
  kernels.addPass(createPosencDeclareSharedMemoryPass());
  // Runs after the conversion of gpu, which maps the address space of shared
  // memory.
  kernels.addPass(createConvertVectorToLLVMPass());
  kernels.addPass(createReconcileUnrealizedCastsPass());
  kernels.addPass(createCanonicalizerPass());
  kernels.addPass(createCSEPass());
  manager.addPass(createPosencLowerTensorMapsPass());
  GpuNVVMAttachTargetOptions target;
  target.chip = options.chip;
  target.features = options.features;
  target.optLevel = 3;
  manager.addPass(createGpuNVVMAttachTarget(target));
}

//===- PosencToGpu.cpp - pipeline from posenc to GPU kernels --------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/Passes.h"
#include "posenc/Pipelines/Pipelines.h"
#include "posenc/Transforms/Passes.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::posenc;

/// Adds the passes that make loops over rows of kv_append, norms and softmax.
static void addRows(OpPassManager &manager) {
  manager.addPass(createPosencDecomposeKvAppendPass());
  manager.addPass(createPosencDecomposeSoftmaxPass());
  manager.addNestedPass<func::FuncOp>(createPosencWidenSumsPass());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  PosencFuseRowsPassOptions fusion;
  fusion.onlyReductions = true;
  manager.addNestedPass<func::FuncOp>(createPosencFuseRowsPass(fusion));
  manager.addPass(createCSEPass());
}

GpuFeatures mlir::posenc::getGpuFeatures(ArrayRef<CudaTarget> gpus) {
  GpuFeatures features;
  features.functions = true;
  features.smallSharedMemory = true;
  for (const CudaTarget &gpu : gpus) {
    if (!gpu.hasAttention())
      continue;
    features.attention = true;
    features.warpgroups |= gpu.hasWarpgroups();
    features.smallSharedMemory &= gpu.hasSmallSharedMemory();
  }
  features.smallSharedMemory &= features.attention;
  return features;
}

void mlir::posenc::buildPosencToGpuLoopsPipeline(OpPassManager &manager,
                                                 const GpuFeatures &features) {
  // Nothing waits for kernels on a GPU to report a failure.
  buildPosencToKernelsPipeline(manager, /*hasAssertions=*/false);
  manager.addPass(createPosencAttachGpuPass(features));
  // Packs have no bufferization, and copies have kernels.
  manager.addNestedPass<func::FuncOp>(createPosencDecomposeMovesPass());
  if (features.functions)
    addRows(manager);
  manager.addPass(bufferization::createEmptyTensorEliminationPass());
  manager.addPass(createPosencBufferizeKernelsPass());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  // Only now are copies of a tensor to itself recognizable.
  manager.addPass(createCanonicalizerPass());

  // Offsets of slices become arithmetic that kernels contain.
  manager.addNestedPass<func::FuncOp>(createLowerAffinePass());
  manager.addPass(createPosencSelectGpuKernelsPass());
}

void mlir::posenc::buildGpuLoopsToKernelsPipeline(OpPassManager &manager,
                                                  const GpuFeatures &features) {
  if (features.functions)
    manager.addPass(createConvertPosencRowsToGpuPass());
  if (features.attention) {
    // The canonicalizer would remove loops of one iteration.
    manager.addPass(createPosencNestAttentionPass());
    manager.addPass(createCSEPass());
    manager.addPass(createConvertPosencAttentionToGpuPass());
    manager.addPass(createPosencCanonicalizeKernelsPass());
    manager.addPass(createCSEPass());
  }
  manager.addPass(createConvertPosencRopeToGpuPass());
  // A thread accesses 16 bytes at a time.
  PosencVectorizeTilesPassOptions vectors;
  vectors.vectorBytes = 16;
  vectors.zip = false;
  manager.addPass(createPosencVectorizeTilesPass(vectors));
  manager.addPass(createCSEPass());
  manager.addPass(createPosencPromoteAllocsToRegistersPass());
  manager.addNestedPass<gpu::GPUModuleOp>(createPosencSplitAccessesPass());
  manager.addPass(createConvertPosencSinusoidalToGpuPass());
  manager.addPass(createConvertPosencElementsToGpuPass());
  manager.addPass(createPosencCanonicalizeKernelsPass());
  manager.addPass(createCSEPass());
}

void mlir::posenc::buildPosencToGpuPipeline(OpPassManager &manager,
                                            const GpuFeatures &features) {
  buildPosencToGpuLoopsPipeline(manager, features);
  buildGpuLoopsToKernelsPipeline(manager, features);
}

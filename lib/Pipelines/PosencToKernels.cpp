//===- PosencToKernels.cpp - pipeline from posenc to kernels on tensors ---===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Codegen/Passes.h"
#include "posenc/Conversion/Passes.h"
#include "posenc/Pipelines/Pipelines.h"
#include "posenc/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::posenc;

void mlir::posenc::buildPosencToKernelsPipeline(OpPassManager &manager,
                                                bool hasAssertions) {
  manager.addPass(createPosencPackArgumentsPass());
  manager.addPass(createPosencExpandIndexCastsPass());
  manager.addPass(createCanonicalizerPass());
  manager.addNestedPass<func::FuncOp>(createPosencMergeEqualOperationsPass());
  manager.addPass(createPosencFoldMasksPass());
  manager.addPass(createPosencHeadsToTokensPass());
  manager.addPass(createPosencDecomposeConvertPairingPass());
  manager.addPass(createPosencTabulateRopesPass());
  manager.addPass(createPosencFuseRopesPass());
  manager.addPass(createPosencFoldRotationsPass());
  manager.addPass(createConvertPosencTurnsToLinalgPass());
  ConvertPosencRopeToLinalgPassOptions rotations;
  rotations.onlyFullTables = true;
  manager.addPass(createConvertPosencRopeToLinalgPass(rotations));
  // Converts the sums of positions that merging ropes created.
  manager.addPass(createConvertElementwiseToLinalgPass());
  manager.addPass(createPosencFoldConversionsPass());
  manager.addNestedPass<func::FuncOp>(createPosencSimplifyReductionsPass());
  // Gives results a destination; bufferization would allocate them otherwise.
  manager.addPass(createPosencCreateKernelsPass({hasAssertions}));
}

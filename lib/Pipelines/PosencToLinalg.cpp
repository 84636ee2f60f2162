//===- PosencToLinalg.cpp - pipeline posenc-to-linalg ---------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Pipelines/Pipelines.h"

#include "posenc/Conversion/Passes.h"
#include "posenc/Transforms/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void mlir::posenc::buildPosencToLinalgPipeline(OpPassManager &pm) {
  pm.addPass(createPosencExpandIndexCastsPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createPosencFoldMasksPass());
  pm.addPass(createPosencDecomposeAttentionPass());
  pm.addPass(createPosencDecomposeKvAppendPass());
  pm.addPass(createPosencDecomposeConvertPairingPass());
  pm.addPass(createPosencTabulateRopesPass());
  pm.addPass(createPosencFuseRopesPass());
  pm.addPass(createConvertPosencTurnsToLinalgPass());
  pm.addPass(createPosencDecomposeRopePass());
  pm.addPass(createConvertPosencRopeToLinalgPass());
  pm.addPass(createConvertPosencSinusoidalToLinalgPass());
  pm.addPass(createConvertPosencAttentionToLinalgPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
}

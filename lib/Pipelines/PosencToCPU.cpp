//===- PosencToCPU.cpp - pipeline posenc-to-cpu ---------------------------===//
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

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/BufferizationToMemRef/BufferizationToMemRef.h"
#include "mlir/Conversion/ComplexToLLVM/ComplexToLLVM.h"
#include "mlir/Conversion/ComplexToStandard/ComplexToStandard.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Conversion/VectorToSCF/VectorToSCF.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/SCF/Transforms/Passes.h"
#include "mlir/Dialect/Transform/Transforms/Passes.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::posenc;

template <typename VectorOptions>
static VectorOptions getVectorOptions(const PosencToCPUOptions &options) {
  VectorOptions result;
  result.vectorBytes = options.vectorBytes;
  copyTuning(options, result);
  return result;
}

/// Returns a canonicalizer for functions whose control flow is structured,
/// which has no blocks to simplify: the search for them takes a tenth of the
/// time of a model.
static std::unique_ptr<Pass> createStructuredCanonicalizerPass() {
  GreedyRewriteConfig config;
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  return createCanonicalizerPass(config);
}

/// Adds the passes that fuse and tile linalg operations.
static void addTiling(OpPassManager &manager,
                      const PosencToCPUOptions &options) {
  manager.addNestedPass<func::FuncOp>(createPosencWidenSumsPass());
  manager.addNestedPass<func::FuncOp>(createPosencFuseElementwisePass());
  PosencTileBlockSumsPassOptions sums;
  sums.vectorBytes = options.vectorBytes;
  copyTuning(options, sums);
  manager.addNestedPass<func::FuncOp>(createPosencTileBlockSumsPass(sums));
  PosencTileInnerProductsPassOptions products;
  products.vectorBytes = options.vectorBytes;
  products.bf16Dots = options.bf16Dots;
  manager.addNestedPass<func::FuncOp>(
      createPosencTileInnerProductsPass(products));
  PosencTileContractionsPassOptions contractions;
  contractions.vectorBytes = options.vectorBytes;
  contractions.bf16Dots = options.bf16Dots;
  contractions.amxBF16 = options.amxBF16;
  copyTuning(options, contractions);
  manager.addNestedPass<func::FuncOp>(
      createPosencTileContractionsPass(contractions));
  // Runs after contractions are tiled, whose panels it must not decompose.
  manager.addNestedPass<func::FuncOp>(createPosencDecomposeMovesPass());
  manager.addNestedPass<func::FuncOp>(createPosencFuseRowsPass());
  // Fusion copies an operation into each of its users.
  manager.addNestedPass<func::FuncOp>(createPosencMergeEqualOperationsPass());
  manager.addNestedPass<func::FuncOp>(createPosencReuseOperandsPass());
}

/// Applies the user's schedule; operations that it does not tile are tiled as
/// usual.
static void addSchedule(OpPassManager &manager,
                        const PosencToCPUOptions &options) {
  transform::PreloadLibraryPassOptions library;
  library.transformLibraryPaths = {options.schedule};
  manager.addPass(transform::createPreloadLibraryPass(library));
  manager.addPass(transform::createInterpreterPass());
  manager.addPass(createCanonicalizerPass());
  manager.addNestedPass<func::FuncOp>(createPosencMergeEqualOperationsPass());
}

void mlir::posenc::buildPosencToTiledPipeline(
    OpPassManager &manager, const PosencToCPUOptions &options) {
  buildPosencToKernelsPipeline(manager);
  PosencDecomposeAttentionPassOptions decomposition;
  decomposition.exceptVectors = true;
  decomposition.rowsPerQueryTile = options.attentionNestRows;
  decomposition.queryTilesPerTask = options.attentionNestTiles;
  decomposition.keysPerTile = 64;
  decomposition.boundsElements = true;
  manager.addPass(createPosencDecomposeAttentionPass(decomposition));
  manager.addPass(createPosencDecomposeKvAppendPass());
  manager.addPass(createPosencDecomposeSoftmaxPass());
  if (!options.schedule.empty())
    addSchedule(manager, options);
  ConvertPosencAttentionToLinalgPassOptions attention;
  attention.bf16Weights = options.bf16Dots;
  manager.addPass(createConvertPosencAttentionToLinalgPass(attention));
  manager.addPass(createStructuredCanonicalizerPass());
  manager.addNestedPass<func::FuncOp>(createPosencMergeEqualOperationsPass());
  addTiling(manager, options);
  PosencTilePositionsPassOptions tiling;
  copyTuning(options, tiling);
  manager.addNestedPass<func::FuncOp>(createPosencTilePositionsPass(tiling));
  manager.addPass(createStructuredCanonicalizerPass());
  manager.addNestedPass<func::FuncOp>(createPosencMergeEqualOperationsPass());

  PosencTileElementwisePassOptions elements;
  elements.vectorBytes = options.vectorBytes;
  manager.addNestedPass<func::FuncOp>(
      createPosencTileElementwisePass(elements));
  // Runs last, as it leaves the rest of a row untiled.
  manager.addNestedPass<func::FuncOp>(createPosencTileReductionsPass());
  // Finds that blocks which divide a dimension are all of the same size.
  manager.addNestedPass<func::FuncOp>(createSCFForLoopCanonicalizationPass());
  manager.addPass(createStructuredCanonicalizerPass());
  manager.addNestedPass<func::FuncOp>(createPosencMergeEqualOperationsPass());
}

void mlir::posenc::buildTiledToVectorPipeline(
    OpPassManager &manager, const PosencToCPUOptions &options) {
  // Products on tensors are lowered before bufferization, except to AMX.
  PosencLowerTileProductsPassOptions products;
  products.bf16Dots = options.bf16Dots;
  products.amxBF16 = options.amxBF16;
  products.int8Dots = options.int8Dots;
  products.amxInt8 = options.amxInt8;
  manager.addNestedPass<func::FuncOp>(
      createPosencLowerTileProductsPass(products));
  manager.addNestedPass<func::FuncOp>(createPosencVectorizeLinalgPass());
  manager.addPass(createStructuredCanonicalizerPass());
  manager.addNestedPass<func::FuncOp>(createPosencMergeEqualOperationsPass());

  manager.addNestedPass<func::FuncOp>(createPosencSplitEmptyTensorsPass());
  manager.addPass(bufferization::createEmptyTensorEliminationPass());
  manager.addPass(createPosencBufferizeKernelsPass());
  // Callers own returned buffers, so functions copy those that they do not own.
  manager.addPass(bufferization::createDropEquivalentBufferResultsPass());
  manager.addPass(createStructuredCanonicalizerPass());
  manager.addPass(createCSEPass());
  // Only now are copies of a tile to itself recognizable.
  manager.addPass(createStructuredCanonicalizerPass());

  auto attention =
      getVectorOptions<ConvertPosencAttentionToVectorPassOptions>(options);
  attention.bf16Dots = options.bf16Dots;
  attention.amxBF16 = options.amxBF16;
  manager.addPass(createConvertPosencAttentionToVectorPass(attention));
  manager.addNestedPass<func::FuncOp>(
      createPosencLowerTileProductsPass(products));
  manager.addPass(createPosencDecomposeRotationsPass(
      getVectorOptions<PosencDecomposeRotationsPassOptions>(options)));
  manager.addPass(createPosencVectorizeTilesPass(
      getVectorOptions<PosencVectorizeTilesPassOptions>(options)));
  manager.addPass(createConvertPosencTablesToVectorPass(
      getVectorOptions<ConvertPosencTablesToVectorPassOptions>(options)));
  if (options.amxBF16)
    manager.addNestedPass<func::FuncOp>(createPosencInterleaveTilesPass());
  PosencCopyToLoopsPassOptions copies;
  copies.vectorBytes = options.vectorBytes;
  manager.addNestedPass<func::FuncOp>(createPosencCopyToLoopsPass(copies));
  // Remaining linalg ops become scalar loops, which LLVM may vectorize.
  manager.addNestedPass<func::FuncOp>(createConvertLinalgToLoopsPass());
  manager.addNestedPass<func::FuncOp>(createPosencPlanWorkspacePass());
  manager.addNestedPass<func::FuncOp>(createPosencPromoteAllocsToStackPass());
  // These passes are those of the upstream buffer-deallocation-pipeline.
  manager.addPass(memref::createExpandReallocPass({/*emitDeallocs=*/false}));
  manager.addPass(createStructuredCanonicalizerPass());
  manager.addPass(createPosencDeallocateBuffersPass());
  manager.addPass(createStructuredCanonicalizerPass());
  manager.addPass(bufferization::createBufferDeallocationSimplificationPass());
  manager.addPass(bufferization::createLowerDeallocationsPass());
  manager.addPass(createCSEPass());
  manager.addPass(createStructuredCanonicalizerPass());
  manager.addPass(createConvertBufferizationToMemRefPass());
  // Expands the copies that deallocation inserted for returned buffers that the
  // function does not own.
  manager.addNestedPass<func::FuncOp>(createPosencCopyToLoopsPass(copies));
  manager.addNestedPass<func::FuncOp>(createConvertLinalgToLoopsPass());
  manager.addNestedPass<func::FuncOp>(createPosencForallToTasksPass());
  manager.addNestedPass<func::FuncOp>(createPosencMoveAllocasToWorkspacePass());
  manager.addNestedPass<func::FuncOp>(createForallToForLoopPass());
  // Register tiles for AVX2 and AVX-512 take nearly all vector registers, those
  // for vectors of 16 bytes about half of them.
  if (options.vectorBytes >= 32)
    manager.addNestedPass<func::FuncOp>(createPosencOrderTileLoadsPass());
  manager.addNestedPass<func::FuncOp>(createPosencUnrollSumsPass(
      getVectorOptions<PosencUnrollSumsPassOptions>(options)));
  manager.addNestedPass<func::FuncOp>(createPosencPrefetchPanelsPass(
      getVectorOptions<PosencPrefetchPanelsPassOptions>(options)));
  manager.addNestedPass<func::FuncOp>(createPosencPrefetchRowsPass(
      getVectorOptions<PosencPrefetchRowsPassOptions>(options)));
  manager.addNestedPass<func::FuncOp>(createPosencStreamStoresPass(
      getVectorOptions<PosencStreamStoresPassOptions>(options)));
  if (options.int8Dots)
    manager.addNestedPass<func::FuncOp>(createPosencFormByteDotsPass());
  manager.addPass(createPosencOutlineLoopsPass());
  // Runs when the choices for each loop are made, which depend on the buffers
  // around it, and before the loop is lowered.
  manager.addPass(createPosencMergeFunctionsPass());
  manager.addPass(createStructuredCanonicalizerPass());
  manager.addPass(createCSEPass());
}

void mlir::posenc::buildVectorToLLVMPipeline(
    OpPassManager &manager, const PosencToCPUOptions &options) {
  if (!options.amxBF16) {
    PosencExpandTilesPassOptions tiles;
    tiles.avx512 = options.vectorBytes == 64;
    tiles.int8Dots = options.int8Dots;
    manager.addNestedPass<func::FuncOp>(createPosencExpandTilesPass(tiles));
  }
  manager.addNestedPass<func::FuncOp>(createPosencScalarizeTransfersPass());
  VectorTransferToSCFOptions vectorToSCF;
  vectorToSCF.enableFullUnroll();
  manager.addPass(createConvertVectorToSCFPass(vectorToSCF));
  // Remaining f8 operations are an error, as for other types.
  manager.addPass(createPosencExpandF8Pass());
  manager.addPass(createPosencExpandArithPass());
  manager.addPass(createSCFToControlFlowPass());
  manager.addNestedPass<func::FuncOp>(createPosencExpandReshapesPass());
  manager.addPass(memref::createExpandStridedMetadataPass());
  manager.addPass(createLowerAffinePass());
  PosencExpandMathPassOptions functions;
  // Only AVX-512 has vectors of 64 bytes.
  functions.avx512 = options.vectorBytes == 64;
  manager.addPass(createPosencExpandMathPass(functions));
  if (!options.nativeBF16) {
    // Expands bf16 arithmetic of the input module itself.
    manager.addPass(
        arith::createArithEmulateUnsupportedFloats({{"bf16"}, "f32"}));
    manager.addPass(createPosencExpandBF16Pass());
  }
  manager.addPass(createConvertComplexToStandardPass());
  manager.addPass(createConvertMathToLLVMPass());
  ConvertVectorToLLVMPassOptions vectorToLLVM;
  vectorToLLVM.x86Vector = options.nativeBF16;
  vectorToLLVM.amx = options.amxBF16;
  manager.addPass(createConvertVectorToLLVMPass(vectorToLLVM));
  // Runs before constants are converted: for a dimension whose number is not
  // known to be constant, memref.dim becomes an alloca, in a loop perhaps,
  // which remains if LLVM does not optimize.
  manager.addPass(createFinalizeMemRefToLLVMConversionPass());
  manager.addPass(createConvertComplexToLLVMPass());
  manager.addPass(createArithToLLVMConversionPass());
  manager.addPass(createConvertIndexToLLVMPass());
  manager.addPass(createConvertFuncToLLVMPass());
  manager.addPass(createConvertControlFlowToLLVMPass());
  manager.addPass(createUBToLLVMConversionPass());
  manager.addPass(createReconcileUnrealizedCastsPass());
  if (!options.nativeBF16)
    manager.addPass(createPosencLegalizeBF16Pass());
  manager.addPass(createPosencLegalizeI1Pass());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  if (options.amxBF16)
    manager.addPass(createPosencStreamTileLoadsPass());
}

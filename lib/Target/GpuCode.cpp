//===- GpuCode.cpp - GPU code of a library --------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Target/GpuCode.h"

#include "posenc/ABI/CInterface.h"
#include "posenc/Codegen/Passes.h"
#include "posenc/Pipelines/Pipelines.h"
#include "posenc/Target/SpirvCode.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace mlir::posenc;

LogicalResult mlir::posenc::lowerToGpu(ModuleOp module,
                                       const GpuFeatures &features) {
  PassManager toLoops(module.getContext()), toKernels(module.getContext());
  buildPosencToGpuLoopsPipeline(toLoops, features);
  buildGpuLoopsToKernelsPipeline(toKernels, features);
  if (failed(toLoops.run(module)) || failed(runUnverified(toKernels, module)))
    return failure();
  // False if all tensors are empty, for example; then there is nothing to
  // compile.
  bool hasLaunches =
      module.walk([](gpu::LaunchFuncOp) { return WalkResult::interrupt(); })
          .wasInterrupted();
  for (auto [function, abi] : getKernels(module))
    if (!hasLaunches)
      function.emitWarning() << "'" << function.getName()
                             << "' is left out for the GPU: it runs no kernel";
  if (!hasLaunches)
    return module.emitError("no public function that a GPU can run");
  return success();
}

/// Lowers the functions with launches to LLVM. Launches become calls that refer
/// to the kernels by name, so the kernels themselves are removed.
static LogicalResult lowerHost(ModuleOp module) {
  MLIRContext *context = module.getContext();
  PassManager toCalls(context), toLLVM(context);
  toCalls.addPass(createPosencLowerLaunchesPass());
  if (failed(toCalls.run(module)))
    return failure();
  for (auto kernels :
       llvm::make_early_inc_range(module.getOps<gpu::GPUModuleOp>()))
    kernels.erase();
  buildVectorToLLVMPipeline(toLLVM, PosencToCPUOptions());
  return runUnverified(toLLVM, module);
}

std::optional<GpuCode> mlir::posenc::generateGpuCode(ModuleOp module,
                                                     const GpuTargets &targets,
                                                     bool withCubins) {
  GpuCode code;
  code.host = module.clone();
  // All targets share the same kernels at this stage. Those of attention are
  // left out of the images of older GPUs.
  GpuFeatures features =
      targets.vulkan ? GpuFeatures() : getGpuFeatures(targets.cuda);
  if (failed(lowerToGpu(*code.host, features)))
    return std::nullopt;
  std::optional<std::vector<CudaImage>> images =
      generateCudaImages(*code.host, targets.cuda, withCubins);
  if (!images)
    return std::nullopt;
  code.images = std::move(*images);
  if (targets.vulkan) {
    std::optional<std::vector<uint32_t>> kernels =
        generateVulkanCode(*code.host);
    if (!kernels)
      return std::nullopt;
    code.vulkan = std::move(*kernels);
  }
  if (failed(lowerHost(*code.host)))
    return std::nullopt;
  return code;
}

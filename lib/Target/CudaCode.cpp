//===- CudaCode.cpp - kernels for NVIDIA GPUs -------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Target/CudaCode.h"

#include "posenc/Pipelines/Pipelines.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/GPU/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace mlir::posenc;

/// The kernels of a module for one architecture, as PTX.
static std::optional<std::string> generatePtx(ModuleOp module,
                                              const CudaTarget &target) {
  OwningOpRef<ModuleOp> copy = module.clone();
  PosencToNVVMOptions options;
  options.chip = target.chip;
  PassManager manager(module.getContext());
  buildGpuToNVVMPipeline(manager, options);
  GpuModuleToBinaryPassOptions toBinary;
  toBinary.compilationTarget = "isa";
  manager.addPass(createGpuModuleToBinaryPass(toBinary));
  if (failed(manager.run(*copy)))
    return std::nullopt;
  for (auto binary : copy->getOps<gpu::BinaryOp>())
    for (Attribute object : binary.getObjects()) {
      StringRef text = cast<gpu::ObjectAttr>(object).getObject().getValue();
      text.consume_back(StringRef("\0", 1));
      return text.str();
    }
  module.emitError("the kernels have become no PTX");
  return std::nullopt;
}

/// Whether the assembler does not know an architecture, or that much PTX.
static bool isTooOld(StringRef message) {
  return message.contains("is not defined for option") ||
         message.contains("Unsupported .version");
}

std::optional<std::vector<CudaImage>>
mlir::posenc::generateCudaImages(ModuleOp module, ArrayRef<CudaTarget> targets,
                                 bool withCubins) {
  std::vector<CudaImage> images;
  bool assembles = withCubins && !findPtxas().empty();
  for (const CudaTarget &target : targets) {
    std::optional<std::string> ptx = generatePtx(module, target);
    if (!ptx)
      return std::nullopt;
    if (assembles) {
      llvm::Expected<std::string> cubin = assemblePtx(*ptx, target);
      if (cubin) {
        images.push_back({target, /*isPtx=*/false, std::move(*cubin)});
      } else {
        std::string message = llvm::toString(cubin.takeError());
        // A toolkit may be older than the target; else a driver fails as well.
        if (!isTooOld(message)) {
          module.emitError() << message;
          return std::nullopt;
        }
        module.emitWarning() << "the driver will have to compile for "
                             << target.chip << ": " << message;
      }
    }
    images.push_back({target, /*isPtx=*/true, std::move(*ptx)});
  }
  return images;
}

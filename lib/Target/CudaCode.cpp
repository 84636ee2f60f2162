//===- CudaCode.cpp - code for NVIDIA GPUs --------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/Target/CudaCode.h"

#include "posenc/IR/Posenc.h"
#include "posenc/IR/Remarks.h"
#include "posenc/Pipelines/Pipelines.h"
#include "posenc/Target/Ptxas.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/GPU/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace mlir::posenc;

/// Returns the kernels of a module as PTX for one architecture; nullopt after
/// an error.
static std::optional<std::string> generatePtx(ModuleOp module,
                                              const CudaTarget &target) {
  OwningOpRef<ModuleOp> copy = module.clone();
  copy->walk([&](gpu::GPUFuncOp kernel) {
    auto chip = kernel->getAttrOfType<ChipAttr>(PosencDialect::kChipAttrName);
    if (chip && !target.runs(chip.getName()))
      kernel.erase();
  });
  PosencToNVVMOptions options;
  options.chip = target.chip;
  PassManager manager(module.getContext());
  buildGpuToNVVMPipeline(manager, options);
  GpuModuleToBinaryPassOptions toBinary;
  toBinary.compilationTarget = "isa";
  manager.addPass(createGpuModuleToBinaryPass(toBinary));
  // Kernels call no function of libdevice, which a toolkit in CUDA_HOME may
  // lack.
  ScopedDiagnosticHandler ignore(
      module.getContext(), [](Diagnostic &diagnostic) {
        return success(
            StringRef(diagnostic.str()).starts_with("LibDevice path"));
      });
  if (failed(runUnverified(manager, *copy)))
    return std::nullopt;
  for (auto binary : copy->getOps<gpu::BinaryOp>())
    for (Attribute object : binary.getObjects()) {
      StringRef text = cast<gpu::ObjectAttr>(object).getObject().getValue();
      text.consume_back(StringRef("\0", 1));
      return text.str();
    }
  module.emitError("no PTX was generated for the kernels");
  return std::nullopt;
}

/// Whether an error of ptxas means that it does not support the architecture or
/// the PTX version.
static bool isTooOld(StringRef message) {
  return message.contains("is not defined for option") ||
         message.contains("Unsupported .version");
}

std::optional<std::vector<CudaImage>>
mlir::posenc::generateCudaImages(ModuleOp module, ArrayRef<CudaTarget> targets,
                                 bool withCubins) {
  std::vector<CudaImage> images;
  std::optional<Ptxas> ptxas = withCubins ? findPtxas() : std::nullopt;
  std::string assembler = ptxas ? ptxas->describe() : "";
  if (ptxas)
    reportChoice(module, "cuda-code", "cubins are assembled by " + assembler);
  else if (withCubins)
    reportMissed(module, "cuda-code",
                 "there is no ptxas, so that the driver compiles the PTX");
  for (const CudaTarget &target : targets) {
    std::optional<std::string> ptx = generatePtx(module, target);
    if (!ptx)
      return std::nullopt;
    if (ptxas) {
      llvm::Expected<AssembledPtx> code = assemblePtx(*ptxas, *ptx, target);
      if (code) {
        images.push_back({target, /*isPtx=*/false, std::move(code->cubin),
                          assembler + "\n" + code->log});
      } else {
        std::string message = llvm::toString(code.takeError());
        // If the toolkit is older than the target, a driver may still compile
        // the PTX. Any other error would occur in the driver as well.
        if (!isTooOld(message)) {
          module.emitError() << message;
          return std::nullopt;
        }
        module.emitWarning()
            << "only PTX is generated for " << target.chip
            << ", which the driver compiles at load time: " << message;
      }
    }
    images.push_back({target, /*isPtx=*/true, std::move(*ptx), /*log=*/""});
  }
  return images;
}

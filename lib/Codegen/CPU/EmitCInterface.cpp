//===- EmitCInterface.cpp - the C entries of a kernel library ---*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CInterfaceEmitter.h"
#include "posenc/Codegen/CInterface.h"
#include "posenc/Codegen/Passes.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCEMITCINTERFACEPASS
#include "posenc/Codegen/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

/// Makes the functions of the input internal: they are reached through the
/// entries only, and must not take the name of one.
static LogicalResult hideFunctions(ModuleOp module, StringRef prefix,
                                   bool hasDots) {
  for (Operation &op : *module.getBody()) {
    auto symbol = dyn_cast<SymbolOpInterface>(op);
    if (symbol && (isExportedSymbol(prefix, symbol.getName()) ||
                   (!hasDots && symbol.getName().contains('.'))))
      return op.emitError() << "symbol '" << symbol.getName()
                            << "' collides with the library's own";
    if (auto function = dyn_cast<LLVM::LLVMFuncOp>(op))
      if (!function.isExternal())
        function.setLinkage(LLVM::Linkage::Internal);
  }
  return success();
}

namespace {
struct EmitCInterface final
    : mlir::posenc::impl::PosencEmitCInterfacePassBase<EmitCInterface> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<uint64_t> features(cpuFeatures.begin(), cpuFeatures.end());
    if (features.empty())
      features.push_back(0);
    if (variant >= features.size()) {
      module.emitError() << "no variant " << variant.getValue()
                         << ": there are " << features.size();
      return signalPassFailure();
    }
    SmallVector<KernelFunction> kernels = getKernels(module);
    SmallVector<std::pair<LLVM::LLVMFuncOp, CallLayout>> functions;
    CInterfaceEmitter emitter(module, prefix, features, gpu);
    for (auto [kernel, abi] : kernels) {
      auto function = dyn_cast<LLVM::LLVMFuncOp>(kernel.getOperation());
      if (!function) {
        kernel.emitError("expected a kernel in the LLVM dialect");
        return signalPassFailure();
      }
      for (StringRef suffix : {kTensorSuffix, kCudaSuffix, kVulkanSuffix}) {
        StringRef name = function.getName();
        if (!name.consume_back(suffix) || !module.lookupSymbol(name))
          continue;
        function.emitError()
            << "'" << function.getName()
            << "' would have the name of an entry of '" << name << "'";
        return signalPassFailure();
      }
      auto shared =
          function->getAttrOfType<IntegerAttr>(PosencDialect::kSharedAttrName);
      functions.push_back(
          {function, CallLayout(abi, shared ? shared.getInt() : 0)});
      if (failed(emitter.check(function, functions.back().second)))
        return signalPassFailure();
    }
    SmallVector<LibraryKernel> described;
    for (auto [kernel, abi] : kernels) {
      bool onGpu = gpu || llvm::is_contained(gpuFunctions, kernel.getName());
      described.push_back({kernel, abi, /*onCpu=*/!gpu,
                           /*onCuda=*/onGpu && cuda,
                           /*onVulkan=*/onGpu && vulkanBytes});
    }
    std::string metadata =
        createMetadata(described, prefix, targets, vulkanBytes);
    if (failed(hideFunctions(module, prefix, /*hasDots=*/gpu)))
      return signalPassFailure();
    for (auto &[function, layout] : functions)
      emitter.emitPacked(function, layout, variant);
    if (!entries && !gpu)
      return;
    emitter.declarePrelude();
    for (auto &[function, layout] : functions) {
      emitter.emitDescription(function, layout);
      if (cuda && gpu)
        emitter.emitCudaEntry(function, layout);
      if (vulkanBytes && gpu)
        emitter.emitVulkanEntry(function, layout);
      if (gpu)
        continue;
      emitter.emitPlainEntry(function, layout);
      emitter.emitTensorEntry(function, layout);
      emitter.emitFfiEntry(function, layout);
    }
    if (!entries)
      return;
    emitter.emitMetadata(metadata);
    if (!gpu)
      emitter.emitSetParallelFor();
  }
};
} // namespace

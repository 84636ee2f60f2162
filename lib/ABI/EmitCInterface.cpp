//===- EmitCInterface.cpp - C entry points of a kernel library ------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CInterfaceEmitter.h"
#include "posenc/ABI/CInterface.h"
#include "posenc/ABI/Passes.h"
#include "posenc/IR/KernelConfig.h"
#include "posenc/IR/Names.h"
#include "posenc/IR/Weights.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCEMITCINTERFACEPASS
#include "posenc/ABI/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

/// Reports a symbol with the name of an entry point or a reserved name.
static LogicalResult reportCollision(SymbolOpInterface symbol,
                                     StringRef prefix) {
  StringRef name = symbol.getName();
  auto module = symbol->getParentOfType<ModuleOp>();
  auto findFunction = [&]() -> StringRef {
    for (StringRef suffix :
         {StringRef(), StringRef(kTensorSuffix), StringRef(kCudaSuffix),
          StringRef(kVulkanSuffix), StringRef(kWorkspaceSuffix),
          StringRef(kCudaWorkspaceSuffix), StringRef(kOutputSizesSuffix),
          StringRef(kOutputSizesByValuesSuffix)})
      for (auto kernel : module.getOps<LLVM::LLVMFuncOp>())
        if (getAbi(kernel) &&
            (name == getEntrySymbol(prefix, kernel.getName(), suffix) ||
             name == getFfiEntrySymbol(prefix, kernel.getName())))
          return kernel.getName();
    return "";
  };
  InFlightDiagnostic error = symbol->emitError()
                             << "symbol '" << name << "' collides with ";
  if (StringRef function = findFunction(); !function.empty())
    error << "the entry point '" << name
          << "' that the library has for function '" << function << "'";
  else
    error << "the library's own symbols, which begin with '" << prefix << "_'";
  return error << ": rename it, or change the prefix '" << prefix
               << "', which is the name of the output";
}

/// Makes the functions of the input internal, since only entry points call
/// them. Reports symbols that collide with those of the library. `allowDots`
/// allows symbols with dots, which GPU modules have.
static LogicalResult hideFunctions(ModuleOp module, StringRef prefix,
                                   bool allowDots) {
  for (Operation &op : *module.getBody()) {
    auto symbol = dyn_cast<SymbolOpInterface>(op);
    if (symbol && isExportedSymbol(prefix, symbol.getName()))
      return reportCollision(symbol, prefix);
    if (symbol && !allowDots && symbol.getName().contains('.') &&
        symbol.getName() != kWeightsSymbol)
      return op.emitError() << "symbol '" << symbol.getName()
                            << "' collides with the library's own symbols, "
                               "which have dots in their names: rename it";
    auto function = dyn_cast<LLVM::LLVMFuncOp>(op);
    if (!function)
      continue;
    if (!function.isExternal())
      function.setLinkage(LLVM::Linkage::Internal);
    // The signature has the names, and the translation to LLVM IR would warn
    // about the attributes.
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      function.removeArgAttr(i, PosencDialect::kNameAttrName);
      function.removeArgAttr(i, kUnsignedAttrName);
    }
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
    for (const auto *list : {&sharedBytes, &scratchBytes}) {
      if (list->empty() || list->size() == kernels.size())
        continue;
      module.emitError() << "expected a number of bytes for each of "
                         << kernels.size() << " kernels, got " << list->size();
      return signalPassFailure();
    }
    SmallVector<std::pair<LLVM::LLVMFuncOp, CallLayout>> functions;
    CInterfaceEmitter emitter(module, prefix, features, gpu);
    for (auto [kernel, abi] : kernels) {
      auto function = dyn_cast<LLVM::LLVMFuncOp>(kernel.getOperation());
      if (!function) {
        kernel.emitError("expected a kernel in the LLVM dialect");
        return signalPassFailure();
      }
      for (StringRef suffix :
           {kTensorSuffix, kCudaSuffix, kVulkanSuffix, kCudaWorkspaceSuffix,
            kWorkspaceSuffix, kOutputSizesSuffix, kOutputSizesByValuesSuffix}) {
        StringRef name = function.getName();
        Operation *other =
            name.consume_back(suffix) ? module.lookupSymbol(name) : nullptr;
        if (!other || (suffix == kWorkspaceSuffix &&
                       !getKernelConfig(other).hasWorkspace))
          continue;
        function.emitError()
            << "the entry point '" << getEntrySymbol(prefix, function.getName())
            << "' of function '" << function.getName()
            << "' collides with one of function '" << name
            << "', which has an entry point with the suffix '" << suffix
            << "': rename one of the functions";
        return signalPassFailure();
      }
      functions.push_back(
          {function, CallLayout(abi, getKernelConfig(function))});
      if (failed(emitter.check(function, functions.back().second)))
        return signalPassFailure();
    }
    SmallVector<LibraryKernel> described;
    for (auto [kernel, abi] : kernels) {
      bool onGpu = gpu || llvm::is_contained(gpuFunctions, kernel.getName());
      bool hasWorkspace = getKernelConfig(kernel).hasWorkspace;
      described.push_back(
          {kernel, abi, /*onCpu=*/!gpu,
           /*onCuda=*/onGpu && cuda,
           /*onVulkan=*/onGpu && vulkanBytes,
           /*hasWorkspace=*/!gpu && hasWorkspace,
           /*hasCudaWorkspace=*/cuda &&
               (gpu ? hasWorkspace
                    : llvm::is_contained(cudaWorkspaces, kernel.getName())),
           /*hasWeights=*/!gpu && kernel->hasAttr(kWeightsAttrName)});
    }
    std::string metadata =
        createMetadata(described, prefix, targets, vulkanBytes, weights);
    if (failed(hideFunctions(module, prefix, /*allowDots=*/gpu)))
      return signalPassFailure();
    for (auto &[function, layout] : functions)
      emitter.emitPacked(function, layout, variant);
    if (!entries && !gpu)
      return;
    emitter.declareKernelSupport();
    for (auto [number, entry] : llvm::enumerate(functions)) {
      auto &[function, layout] = entry;
      KernelMemory memory = getKernelMemory(function);
      if (!sharedBytes.empty())
        memory.sharedBytes = sharedBytes[number];
      if (!scratchBytes.empty())
        memory.scratchBytes = scratchBytes[number];
      emitter.emitDescription(function, layout, memory);
      bool hasWorkspace = getKernelConfig(function).hasWorkspace;
      if (cuda && gpu) {
        emitter.emitCudaEntry(function, layout);
        emitter.emitFfiCudaFunction(function, layout, /*isEntry=*/entries);
        if (hasWorkspace)
          emitter.emitWorkspaceEntry(function, layout);
      }
      if (vulkanBytes && gpu)
        emitter.emitVulkanEntry(function, layout);
      if (entries)
        emitter.emitOutputSizesEntries(function, layout);
      if (gpu)
        continue;
      emitter.emitPlainEntry(function, layout);
      emitter.emitTensorEntry(function, layout);
      emitter.emitFfiEntry(
          function, layout,
          cuda && llvm::is_contained(gpuFunctions, function.getName()));
      if (hasWorkspace)
        emitter.emitWorkspaceEntry(function, layout);
    }
    if (!entries)
      return;
    emitter.emitMetadata(metadata);
    if (gpu)
      return;
    emitter.emitSetParallelFor();
    if (!weights.empty())
      emitter.emitWeightsOpen();
  }
};
} // namespace

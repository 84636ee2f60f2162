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
static LogicalResult hideFunctions(ModuleOp module, StringRef prefix) {
  for (Operation &op : *module.getBody()) {
    auto symbol = dyn_cast<SymbolOpInterface>(op);
    if (symbol && (isExportedSymbol(prefix, symbol.getName()) ||
                   symbol.getName().contains('.')))
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
    SmallVector<Kernel> kernels = getKernels(module);
    SmallVector<std::pair<LLVM::LLVMFuncOp, CallLayout>> functions;
    CInterfaceEmitter emitter(module, prefix, features);
    for (auto [kernel, abi] : kernels) {
      auto function = dyn_cast<LLVM::LLVMFuncOp>(kernel.getOperation());
      if (!function) {
        kernel.emitError("expected a kernel in the LLVM dialect");
        return signalPassFailure();
      }
      StringRef name = function.getName();
      if (name.consume_back(kTensorSuffix) && module.lookupSymbol(name)) {
        function.emitError()
            << "'" << function.getName()
            << "' would have the name of an entry of '" << name << "'";
        return signalPassFailure();
      }
      functions.push_back({function, CallLayout(abi)});
      if (failed(emitter.check(function, functions.back().second)))
        return signalPassFailure();
    }
    std::string metadata = createMetadata(kernels, prefix, targets);
    if (failed(hideFunctions(module, prefix)))
      return signalPassFailure();
    for (auto &[function, layout] : functions)
      emitter.emitPacked(function, layout, variant);
    if (!entries)
      return;
    emitter.declarePrelude();
    for (auto &[function, layout] : functions) {
      emitter.emitDescription(function, layout);
      emitter.emitPlainEntry(function, layout);
      emitter.emitTensorEntry(function, layout);
      emitter.emitFfiEntry(function, layout);
    }
    emitter.emitMetadata(metadata);
    emitter.emitSetParallelFor();
  }
};
} // namespace

//===- LoadWeights.cpp - addresses of weights from a table ----------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/ABI/CInterface.h"
#include "posenc/ABI/Passes.h"
#include "posenc/IR/Weights.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/StringSet.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCLOADWEIGHTSPASS
#include "posenc/ABI/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

/// Returns whether a function refers to one of these symbols.
static bool refersTo(LLVM::LLVMFuncOp function,
                     const llvm::StringSet<> &names) {
  return function
      .walk([&](Operation *op) {
        StringRef name;
        if (auto address = dyn_cast<LLVM::AddressOfOp>(op))
          name = address.getGlobalName();
        else if (auto call = dyn_cast<LLVM::CallOp>(op))
          name = call.getCallee().value_or("");
        return names.contains(name) ? WalkResult::interrupt()
                                    : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Marks the functions that read weights, or call others that do.
static void markReaders(ModuleOp module) {
  llvm::StringSet<> names;
  names.insert(kWeightsSymbol);
  SmallVector<LLVM::LLVMFuncOp> others(module.getOps<LLVM::LLVMFuncOp>());
  size_t numNames = 0;
  while (numNames != names.size()) {
    numNames = names.size();
    llvm::erase_if(others, [&](LLVM::LLVMFuncOp function) {
      if (!refersTo(function, names))
        return false;
      names.insert(function.getName());
      function->setAttr(kWeightsAttrName, UnitAttr::get(module.getContext()));
      return true;
    });
  }
}

namespace {
struct LoadWeights final
    : mlir::posenc::impl::PosencLoadWeightsPassBase<LoadWeights> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto weights = module->getAttrOfType<DictionaryAttr>(kWeightsAttrName);
    if (!weights)
      return markAllAnalysesPreserved();
    OpBuilder builder(module.getBodyRegion());
    auto pointer = LLVM::LLVMPointerType::get(&getContext());
    int64_t count = 0;
    for (NamedAttribute weight : weights) {
      auto number = dyn_cast<IntegerAttr>(weight.getValue());
      auto global = module.lookupSymbol<LLVM::GlobalOp>(weight.getName());
      if (!number || !number.getType().isSignlessInteger(64) ||
          number.getInt() < 0 || !global || global.getValueOrNull()) {
        module.emitError() << "expected '" << weight.getName().getValue()
                           << "' in '" << kWeightsAttrName
                           << "' to be the number of a global without a value";
        return signalPassFailure();
      }
      count = std::max(count, number.getInt() + 1);
    }
    LLVM::GlobalOp::create(builder, module.getLoc(),
                           LLVM::LLVMArrayType::get(pointer, count),
                           /*isConstant=*/false, LLVM::Linkage::External,
                           kWeightsSymbol, Attribute());
    module.walk([&](LLVM::AddressOfOp op) {
      auto number =
          weights.getAs<IntegerAttr>(op.getGlobalNameAttr().getAttr());
      if (!number)
        return;
      builder.setInsertionPoint(op);
      Value table = LLVM::AddressOfOp::create(builder, op.getLoc(), pointer,
                                              kWeightsSymbol);
      Value place = LLVM::GEPOp::create(
          builder, op.getLoc(), pointer, pointer, table,
          ArrayRef<LLVM::GEPArg>(static_cast<int32_t>(number.getInt())));
      Value address = LLVM::LoadOp::create(
          builder, op.getLoc(), pointer, place, /*alignment=*/0,
          /*isVolatile=*/false, /*isNonTemporal=*/false, /*isInvariant=*/true);
      op.replaceAllUsesWith(address);
      op.erase();
    });
    for (NamedAttribute weight : weights)
      module.lookupSymbol(weight.getName())->erase();
    module->removeAttr(kWeightsAttrName);
    markReaders(module);
  }
};
} // namespace

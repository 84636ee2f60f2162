//===- ExtractWeights.cpp - large constants out of the code ---------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "posenc/ABI/Passes.h"
#include "posenc/IR/Posenc.h"
#include "posenc/IR/Weights.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace mlir::posenc {
#define GEN_PASS_DEF_POSENCEXTRACTWEIGHTSPASS
#include "posenc/ABI/Passes.h.inc"
} // namespace mlir::posenc

using namespace mlir;
using namespace mlir::posenc;

/// Returns the elements of a global that can be in a file, or null.
static ElementsAttr getElements(memref::GlobalOp global) {
  auto elements =
      dyn_cast_if_present<ElementsAttr>(global.getInitialValueAttr());
  if (!elements || !global.getConstant() || !global.isPrivate() ||
      getSafetensorsType(elements.getElementType()).empty() ||
      !getStoredBytes(elements))
    return nullptr;
  return elements;
}

namespace {
struct ExtractWeights final
    : mlir::posenc::impl::PosencExtractWeightsPassBase<ExtractWeights> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    NamedAttrList weights(
        module->getAttrOfType<DictionaryAttr>(kWeightsAttrName));
    SmallVector<memref::GlobalOp> globals;
    double total = 0;
    for (auto global : module.getOps<memref::GlobalOp>()) {
      ElementsAttr elements = getElements(global);
      std::optional<int64_t> bytes =
          elements ? getNumBytes(elements.getShapedType()) : std::nullopt;
      if (!bytes || *bytes < minBytes)
        continue;
      total += *bytes;
      globals.push_back(global);
      weights.append(global.getSymName(), elements);
    }
    if (globals.empty() || total <= maxEmbeddedBytes)
      return markAllAnalysesPreserved();
    for (memref::GlobalOp global : globals)
      global.removeInitialValueAttr();
    module->setAttr(kWeightsAttrName, weights.getDictionary(&getContext()));
  }
};
} // namespace

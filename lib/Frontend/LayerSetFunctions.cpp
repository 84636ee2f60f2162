//===- LayerSetFunctions.cpp - functions of each set of layers ------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ModelModule.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::posenc;
using ::posenc::frontend::ModelConfig;

/// Builds the functions of the rotation that all sets share, which have no
/// suffix. Returns an empty module if there are none, and null after an error.
OwningOpRef<ModuleOp> ModelModule::buildSharedRotation() {
  OwningOpRef<ModuleOp> module = ModuleOp::create(builder, loc);
  const ModelConfig *first =
      llvm::find_if(llvm::ArrayRef(config.sets),
                    [](const ModelConfig &set) { return set.hasRotation(); });
  auto allOthers = [&](bool (ModelConfig::*isLike)(const ModelConfig &) const) {
    return llvm::all_of(config.sets, [&](const ModelConfig &set) {
      return !set.hasRotation() || (set.*isLike)(*first);
    });
  };
  if (first == llvm::ArrayRef(config.sets).end() ||
      !allOthers(&ModelConfig::rotatesLike))
    return module;
  ModelConfig shared = *first;
  shared.suffix.clear();
  shared.attention.reset();
  module = ModelModule(*builder.getContext(), shared, options).build();
  if (module && !allOthers(&ModelConfig::ropesLike))
    module->lookupSymbol("rope")->erase();
  return module;
}

OwningOpRef<ModuleOp> ModelModule::buildSets() {
  OwningOpRef<ModuleOp> module = buildSharedRotation();
  if (!module)
    return nullptr;
  for (const ModelConfig &set : config.sets) {
    OwningOpRef<ModuleOp> built =
        ModelModule(*builder.getContext(), set, options).build();
    if (!built)
      return nullptr;
    module->getBody()->getOperations().splice(
        module->getBody()->end(), built->getBody()->getOperations());
  }
  return module;
}

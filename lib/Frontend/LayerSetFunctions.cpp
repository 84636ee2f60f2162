//===- LayerSetFunctions.cpp - functions of each set of layers ------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ModelModule.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::posenc;
using ::posenc::frontend::ModelConfig;

/// Appends the functions of the rotation that all of the sets share, if they
/// do. Those of @rope depend on the heads as well.
LogicalResult ModelModule::appendSharedRotation(
    ModuleOp module, ArrayRef<const ModelConfig *> sets, StringRef suffix) {
  auto allAreLike = [&](bool (ModelConfig::*isLike)(const ModelConfig &)
                            const) {
    return llvm::all_of(sets, [&](const ModelConfig *set) {
      return (set->*isLike)(*sets.front());
    });
  };
  if (sets.empty() || !allAreLike(&ModelConfig::rotatesLike))
    return success();
  ModelConfig shared = *sets.front();
  shared.suffix = suffix.str();
  shared.attention.reset();
  return appendFunctions(module, shared,
                         allAreLike(&ModelConfig::ropesLike) ? "" : "rope");
}

/// Appends the functions of a set of layers, without that of the family
/// `leftOut` unless it is empty.
LogicalResult ModelModule::appendFunctions(ModuleOp module,
                                           const ModelConfig &set,
                                           StringRef leftOut) {
  OwningOpRef<ModuleOp> built =
      ModelModule(*builder.getContext(), set, options).build();
  if (!built)
    return failure();
  if (!leftOut.empty())
    built->lookupSymbol((leftOut + set.suffix).str())->erase();
  module.getBody()->getOperations().splice(module.getBody()->end(),
                                           built->getBody()->getOperations());
  return success();
}

OwningOpRef<ModuleOp> ModelModule::buildSets() {
  OwningOpRef<ModuleOp> module = ModuleOp::create(builder, loc);
  SmallVector<const ModelConfig *> rotating;
  llvm::MapVector<StringRef, SmallVector<const ModelConfig *>> types;
  for (const ModelConfig &set : config.sets) {
    if (!options.rotates || !set.hasRotation())
      continue;
    rotating.push_back(&set);
    types[set.layerType].push_back(&set);
  }
  // All sets share the functions without a suffix, and those of a type the ones
  // with its name, which a single set of the type has anyway.
  if (failed(appendSharedRotation(*module, rotating, "")))
    return nullptr;
  for (auto &[type, sets] : types)
    if (!type.empty() && sets.size() > 1 &&
        failed(appendSharedRotation(*module, sets, ("_" + type).str())))
      return nullptr;
  for (const ModelConfig &set : config.sets)
    if (failed(appendFunctions(*module, set, /*leftOut=*/"")))
      return nullptr;
  return module;
}

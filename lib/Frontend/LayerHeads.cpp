//===- LayerHeads.cpp - layer types with heads of their own ---------------===//
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
using ::posenc::frontend::LayerAttention;
using ::posenc::frontend::LayerRotation;
using ::posenc::frontend::ModelConfig;

/// Gives a config the rotation of some of its layers, and their heads.
static void setRotation(ModelConfig &config, const LayerRotation &rotation) {
  config.rotaryDim = rotation.rotaryDim;
  config.ropeTheta = rotation.theta;
  config.scaling = rotation.scaling;
  if (!rotation.hasOwnHeads())
    return;
  config.headDim = rotation.headDim;
  config.numKeyValueHeads = rotation.numKeyValueHeads;
  if (!config.attention)
    return;
  config.attention->headDim = rotation.headDim;
  config.attention->valueDim = rotation.headDim;
  config.attention->numKeyValueHeads = rotation.numKeyValueHeads;
}

/// Returns the config of the layers whose rotations `keeps` selects.
static ModelConfig restrict(
    ModelConfig config, llvm::function_ref<bool(const LayerRotation &)> keeps) {
  llvm::erase_if(config.rotations, [&](const LayerRotation &rotation) {
    return !keeps(rotation);
  });
  auto isKept = [&](const LayerAttention &layer) {
    return llvm::any_of(config.rotations, [&](const LayerRotation &rotation) {
      return rotation.type == layer.type;
    });
  };
  if (config.attention) {
    llvm::erase_if(config.attention->layers,
                   [&](const LayerAttention &layer) { return !isKept(layer); });
    if (config.attention->layers.empty())
      config.attention.reset();
  }
  if (!config.rotations.empty())
    setRotation(config, config.rotations.front());
  return config;
}

bool ModelModule::hasPartsWithOwnHeads() const {
  // A single rotation is that of the whole model already.
  return config.rotations.size() > 1 &&
         llvm::any_of(config.rotations, [](const LayerRotation &rotation) {
           return rotation.hasOwnHeads();
         });
}

OwningOpRef<ModuleOp> ModelModule::buildParts() {
  // The layers with the heads of the model come first.
  std::vector<ModelConfig> parts{
      restrict(config, [](const LayerRotation &rotation) {
        return !rotation.hasOwnHeads();
      })};
  if (parts.front().rotations.empty())
    parts.clear();
  for (const LayerRotation &own : config.rotations)
    if (own.hasOwnHeads())
      parts.push_back(restrict(config, [&](const LayerRotation &rotation) {
        return rotation.type == own.type;
      }));
  OwningOpRef<ModuleOp> module;
  for (ModelConfig &part : parts) {
    // The heads are those of the part now, which is not divided further.
    for (LayerRotation &rotation : part.rotations)
      rotation.headDim = rotation.numKeyValueHeads = 0;
    OwningOpRef<ModuleOp> built =
        ModelModule(*builder.getContext(), part, options).build();
    if (!built)
      return nullptr;
    if (!module)
      module = std::move(built);
    else
      module->getBody()->getOperations().splice(
          module->getBody()->end(), built->getBody()->getOperations());
  }
  return module;
}

//===- LayerSets.h - layers that share a config -----------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_FRONTEND_LAYERSETS_H
#define POSENC_LIB_FRONTEND_LAYERSETS_H

#include "LayerValues.h"
#include "posenc/Frontend/ModelConfig.h"

namespace posenc::frontend {

/// Layers with the same type, values and rotation.
struct LayerSet {
  llvm::StringRef type;
  bool rotates = true;
  /// The numbers of the layers, ascending.
  std::vector<int64_t> numbers;
  /// The config of a model whose layers are all like these.
  json::Value config;
};

/// Divides the layers into sets. Returns an empty list if all layers have the
/// same values: they differ by their type at most.
std::vector<LayerSet> divideLayers(ConfigReader &reader,
                                   const json::Value &config,
                                   const Layers &layers);

/// Returns the config with the values that all layers share in the place of
/// the lists and objects that give them.
json::Value replaceSharedValues(ConfigReader &reader, const json::Value &config,
                                const Layers &layers);

/// Returns the layers of each suffix of the functions of a model whose layers
/// differ by their type, and by whether they rotate, alone.
std::vector<NamedLayers> nameLayers(const Layers &layers);

/// Makes a model of the configs of its sets, which must not be empty. Equal
/// ones of a type are merged. Names the functions of each.
ModelConfig mergeSets(std::vector<ModelConfig> sets,
                      llvm::ArrayRef<LayerSet> layers);

} // namespace posenc::frontend

#endif // POSENC_LIB_FRONTEND_LAYERSETS_H

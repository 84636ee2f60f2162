//===- LayerValues.h - keys whose values differ by layer --------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Configs spell values that differ by layer in several ways:
//   "per_layer_config": {"5": {"head_dim": 512}}        objects by layer
//   "block_configs": [{"attention": {...}}, ...]         a list of objects
//   "num_attention_heads": [48, 64, ...]                 a list by layer
//   "num_attention_heads_per_layer": [48, 64, ...]       under another name
//   "num_key_value_heads": {"0": 8, "1": 4}              an object by layer
//   "sliding_window": {"full_attention": null, ...}      an object by type
//   "swa_head_dim", "global_head_dim", ...               a key for one type
// All are read into one form: the value of each key in each layer.
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_FRONTEND_LAYERVALUES_H
#define POSENC_LIB_FRONTEND_LAYERVALUES_H

#include "ConfigReader.h"
#include "ModelTable.h"

namespace posenc::frontend {

/// The value of a key in one layer. The key is one that a config whose layers
/// are alike has.
struct LayerValue {
  llvm::StringRef key;
  json::Value value;
};

/// The values of one layer.
struct Layer {
  /// The layer type, or empty if the config and the model have none.
  llvm::StringRef type;
  /// False for layers without attention, which have no functions.
  bool hasKeys = true;
  bool rotates = true;
  llvm::SmallVector<LayerValue, 2> values;
};

/// The layers of a config.
struct Layers {
  /// Empty if the config does not give the number of layers and the layer types
  /// have the same values.
  std::vector<Layer> layers;
  /// The members of the config that `layers` replaces.
  llvm::SmallVector<llvm::StringRef, 4> replaced;
  /// Whether `Layer::type` stands for another key than `layer_types`.
  bool areTypesRenamed = false;
  /// Whether a key or the model selects layers that do not rotate.
  bool readsRotating = false;
  /// Whether some layers have the base 0, so that they do not rotate.
  bool hasZeroBases = false;
  /// False if the number of layers is unknown; then there is one of each type.
  bool areNumbered = true;
};

/// Reads the values that differ by layer, the layer types and the layers that
/// do not rotate. Reports an error if two keys give a layer different values,
/// and for lists and objects that do not fit the number of layers.
Layers readLayers(ConfigReader &reader, const json::Value &config,
                  const ModelRow &row);

} // namespace posenc::frontend

#endif // POSENC_LIB_FRONTEND_LAYERVALUES_H

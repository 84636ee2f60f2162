//===- RopeDictionary.h - rope_scaling and rope_parameters ------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_FRONTEND_ROPEDICTIONARY_H
#define POSENC_LIB_FRONTEND_ROPEDICTIONARY_H

#include "ConfigReader.h"
#include "RopeTypes.h"

namespace posenc::frontend {

/// The dictionary of one layer type.
struct LayerDictionary {
  llvm::StringRef type;
  json::Value dict;
};

/// `rope_scaling` and its successor `rope_parameters`. They must agree if both
/// are given.
struct RopeDictionaries {
  /// The two dictionaries; null if not given, not an object, empty, or keyed by
  /// layer type.
  const json::Value *scaling = nullptr;
  const json::Value *parameters = nullptr;
  /// The name and object of the dictionary that is read; `rope_parameters` if
  /// both are given. The object is null if neither is given.
  llvm::StringRef name;
  const json::Value *main = nullptr;
  /// The dictionaries per layer type, without nulls, and the object `byType`
  /// that holds them. They replace `main`.
  std::vector<LayerDictionary> layers;
  const json::Value *byType = nullptr;
  /// An error was reported, so absent keys must not be reported as well.
  bool broken = false;
};

/// Whether a dictionary has one dictionary per layer type: some values are
/// objects, and there is no key of a scaling.
bool isPerLayerType(const json::Value &dict);

/// Whether a dictionary may have the key beside dictionaries per layer type.
/// Its value then holds for the types without their own.
bool isSharedRopeKey(llvm::StringRef key);

/// Returns the dictionaries of one layer type, which point into `layer`.
RopeDictionaries getLayerDictionaries(const RopeDictionaries &dicts,
                                      const LayerDictionary &layer);

/// Finds the dictionaries of a config, and reports an error if they differ.
RopeDictionaries findRopeDictionaries(ConfigReader &reader,
                                      const json::Value &config);

/// Returns the type that the main dictionary names, 'default' if there is no
/// dictionary, or null after an error. With `arePatches`, 'axial' names the
/// default: the model has a row and a column in any case.
const RopeType *readRopeType(ConfigReader &reader,
                             const RopeDictionaries &dicts, bool arePatches);

} // namespace posenc::frontend

#endif // POSENC_LIB_FRONTEND_ROPEDICTIONARY_H

//===- RopeDictionary.h - where a config keeps its rope keys ----*- C++ -*-===//
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

/// What layers of one type have.
struct LayerDictionary {
  llvm::StringRef type;
  const json::Value *dict;
};

/// `rope_scaling` and its successor `rope_parameters`, agreeing where both
/// stand.
struct RopeDictionaries {
  /// Null where not given or not usable.
  const json::Value *scaling = nullptr;
  const json::Value *parameters = nullptr;
  /// The name and object of the one that counts; null if neither is given.
  llvm::StringRef name;
  const json::Value *main = nullptr;
  /// What one keyed by layer type holds, in place of all others; null stands
  /// for nothing.
  std::vector<LayerDictionary> layers;
  const json::Value *byType = nullptr;
  /// An error was reported: nothing can be concluded from what is absent.
  bool broken = false;
};

/// Those of one of the layer types.
RopeDictionaries getLayer(const RopeDictionaries &dicts,
                          const LayerDictionary &layer);

RopeDictionaries findRopeDictionaries(ConfigReader &reader,
                                      const json::Value &config);

/// The type that the main dictionary names, or 'default' if there is none.
/// Null after an error.
const RopeType *readRopeType(ConfigReader &reader,
                             const RopeDictionaries &dicts);

} // namespace posenc::frontend

#endif // POSENC_LIB_FRONTEND_ROPEDICTIONARY_H

//===- LayerTypes.h - rotations by layer type -------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_FRONTEND_LAYERTYPES_H
#define POSENC_LIB_FRONTEND_LAYERTYPES_H

#include "ConfigReader.h"
#include "HeadShape.h"
#include "ModelTable.h"
#include "RopeDictionary.h"
#include "posenc/Frontend/ModelConfig.h"

namespace posenc::frontend {

constexpr llvm::StringLiteral kFullLayers = "full_attention";
constexpr llvm::StringLiteral kSlidingLayers = "sliding_attention";

/// Layers that have a state instead of keys, or do not attend.
bool hasNoKeys(llvm::StringRef type);

/// Adds a type that `key` holds to the different ones. They become parts of C
/// names: one that cannot is an error, and so are too many.
bool addLayerType(ConfigReader &reader, llvm::StringRef key,
                  llvm::StringRef name, const json::Value &at,
                  std::vector<std::string> &names);

/// Reads the base, the scaling and the rotary dimension, for all layers or for
/// those of each type, and the types.
void readRotations(ConfigReader &reader, const json::Value &config,
                   const ModelRow &row, const RopeDictionaries &dicts,
                   HeadSize head, ModelConfig &result);

} // namespace posenc::frontend

#endif // POSENC_LIB_FRONTEND_LAYERTYPES_H

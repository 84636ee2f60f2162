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
constexpr llvm::StringLiteral kChunkedLayers = "chunked_attention";
constexpr llvm::StringLiteral kSlidingLayers = "sliding_attention";

/// Whether layers of the type have no keys: state-space, linear-attention and
/// convolution layers, and layers without a mixer of tokens.
bool hasNoKeys(llvm::StringRef type);

/// Whether the config gives some layers a sliding window. Does not report
/// errors in these keys: AttentionKeys.cpp does.
bool hasWindow(const json::Value &config, const ModelRow &row);

/// Whether full-attention layers rotate.
bool rotatesFullLayers(const json::Value &config, const ModelRow &row);

/// Adds `name`, a layer type under `key`, to the distinct types in `names`.
/// Returns false after an error: a type must be a valid part of a C identifier,
/// because functions are named after it, and there may be at most 8.
bool addLayerType(ConfigReader &reader, llvm::StringRef key,
                  llvm::StringRef name, const json::Value &at,
                  std::vector<std::string> &names);

/// Reads the layer types, and the base, the scaling and the rotary dimension,
/// either once for all layers or for each layer type. `head` is the size of a
/// head, `ropeLength` the option of that name in ReadOptions.
void readRotations(ConfigReader &reader, const json::Value &config,
                   const ModelRow &row, const RopeDictionaries &dicts,
                   HeadSize head, std::optional<int64_t> ropeLength,
                   ModelConfig &result);

} // namespace posenc::frontend

#endif // POSENC_LIB_FRONTEND_LAYERTYPES_H

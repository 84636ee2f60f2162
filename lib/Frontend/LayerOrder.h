//===- LayerOrder.h - number and types of the layers of a config *- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_FRONTEND_LAYERORDER_H
#define POSENC_LIB_FRONTEND_LAYERORDER_H

#include "LayerValues.h"

namespace posenc::frontend {

/// The maximum number of layers of a config whose layers differ. Published
/// models have at most a few hundred.
constexpr int64_t kMaxLayers = 4096;

/// Returns the number of layers, or nullopt if the config does not give it or
/// it is too large. `listed` is the length of a list by layer, or 0.
std::optional<int64_t> countLayers(const json::Value &config, size_t listed);

/// Whether a list has an element for each of `count` layers; otherwise reports
/// an error. Lists may go on with the layers that predict further tokens, which
/// are not read.
bool fitsLayers(ConfigReader &reader, const json::Value &config,
                llvm::StringRef name, const json::Value &list, size_t count);

/// Sets the types of the layers, and whether they rotate.
void readLayerOrder(ConfigReader &reader, const json::Value &config,
                    const ModelRow &row, Layers &result);

} // namespace posenc::frontend

#endif // POSENC_LIB_FRONTEND_LAYERORDER_H

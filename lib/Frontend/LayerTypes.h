//===- LayerTypes.h - one rotation for all layers ---------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_FRONTEND_LAYERTYPES_H
#define POSENC_LIB_FRONTEND_LAYERTYPES_H

#include "ConfigReader.h"
#include "ModelTable.h"
#include "RopeDictionary.h"
#include "posenc/Frontend/ModelConfig.h"

namespace posenc::frontend {

/// Reports a config whose layers rotate differently, by the key that says so.
/// Which layers rotate at all is no concern here.
void checkLayerTypes(ConfigReader &reader, const json::Value &config,
                     const ModelRow &row, const RopeDictionaries &dicts,
                     const ModelConfig &result);

/// Reads the names of layers of several types, which become parts of C names.
void readLayerTypes(ConfigReader &reader, const json::Value &config,
                    ModelConfig &result);

} // namespace posenc::frontend

#endif // POSENC_LIB_FRONTEND_LAYERTYPES_H

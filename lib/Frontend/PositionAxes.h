//===- PositionAxes.h - position axes of configs ----------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_FRONTEND_POSITIONAXES_H
#define POSENC_LIB_FRONTEND_POSITIONAXES_H

#include "ConfigReader.h"
#include "ModelTable.h"
#include "RopeDictionary.h"
#include "posenc/Frontend/ModelConfig.h"

namespace posenc::frontend {

/// Sets `result.axes` if tokens of the model have several positions. The rotary
/// dimension of `result` must be set; `headSource` is the value that determines
/// the size of a head.
void readPositionAxes(ConfigReader &reader, const json::Value &config,
                      const ModelRow &row, const RopeDictionaries &dicts,
                      const json::Value &headSource, ModelConfig &result);

} // namespace posenc::frontend

#endif // POSENC_LIB_FRONTEND_POSITIONAXES_H

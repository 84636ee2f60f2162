//===- BiasModels.h - models with biases of the scores ----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_FRONTEND_BIASMODELS_H
#define POSENC_LIB_FRONTEND_BIASMODELS_H

#include "ConfigReader.h"
#include "ModelTable.h"
#include "posenc/Frontend/ModelConfig.h"

namespace posenc::frontend {

/// Returns the rows of all model types that never rotate.
llvm::ArrayRef<ModelRow> getBiasModels();

/// Finds the row of a model without rotary embedding whose attention has a bias
/// instead. Returns null for other models.
const ModelRow *findBiasModel(const json::Value &config,
                              llvm::StringRef modelType);

/// Reads the attention of such a model. `typeMember` is its `model_type`.
void readBiasModel(ConfigReader &reader, const json::Value &config,
                   const ModelRow &row, const json::Member &typeMember,
                   const ReadOptions &options, ModelConfig &result);

} // namespace posenc::frontend

#endif // POSENC_LIB_FRONTEND_BIASMODELS_H

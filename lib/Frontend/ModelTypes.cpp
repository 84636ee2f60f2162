//===- ModelTypes.cpp - list of model types -------------------------------===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BiasModels.h"

#include "llvm/ADT/STLExtras.h"

using namespace posenc::frontend;

std::vector<ModelType> posenc::frontend::getModelTypes() {
  std::vector<ModelType> result;
  for (const ModelRow &row : getModels())
    result.push_back({row.type,
                      row.isInterleaved ? Pairing::Interleaved : Pairing::Half,
                      row.attention.isSupported, row.attention.isCausal});
  for (const ModelRow &row : getBiasModels())
    result.push_back({row.type, std::nullopt});
  llvm::sort(result, [](const ModelType &a, const ModelType &b) {
    return a.name < b.name;
  });
  return result;
}

//===- AttentionKeys.h - attention keys of a config -------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_FRONTEND_ATTENTIONKEYS_H
#define POSENC_LIB_FRONTEND_ATTENTIONKEYS_H

#include "ConfigReader.h"
#include "ModelTable.h"
#include "posenc/Frontend/ModelConfig.h"

namespace posenc::frontend {

/// Reads the attention of a model into `result.attention`. The heads and the
/// rotation of `result` must be set. Leaves the attention absent, with a
/// warning, if it is not supported. `isDecoder` says that the config is that of
/// the decoder of an encoder-decoder model, whose attention is causal.
void readAttention(ConfigReader &reader, const json::Value &config,
                   const ModelRow &row, bool isDecoder, bool qkNorm,
                   ModelConfig &result);

} // namespace posenc::frontend

#endif // POSENC_LIB_FRONTEND_ATTENTIONKEYS_H

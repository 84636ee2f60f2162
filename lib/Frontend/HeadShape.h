//===- HeadShape.h - number and sizes of the heads of a model ---*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_FRONTEND_HEADSHAPE_H
#define POSENC_LIB_FRONTEND_HEADSHAPE_H

#include "ConfigReader.h"
#include "ModelTable.h"
#include "posenc/Frontend/ModelConfig.h"

namespace posenc::frontend {

/// Sets the number of query and key/value heads and the head size of `result`.
/// Returns the value that determines the head size, for diagnostics. A nested
/// config of a multimodal model may leave out the sizes that are the defaults
/// of its type.
const json::Value &readHeadShape(ConfigReader &reader,
                                 const json::Value &config, const ModelRow &row,
                                 bool isNested, ModelConfig &result);

/// The size of a head, or 0 after an error, and the value that determines it.
struct HeadSize {
  int64_t size;
  const json::Value *at;
};

/// Returns the rotary dimension, or 0 after an error. `dicts` are the rope
/// dictionaries, which may hold `partial_rotary_factor` as well; they may be
/// null.
int64_t readRotaryDim(ConfigReader &reader, const json::Value &config,
                      llvm::ArrayRef<const json::Value *> dicts,
                      const ModelRow &row, HeadSize head);

/// Returns the keys of `object` that may hold one quantity.
llvm::SmallVector<KeyRef, 4> keyRefs(const json::Value &object,
                                     const Names &names);

/// Returns also those of the object `keys.nested` inside `object`.
llvm::SmallVector<KeyRef, 4> nestedKeyRefs(const json::Value &object,
                                           const KeyNames &keys,
                                           const Names &names);

} // namespace posenc::frontend

#endif // POSENC_LIB_FRONTEND_HEADSHAPE_H

//===- QwenKeys.h - lengths of Qwen 1 ---------------------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_FRONTEND_QWENKEYS_H
#define POSENC_LIB_FRONTEND_QWENKEYS_H

#include "ConfigReader.h"
#include "posenc/Frontend/ModelConfig.h"

namespace posenc::frontend {

/// Reads the keys by which Qwen 1 changes its rotation and its queries beyond
/// `seq_length` tokens, and changes the scaling and the attention of `result`.
/// `ropeLength` is the option of that name in ReadOptions; without it, a
/// rotation that changes is an error.
void readQwenKeys(ConfigReader &reader, const json::Value &config,
                  std::optional<int64_t> ropeLength, ModelConfig &result);

} // namespace posenc::frontend

#endif // POSENC_LIB_FRONTEND_QWENKEYS_H

//===- AttentionModule.h - modules of the suite's attention -----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_DRIVER_BENCH_ATTENTIONMODULE_H
#define POSENC_LIB_DRIVER_BENCH_ATTENTIONMODULE_H

#include "Case.h"

namespace mlir::posenc {

/// An attention with rotations of queries and keys, as a model's config has it.
struct AttentionForm {
  posenc_dtype dtype = POSENC_F32;
  bool isCausal = false;
  /// Keys that a query sees, its own the last one.
  std::optional<int64_t> window = std::nullopt;
  enum Score { Plain, SoftCap, Alibi, T5 };
  /// What is done to the scores.
  Score score = Plain;
  /// Of a cache, tokens before heads.
  bool isTokenMajor = false;
  int64_t queryHeads = 32;
  int64_t keyHeads = 8;
  int64_t headDim = 128;
};

/// The module of an attention of as many keys as queries, its function
/// `attention`, the arguments and the shape part of the name.
void setAttention(const AttentionForm &form, int64_t tokens, Case &to);

/// The same for one query against a full cache of rotated keys, `decode`.
void setDecode(const AttentionForm &form, int64_t keys, Case &to);

} // namespace mlir::posenc

#endif // POSENC_LIB_DRIVER_BENCH_ATTENTIONMODULE_H

//===- AttentionModule.h - attention modules of the suite -------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_TOOLS_BENCH_ATTENTIONMODULE_H
#define POSENC_TOOLS_BENCH_ATTENTIONMODULE_H

#include "Case.h"

namespace mlir::posenc {

/// An attention problem with rotary embeddings of queries and keys and the head
/// counts of a model's config.
struct AttentionForm {
  posenc_dtype dtype = POSENC_F32;
  bool isCausal = false;
  /// Whether a mask_mod makes it causal instead of the attribute.
  bool hasCausalMask = false;
  /// Sliding window: number of keys that a query sees, up to and including the
  /// key at its own position.
  std::optional<int64_t> window = std::nullopt;
  enum Score { Plain, SoftCap, Alibi, T5 };
  /// The score_mod.
  Score score = Plain;
  /// Layout of a KV cache: [batch, token, head, dim] instead of [batch, head,
  /// token, dim].
  bool isTokenMajor = false;
  int64_t queryHeads = 32;
  int64_t keyHeads = 8;
  int64_t headDim = 128;
};

/// Sets the module, function (`attention`) and inputs of a self-attention over
/// `tokens` tokens, and appends element type and shape to the name.
void setAttention(const AttentionForm &form, int64_t tokens, Case &to);

/// Sets the case up for the function `decode`: one query against a full KV
/// cache of `keys` rotated keys.
void setDecode(const AttentionForm &form, int64_t keys, Case &to);

} // namespace mlir::posenc

#endif // POSENC_TOOLS_BENCH_ATTENTIONMODULE_H

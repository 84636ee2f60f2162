//===- Attention.h - building the regions of attention ----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_IR_ATTENTION_H
#define POSENC_IR_ATTENTION_H

#include "posenc/IR/Posenc.h"

namespace mlir::posenc {

/// Builds the result of a score or where region (a new score, or an i1 that
/// tells whether the key is visible) from the region's arguments.
using BuildScalar =
    llvm::function_ref<Value(OpBuilder &, Location, ValueRange arguments)>;

/// Adds a score_mod function (the `score` region) to an attention op. It is
/// applied after an existing one.
void buildScore(OpBuilder &builder, AttentionOp op, BuildScalar build);
void buildScore(OpBuilder &builder, OnlineAttentionOp op, BuildScalar build);

/// Adds a mask_mod condition (the `where` region) to an attention op, in
/// conjunction with an existing one.
void buildWhere(OpBuilder &builder, AttentionOp op, BuildScalar build);
void buildWhere(OpBuilder &builder, OnlineAttentionOp op, BuildScalar build);

/// Adds the soft cap `cap * tanh(score / cap)` of Gemma 2 to the score region.
void buildSoftCap(OpBuilder &builder, AttentionOp op, double cap);

/// Clones the operations of a non-empty `score` or `where` region for the given
/// arguments, and returns the yielded value.
Value cloneScalarRegion(OpBuilder &builder, Region &region,
                        ValueRange arguments);

} // namespace mlir::posenc

#endif // POSENC_IR_ATTENTION_H

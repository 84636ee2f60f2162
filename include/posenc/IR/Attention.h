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

/// Computes a new score from the score, or whether a key takes part, given the
/// arguments of the region.
using BuildScalar =
    llvm::function_ref<Value(OpBuilder &, Location, ValueRange arguments)>;

/// Gives an attention a score region. Where there is one, the new score is
/// computed from that region's.
void buildScore(OpBuilder &builder, AttentionOp op, BuildScalar build);
void buildScore(OpBuilder &builder, OnlineAttentionOp op, BuildScalar build);

/// Gives an attention a region that says which keys take part. Where there is
/// one, both must hold.
void buildWhere(OpBuilder &builder, AttentionOp op, BuildScalar build);
void buildWhere(OpBuilder &builder, OnlineAttentionOp op, BuildScalar build);

/// The score becomes `cap * tanh(score / cap)`, as in Gemma 2.
void buildSoftCap(OpBuilder &builder, AttentionOp op, double cap);

/// Clones the operations of a score or where region for the arguments, and
/// returns what it yields. There must be a region.
Value cloneScalarRegion(OpBuilder &builder, Region &region,
                        ValueRange arguments);

} // namespace mlir::posenc

#endif // POSENC_IR_ATTENTION_H

//===- AttentionVerify.h - shared checks of attention -----------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_IR_ATTENTIONVERIFY_H
#define POSENC_LIB_IR_ATTENTIONVERIFY_H

#include "posenc/IR/Posenc.h"

namespace mlir::posenc {

/// The type of sums over tensors of the type: f64 for f64, else f32.
FloatType getSumTypeFor(Type tensor);

/// Whether the elements are quantized, so that rows have scales: i8 and f8.
bool isQuantizedType(Type tensor);

/// Checks the element types of caches: both have one, which is not wider than
/// that of sums. Errors end in `constraint`.
LogicalResult verifyCacheTypes(Operation *op, Type keys, Type values, Type sums,
                               StringRef constraint);

/// Symbols of the scales of rows; a static 1 stands for all.
SmallVector<int64_t> getScaleSymbols(int64_t batch, int64_t heads,
                                     int64_t tokens, bool isPacked);

/// Makes dimensions whose static 1 stands for all their own.
void dropUnitSymbols(ShapedType type, SmallVectorImpl<int64_t> &symbols);

/// The types of the arguments of the regions `score` and `where`.
SmallVector<Type> getScoreArguments(Type query);
SmallVector<Type> getWhereArguments(MLIRContext *context);

/// Returns the symbols of a tensor of heads, `(batch, tokens, heads, dim)` in
/// the order of its layout; ragged tensors have no batch.
SmallVector<int64_t> getHeadSymbols(int64_t batch, int64_t tokens,
                                    int64_t heads, int64_t dim,
                                    HeadLayout layout, bool isPacked);
/// The dimensions of heads and of tokens.
unsigned getHeadDimension(HeadLayout layout, bool isPacked);
unsigned getTokenDimension(HeadLayout layout, bool isPacked);

/// Checks a region that computes a scalar from scalars; an empty one is right.
/// Errors end in `form` for its arguments and its terminator, in `body` for
/// its operations.
LogicalResult verifyScalarRegion(Operation *op, Region &region, StringRef name,
                                 ArrayRef<Type> arguments, Type result,
                                 StringRef form, StringRef body);

/// Checks that `type` has the rank; errors name the operand and end in
/// `constraint`.
LogicalResult verifyRank(Operation *op, StringRef name, Type type, int64_t rank,
                         StringRef constraint);

/// Checks a tensor of heads: rank and static last dimension.
LogicalResult verifyHeads(Operation *op, StringRef name, Type type,
                          int64_t rank, StringRef constraint);

/// Checks an optional rotation of heads whose tokens have the `positions`,
/// null where absent. `numLoops` is the rank of positions without axes.
LogicalResult verifyHeadRotation(Operation *op, StringRef name, Type heads,
                                 RotationAttr rotation, Value positions,
                                 int64_t numLoops, StringRef window,
                                 StringRef form);

/// Checks optional weights of a norm of the heads.
LogicalResult verifyNorm(Operation *op, StringRef name, Value norm,
                         StringRef constraint);
LogicalResult verifyNormEps(Operation *op, bool hasNorm, FloatAttr eps,
                            StringRef constraint);

/// Checks attributes that are null where absent.
LogicalResult verifyScaleAndWindow(Operation *op, FloatAttr scale,
                                   IntegerAttr left, IntegerAttr right,
                                   StringRef constraint);

/// Gives the arguments of a score or where region their usual names.
void nameScalarArguments(Region &region, OpAsmSetValueNameFn setName);

} // namespace mlir::posenc

#endif // POSENC_LIB_IR_ATTENTIONVERIFY_H

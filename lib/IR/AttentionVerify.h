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

/// Returns the type of sums over elements of `tensor`: f64 for f64, else f32.
FloatType getSumTypeFor(Type tensor);

/// Whether the element type is quantized (i8 or f8), so that rows have scales.
bool isQuantizedType(Type tensor);

/// Checks that keys and values have the same element type and that it is not
/// wider than that of sums. Errors end in `constraint`.
LogicalResult verifyCacheTypes(Operation *op, Type keys, Type values, Type sums,
                               StringRef constraint);

/// Returns the symbols of the scales of rows. Static sizes of 1 are broadcast.
SmallVector<int64_t> getScaleSymbols(int64_t batch, int64_t heads,
                                     int64_t tokens, bool isPacked);

/// Replaces the symbols of dimensions with a static size of 1, which are
/// broadcast, by `Own`.
void dropUnitSymbols(ShapedType type, SmallVectorImpl<int64_t> &symbols);

// Return the argument types of the regions `score` and `where`.
SmallVector<Type> getScoreArguments(Type query);
SmallVector<Type> getWhereArguments(MLIRContext *context);

/// Returns the symbols of a tensor of heads, `(batch, tokens, heads, dim)` in
/// the order of its layout; ragged tensors have no batch.
SmallVector<int64_t> getHeadSymbols(int64_t batch, int64_t tokens,
                                    int64_t heads, int64_t dim,
                                    HeadLayout layout, bool isPacked);
// Return the dimension of heads and that of tokens.
unsigned getHeadDimension(HeadLayout layout, bool isPacked);
unsigned getTokenDimension(HeadLayout layout, bool isPacked);

/// Checks a region that computes a scalar from scalars. Empty regions are
/// valid. Errors in its arguments and terminator end in `form`, and errors in
/// its operations end in `body`.
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

/// Checks an optional rotation of heads. `rotation` and `positions` are null if
/// absent. `numLoops` is the rank of positions without axes.
LogicalResult verifyHeadRotation(Operation *op, StringRef name, Type heads,
                                 RotationAttr rotation, Value positions,
                                 int64_t numLoops, StringRef window,
                                 StringRef form);

/// Checks the operands `turns` against the rotations and positions, which may
/// be null.
LogicalResult verifyHeadTurns(Operation *op, OperandRange turns,
                              ArrayRef<RotationAttr> rotations,
                              ArrayRef<Value> positions, StringRef constraint);

/// Checks the optional weights of a norm.
LogicalResult verifyNorm(Operation *op, StringRef name, Value norm,
                         StringRef constraint);
LogicalResult verifyNormEps(Operation *op, bool hasNorm, FloatAttr eps,
                            StringRef constraint);
/// Verifies that `norm_offset` is present only with a norm, and finite.
LogicalResult verifyNormOffset(Operation *op, bool hasNorm, FloatAttr offset,
                               StringRef constraint);

/// Checks optional attributes, which are null if absent.
LogicalResult verifyScaleAndWindow(Operation *op, FloatAttr scale,
                                   IntegerAttr left, IntegerAttr right,
                                   StringRef constraint);

/// Sets the SSA names of the arguments of a score or where region.
void nameScalarArguments(Region &region, OpAsmSetValueNameFn setName);

} // namespace mlir::posenc

#endif // POSENC_LIB_IR_ATTENTIONVERIFY_H

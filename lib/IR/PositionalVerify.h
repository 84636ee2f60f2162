//===- PositionalVerify.h - shared checks of positional ops -----*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_IR_POSITIONALVERIFY_H
#define POSENC_LIB_IR_POSITIONALVERIFY_H

#include "posenc/IR/Posenc.h"

namespace mlir::posenc {

/// Returns the rank of the positions without the axes; 1 for a scalar.
int64_t getNumPositionLoops(Type positions, AxesAttr axes);

/// Returns the symbols of positions: the dimension of axes, if there is one,
/// and the loops in order.
SmallVector<int64_t> getPositionSymbols(Type positions, AxesAttr axes);

/// Returns the symbols of tables: the loops in order, then the elements.
SmallVector<int64_t> getTableSymbols(Type table);

/// Returns the symbols of tensor `index`, whose dimension `dims[k]` is loop
/// `k`; its other dimensions are shared with its destination only.
SmallVector<int64_t> getRotatedSymbols(Type type, ArrayRef<int64_t> dims,
                                       int64_t index);

/// Whether two shaped types have the same element type and agree in dimensions
/// that are static in both. Canonicalization may make only one of them more
/// static, and bufferization may give memrefs different layouts.
bool haveCompatibleShapes(Type a, Type b);

/// Whether the frequencies of an axial layout restart on each axis. They do
/// not if the scaling has a list with an element for each pair.
bool restartsOnAxes(FrequenciesAttr frequencies);

/// Checks the scaling with the dimension of each axis, if the axes are axial.
/// `axes` may be null.
LogicalResult
verifyAxisFrequencies(function_ref<InFlightDiagnostic()> emitError,
                      FrequenciesAttr frequencies, AxesAttr axes);

/// Checks axes against positions and frequencies; errors about their number end
/// in `constraint`.
LogicalResult verifyAxes(Operation *op, Type positions, AxesAttr axes,
                         FrequenciesAttr frequencies, StringRef constraint);

/// Checks the operands `turns` against the frequencies: there are two lists
/// with an element for each pair, or none. Frequencies that depend on the
/// length require them. With turns, `positions`, of which some may be null,
/// must be integers, and angles are not rounded.
LogicalResult verifyTurns(Operation *op, OperandRange turns,
                          FrequenciesAttr frequencies,
                          ArrayRef<Value> positions, StringRef constraint);

/// The numbers of the constraints that `rotate` and `rope` share.
struct RotationConstraints {
  StringRef operands, rank, dims, window;
};

/// Checks the tensors to rotate against `dims` and the rotary window.
LogicalResult verifyRotation(Operation *op, OperandRange inputs,
                             OperandRange inits, ArrayRef<int64_t> dims,
                             int64_t numLoops, int64_t offset,
                             int64_t rotaryDim,
                             const RotationConstraints &constraints);

} // namespace mlir::posenc

#endif // POSENC_LIB_IR_POSITIONALVERIFY_H

//===- Limits.h - error bounds of compiled results --------------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_INTERPRETER_LIMITS_H
#define POSENC_LIB_INTERPRETER_LIMITS_H

#include "posenc/Interpreter/Interpreter.h"

namespace mlir::posenc {

/// Returns the number of significand bits of a float type; 0 for integers.
int getPrecision(::posenc::reference::DType type);

/// Returns the error of the angles at these positions, in radians, that the
/// default limits do not include: frequencies are constants of 96 bits, and the
/// position multiplies their error.
double getAngleSlack(ArrayRef<long double> positions);

/// Returns the part of a result's limit that comes from the error of a computed
/// operand, in units in the last place of `type`.
double getInheritedLimit(const ReferenceValue &operand,
                         ::posenc::reference::DType type);

/// Returns the limit in ulp of rows that are normed, if `isNormed`, and then
/// rotated at `positions`, if there are any.
double getRowLimit(const ReferenceValue &rows, bool isNormed,
                   ArrayRef<long double> positions);

/// Returns the bound on the difference between a kernel's element and the
/// reference's, either as computed or rounded to its type. Infinite if there is
/// no bound.
double getElementError(const ReferenceValue &value, size_t index,
                       bool isRounded);

/// Sets the limit and the magnitudes of a value so that each element is allowed
/// at least its error in `errors` and less than four times as much.
void setElementErrors(ReferenceValue &value, llvm::ArrayRef<double> errors);

} // namespace mlir::posenc

#endif // POSENC_LIB_INTERPRETER_LIMITS_H

//===- Limits.h - how far results may be off --------------------*- C++ -*-===//
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

/// The bits of a type's significand.
int getPrecision(::posenc::reference::DType type);

/// How far an angle may be off, in radians, beyond what the limits allow for:
/// frequencies are constants of 96 bits, whose error far positions multiply.
double getAngleSlack(ArrayRef<int64_t> positions);

/// What an operand that was itself computed adds to the limit of what is
/// computed from it, in units of `type`.
double getInheritedLimit(const ReferenceValue &operand,
                         ::posenc::reference::DType type);

/// The limit of rows that were normed, if so, and then rotated at `positions`,
/// if there are any.
double getRowLimit(const ReferenceValue &rows, bool isNormed,
                   ArrayRef<int64_t> positions);

/// How far a kernel's element may be off from the one that is known: from that
/// which was computed, or from that which it is rounded to. Infinite if nothing
/// is known of it.
double getElementError(const ReferenceValue &value, size_t index,
                       bool isRounded);

/// Sets the limit and the magnitudes so that they allow for `errors`, one for
/// each element, and for less than four times as much.
void setElementErrors(ReferenceValue &value, llvm::ArrayRef<double> errors);

} // namespace mlir::posenc

#endif // POSENC_LIB_INTERPRETER_LIMITS_H

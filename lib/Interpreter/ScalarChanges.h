//===- ScalarChanges.h - what errors of operands change ---------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_INTERPRETER_SCALARCHANGES_H
#define POSENC_LIB_INTERPRETER_SCALARCHANGES_H

#include "ScalarBounds.h"

namespace mlir::posenc {

/// How the errors of operands reach the result.
enum class Propagation {
  /// The largest change is at the ends of the operands' ranges.
  Ends,
  Quotient,
  Remainder,
  /// As far as the operand changes, and by 2 at the most.
  Wave,
  Tangent,
  Angle,
  Power,
  CopySign,
  Select,
  CompareFloats,
  CompareIntegers,
  Classify,
  FromInteger,
  ToInteger,
  IntegerSum,
  IntegerProduct,
  /// One of the operands, or all of it.
  IntegerMove,
  Bits,
};

Propagation getPropagation(Operation *op);

/// What the errors of the operands, none of which is infinite, change at the
/// most in the result, which is `center` without them.
double getChange(const ScalarStep &step, Propagation propagation,
                 ArrayRef<BoundedScalar> operands, Scalar center);

/// The operand that is selected, or either.
BoundedScalar selectBounded(Type type, ArrayRef<BoundedScalar> operands);

} // namespace mlir::posenc

#endif // POSENC_LIB_INTERPRETER_SCALARCHANGES_H

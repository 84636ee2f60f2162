//===- ScalarChanges.h - propagation of operand errors ----------*- C++ -*-===//
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

/// The rule by which errors of operands propagate to the result. Most rules are
/// named after the operations that they are for.
enum class Propagation {
  /// The function is monotonic: the largest change is at the ends of the
  /// operands' error intervals.
  Ends,
  Quotient,
  Remainder,
  /// Sine and cosine: the result changes by at most the change of the operand,
  /// and by at most 2.
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
  /// The result is one of the operands, possibly with another width.
  IntegerMove,
  /// Any change of an operand may change the result by any amount.
  Bits,
};

Propagation getPropagation(Operation *op);

/// Returns a bound on the change of the result by the errors of the operands,
/// which must be finite. `center` is the result without errors.
double getChange(const ScalarStep &step, Propagation propagation,
                 ArrayRef<BoundedScalar> operands, Scalar center);

/// Evaluates arith.select. If the condition is uncertain, the error covers both
/// operands.
BoundedScalar selectBounded(Type type, ArrayRef<BoundedScalar> operands);

} // namespace mlir::posenc

#endif // POSENC_LIB_INTERPRETER_SCALARCHANGES_H

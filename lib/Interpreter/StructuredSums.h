//===- StructuredSums.h - sums in structured operations ---------*- C++ -*-===//
//
// Part of Posenc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef POSENC_LIB_INTERPRETER_STRUCTUREDSUMS_H
#define POSENC_LIB_INTERPRETER_STRUCTUREDSUMS_H

#include "ScalarBounds.h"
#include "StructuredLoops.h"

namespace mlir::posenc {

/// The elements of an operand, without rounding, as scalars of the body.
struct StructuredInput {
  Type type;
  std::vector<Scalar> elements;
  /// The error of each element; empty if all are exact.
  std::vector<double> errors;

  StructuredInput(Value operand, Evaluator &values);
  BoundedScalar get(int64_t position) const {
    return {elements[position], errors.empty() ? 0 : errors[position]};
  }
  bool isFinite() const;
};

/// A partial sum.
struct Sum {
  /// The sum and the sum of absolute values. They are long double so that the
  /// rounding of the reference itself is negligible, even for f64.
  long double value = 0, size = 0;
  double error = 0;

  void add(const BoundedScalar &term, bool isNegative);
};

/// A result and the values of the body that it is computed from.
struct StructuredOutput {
  Type type;
  /// For a sum, the term that each iteration adds (or subtracts, if
  /// `isNegative`), or the two factors of that term. Otherwise the value that
  /// the body yields.
  SmallVector<Value, 2> factors;
  bool isSum = false, isNegative = false;
  /// Number of iterations that contribute to one element of a sum.
  int64_t numTerms = 1;
  std::vector<BoundedScalar> elements;
  std::vector<Sum> sums;

  bool isContraction() const { return factors.size() == 2; }
};

/// Detects whether a result is a sum over reduction loops of terms that do not
/// depend on the sum. Such a sum may be computed in any order; all other
/// results are computed in the order of the loops.
void analyzeResult(linalg::LinalgOp op, unsigned number,
                   ArrayRef<int64_t> ranges, StructuredOutput &output);

/// Returns init + sum, rounded to the type of the result.
BoundedScalar finishSum(const StructuredOutput &output, const Sum &sum,
                        const BoundedScalar &init);

/// Fast path for contractions of two inputs: adds up their products without
/// running a program. Returns false if the body has another form.
FailureOr<bool> addContraction(linalg::LinalgOp op, ArrayRef<int64_t> ranges,
                               ArrayRef<ElementMap> maps,
                               ArrayRef<StructuredInput> inputs,
                               StructuredOutput &output);

} // namespace mlir::posenc

#endif // POSENC_LIB_INTERPRETER_STRUCTUREDSUMS_H

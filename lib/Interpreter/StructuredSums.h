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

/// What an operand has for the body.
struct StructuredInput {
  Type type;
  std::vector<Scalar> elements;
  /// Empty if all are exact.
  std::vector<double> errors;

  StructuredInput(Value operand, Evaluator &values);
  BoundedScalar get(int64_t position) const {
    return {elements[position], errors.empty() ? 0 : errors[position]};
  }
  bool isFinite() const;
};

/// The terms of a sum so far.
struct Sum {
  /// The reference's own rounding does not count: of f64 as well.
  long double value = 0, size = 0;
  double error = 0;

  void add(const BoundedScalar &term, bool isNegative);
};

/// A result, and how the body makes it.
struct StructuredOutput {
  Type type;
  /// For a sum: the terms, or the two factors of each. They are subtracted if
  /// it is negative. Otherwise what the body yields.
  SmallVector<Value, 2> parts;
  bool isSum = false, isNegative = false;
  int64_t numTerms = 1;
  std::vector<BoundedScalar> elements;
  std::vector<Sum> sums;

  bool isContraction() const { return parts.size() == 2; }
};

/// Finds out whether the result is a sum over loops, of terms that do not
/// depend on it. A sum may be in any order, others are in that of the loops.
void analyzeResult(linalg::LinalgOp op, unsigned number,
                   ArrayRef<int64_t> ranges, StructuredOutput &output);

/// The sum that begins with `init`, rounded to the type of the result.
BoundedScalar finishSum(const StructuredOutput &output, const Sum &sum,
                        const BoundedScalar &init);

/// Adds up the products of two operands, which are the most common bodies,
/// without a program. False if the body is another.
FailureOr<bool> addContraction(linalg::LinalgOp op, ArrayRef<int64_t> ranges,
                               ArrayRef<ElementMap> maps,
                               ArrayRef<StructuredInput> inputs,
                               StructuredOutput &output);

} // namespace mlir::posenc

#endif // POSENC_LIB_INTERPRETER_STRUCTUREDSUMS_H
